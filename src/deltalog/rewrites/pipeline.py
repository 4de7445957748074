"""Which rewrites run, in which order, and why: the order is data.

`deltalog explain --after NAME` shows the program after a pass; an optional pass is left out with
`--without NAME`, which changes what is computed on the way but never an answer.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pass:
    """A rewrite by name, with what it is for and why it stands where it stands."""

    name: str
    purpose: str
    reason: str
    is_optional: bool = False


DESUGAR = Pass(
    "desugar",
    "name expressions, distribute disjunctions, write out types",
    "first: every later pass expects arguments to be variables or constants",
)
MAGIC_SETS = Pass(
    "magic_sets",
    "derive only what the query needs",
    "after desugar: adornments follow the evaluation order of flat bodies",
    is_optional=True,
)

EVALUATE = (DESUGAR,)
QUERY = (DESUGAR, MAGIC_SETS)

PASSES = {each.name: each for each in (*EVALUATE, *QUERY)}
