"""Relations that describe the program: its relations, columns, types, constraints and rules.

    ? sys_rule(Name, Priority, true).
    ? sys_column(R, _, C, "decimal", _, _), sys_relation(R, "base", _).

Only queries read them, and no relation of a program has such a name.
"""

from __future__ import annotations

from deltalog.analysis.relation import Relation, Relations
from deltalog.language.ast import Column

SYSTEM_PREFIX = "sys_"


def _system_relation(name: str, /, **columns: str) -> Relation:
    return Relation(name, "view", tuple(Column(each, type_) for each, type_ in columns.items()))


SYSTEM_RELATIONS: Relations = {
    relation.name: relation
    for relation in (
        _system_relation("sys_type", name="str"),
        _system_relation("sys_relation", name="str", kind="str", stored="bool"),
        _system_relation(
            "sys_column",
            relation="str",
            position="int",
            name="str",
            type="str",
            nullable="bool",
            key="bool",
        ),
        _system_relation(
            "sys_constraint", name="str", relation="str", mode="str", immediate="bool"
        ),
        _system_relation("sys_rule", name="str", priority="int", active="bool"),
        _system_relation(
            "sys_dead_letter",
            target="str",
            sequence="int",
            id="str",
            rule="str",
            name="str",
            payload="str",
            attempts="int",
            error="str",
            time="timestamp",
        ),
    )
}
