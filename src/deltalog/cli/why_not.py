"""`deltalog why-not`: what blocks a fact that does not hold.

deltalog why-not graph.dl 'path(3, 1)'
path(3, 1) does not hold
  graph.dl:3   path(X, Y) :- edge(X, Y).
    blocked by edge(3, 1): no such fact
  +edge(3, 1) would make it true
"""

from __future__ import annotations

from deltalog.cli.explain import OutputOptions
from deltalog.cli.option_groups import FactFiles, LimitOptions
from deltalog.cli.options import GivenFile
from deltalog.cli.why import AsOf, Fact, Sentences, open_to_prove, write_reason

EXAMPLE = 'deltalog why-not shop.db \'sees("eve", "plan")\''


def why_not(
    file: GivenFile,
    fact: Fact,
    *,
    version: AsOf = None,
    sentences: Sentences = False,
    written: OutputOptions,
    files: FactFiles,
    limits: LimitOptions,
) -> None:
    """Show what blocks a fact: for every rule the literal that its nearest instance fails by.

    Also shown is a change of base facts that would make it true; nothing is changed.
    """
    with open_to_prove(file, files, limits) as database:
        found = database.why_not(fact, version=version)
        write_reason(found, sentences, written)
