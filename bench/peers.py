"""What others did on these workloads: recorded, not measured in a run.

Only differential-dataflow and dbsp are run by this benchmark itself (`bench/side_by_side.py`);
their figures here stand in where that is not possible. All were seen once, on a shared and noisy
machine with two cores, each system fed by an adapter of its own and its results compared for
equality first. So figures are orders of magnitude; what stands beside them in a table was measured
on another day, and is marked so.

    differential-dataflow    the Rust library, one worker, release build
    dbsp                     the Rust library below Feldera, the same
    pg_ivm                   PostgreSQL with incrementally maintained views
    Soufflé                  no incremental mode: load only
    … by hand                code for one workload, without a rule language
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

RECORDED = "recorded: seen once, on a shared machine with two cores; not in this run"
DIFFERENTIAL = "differential-dataflow"
DBSP = "dbsp"
PG_IVM = "pg_ivm"
KINDS = ("insert", "delete", "update", "batch")

Pair = tuple[float, float]


@dataclass(frozen=True)
class Seen:
    """One system on one workload: median and mean milliseconds by kind of change, and memory."""

    when: str
    workload: str
    system: str
    milliseconds: Mapping[str, Pair]
    megabytes: int

    @classmethod
    def read(cls, when: str, line: str) -> Seen:
        """Parse a line of a table below; what happened only once is median and mean."""
        workload, rest = line[:9].strip(), line[9:].strip()
        system, (load, *kinds, megabytes) = rest[:22].strip(), rest[22:].split()
        found = {"load": (float(load) * 1_000,) * 2}
        for kind, figures in zip(KINDS, kinds, strict=True):
            if figures != "-":
                median, _, mean = figures.partition("/")
                found[kind] = float(median), float(mean or median)
        return cls(when, workload, system, found, int(megabytes))


def seen(workload: str, system: str) -> Seen | None:
    """
    >>> seen("w1_scc", DIFFERENTIAL).milliseconds["insert"]
    (3.6, 11.3)
    >>> seen("w1_grid", DIFFERENTIAL) is None
    True
    """
    found = (each for each in SEEN if (each.workload, each.system) == (workload, system))
    return next(found, None)


# workload, system, load s, then ms median/mean: insert, delete, update, batch (1 % and 1 %); MB
TABLES = {}
TABLES["15 November 2026"] = """\
w1_scc   differential-dataflow    0.62       3.6/11.3      5.07/11.8              -   290    70
w1_scc   Cozo                     2.81      2900/2890      2910/2900              -  2790   163
w1_scc   egglog                   2.09      13.3/6.85        799/400              -   810  1063
w1_scc   Soufflé, interpreted    0.603              -              -              -     -    18
w1_scc   Soufflé, compiled       0.299              -              -              -     -   462
w1_scc   Python by hand          0.094  0.0092/0.0986       1.4/2.57              -  35.8    51
w1_scc   SQLite by hand           1.14     0.101/3.06        2.75/11              -   248    77
w1_scc   DuckDB by hand          0.981      26.5/30.1        346/339              -   672   256
w1_dag   differential-dataflow    1.24      1.41/2.83       1.27/2.2              -   356   145
w1_dag   Python by hand           1.06   0.0662/0.309     0.553/1.95              -   314    83
w1_dag   SQLite by hand           2.68     0.757/1.55       1.85/5.3              -  1060   133
w1_dag   DuckDB by hand          0.786      64.6/65.6        162/202              -  1210   237
w1_grid  Python by hand            1.5  0.0428/0.0584      2.56/2.68              -   211   166
w1_grid  SQLite by hand           9.74     0.979/1.32      8.29/9.12              -   745   246
w1_chain differential-dataflow    1.07        22.4/25        778/706              -  2300    88
w1_chain Python by hand          0.818  0.0248/0.0774        212/209              -   411    58
w1_chain SQLite by hand           1.06      1.95/2.25      1190/1090              -  2380    86
w2       differential-dataflow   0.649      7.49/11.5      7.81/13.8              -   208    88
w3       differential-dataflow    0.72     0.893/48.1        0.85/55              -  1560    71
w4       differential-dataflow   0.531      6.59/14.3        14/21.5              -   153    77
w5_10    differential-dataflow   0.001              -              -  0.0667/0.0803     -     5
w5_10    Python by hand              0              -              -  0.0037/0.0041     -    14
w5_10    SQLite by hand          0.009              -              -    0.104/0.128     -    17
w5_10    pg_ivm                  0.495              -              -      5.17/5.49     -    35
w5_1k    differential-dataflow   0.003              -              -  0.0884/0.0918     -     5
w5_1k    Python by hand          0.004              -              -  0.0056/0.0058     -    16
w5_1k    SQLite by hand           0.01              -              -    0.102/0.109     -    18
w5_1k    pg_ivm                  0.532              -              -      6.45/6.48     -    36
w5_100k  differential-dataflow   0.135              -              -  0.0592/0.0573     -    27
w5_100k  Python by hand          0.541              -              -  0.0064/0.0073     -   175
w5_100k  SQLite by hand          0.502              -              -  0.0799/0.0956     -    94
w5_100k  pg_ivm                   2.24              -              -      5.89/5.78     -   104
w5_1m    Python by hand           5.75              -              -  0.0078/0.0089     -  1485
w5_1m    SQLite by hand           6.57              -              -     0.122/0.13     -   686
w6_500k  Python by hand            0.5  0.0026/0.0027  0.0026/0.0027              -  2.38   132
w6_500k  SQLite by hand           1.04  0.0368/0.0377  0.0306/0.0274              -  13.2   139
w6_500k  pg_ivm                    1.8      1.48/1.51      1.69/1.69              -  33.9   130
w7       differential-dataflow   0.582      2.25/7.53      2.43/8.95              -   293   103
"""
# on a busy machine, so too high: in that run differential-dataflow loaded w1_scc in 2.1 s; medians
# of fewer than five transactions are left out
TABLES["18 November 2026, load average 9 on 2 cores"] = """\
w1_scc   dbsp                      2.14      4.52/19.9      20.1/35.3              -   925   170
w1_dag   dbsp                      2.85      4.68/9.91      1.56/3.48              -   886   251
w1_grid  dbsp                      12.4              -        119/488              - 22255  1576
w1_chain dbsp                      3.13        231/263              -              -  3436   177
w2       dbsp                     0.836      15.8/23.5      10.3/19.9              -   226   252
w4       dbsp                     0.749      13.5/19.2      16.3/23.8              -   171   102
w7       dbsp                     0.993       7.5/13.6        8.92/19              -  1088   126
w5_10    dbsp                   0.00102              -              -     0.236/0.48     -    12
w5_1k    dbsp                   0.00765              -              -    0.338/0.686     -    13
w5_100k  dbsp                     0.655              -              -    0.342/0.899     -    78
w6_500k  dbsp                     0.383    0.173/0.181    0.162/0.171              -  1.67    84
"""

SEEN: Sequence[Seen] = tuple(
    Seen.read(when, line) for when, table in TABLES.items() for line in table.splitlines()
)
