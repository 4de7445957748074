"""The errors of view updates and disjunctive rules; `catalogue.py` has all others."""

from __future__ import annotations

from deltalog.diagnostics.entry import Entry

CONTRADICTING_REQUESTS = Entry("E1401", "the requests `{one}` and `{other}` contradict each other")
REQUEST_OUTDATED = Entry(
    "E1402",
    "the database has changed since version {version}, for which realizations are searched",
    "a realization holds for one state; request it again",
)
DISJUNCTIVE_HEAD = Entry(
    "E1403",
    "a database cannot hold a rule with several heads",
    "such a program has several models, and a database has one state",
)
AGGREGATE_REQUESTED = Entry(
    "E1404",
    "`{name}` is an aggregate, which the first level knows no request for",
    "view-update rules exist for joins, differences, unions and projections",
)
