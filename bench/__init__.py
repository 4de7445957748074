"""Measured figures: `make bench`, or `python -m bench --help`.

Seven questions, one module each:

    embedded           what does the embedded engine do at full size: beside the limit, which is a
                       closure by hand, beside differential-dataflow and dbsp, and against targets?
    installing         what does a program of 1,000 rules cost to open, and a changed rule?
    single_changes     what does a single change cost, by workload, strategy and engine?
    follows_change     does the cost follow the change, or the data?
    crossover          how much must change before recomputing is cheaper?
    ranked_deletion    what does the rank of first derivation save when facts are deleted?
    spark              what does a change cost on Spark, beside recomputing by hand there? Only when
                       it is asked for: `python -m bench --parts spark`

Figures are ratios measured side by side in one run: everything that is compared does the same
transactions on the same facts, and gives the same deltas, or there is no figure at all. Absolute
times are orders of magnitude; facts generated do not depend on the machine.

`bench.soak` is no benchmark: it makes a million transactions, and audits.
"""
