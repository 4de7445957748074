"""Stratification: nothing depends on its own negation or on an aggregate of itself."""

from __future__ import annotations

from collections.abc import Iterator

from deltalog.analysis.dependencies import Dependency
from deltalog.analysis.stratification import Stratification
from deltalog.diagnostics import catalogue
from deltalog.diagnostics.report import Diagnostic, Label


def check_stratified(found: Stratification) -> Iterator[Diagnostic]:
    for cycle in found.cycles:
        first, *rest = cycle
        entry = catalogue.NEGATION_CYCLE if first.kind == "negative" else catalogue.AGGREGATE_CYCLE
        labels = [Label(arc.span, _describe_arc(arc)) for arc in rest if arc.span is not None]
        yield entry.at(first.span, *labels, label=_describe_arc(first), name=first.head)


def _describe_arc(arc: Dependency) -> str:
    verb = {"positive": "needs", "negative": "negates", "aggregate": "aggregates"}[arc.kind]
    return f"`{arc.head}` {verb} `{arc.body}`"
