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
    "`{name}` is an aggregate, through which nothing can be requested",
    "view-update rules exist for joins, differences, unions and projections",
)
NOT_IN_MODELS = Entry(
    "E1405",
    "{what} cannot be in a program whose models are asked for",
    "such a program has declarations, facts, and rules whose heads have variables and values",
)
TOO_MANY_MODELS = Entry(
    "E1406", "there are more than {most} {what}", "minimal models can be exponentially many"
)
NO_REPAIRS = Entry(
    "E1407",
    "there is no change that could be repaired",
    "repairs are those of a change that a constraint refused, where it was refused",
)
BAD_CHOICE = Entry(
    "E1408",
    "{reason}",
    "a choice is `to insert VIEW(X, Y) do insert BASE(X, Y).`: different variables of a view, then "
    "`insert` and `delete` of base facts made of these and of values",
)
CHOICE_TWICE = Entry("E1409", "there are two choices for `{kind} {name}`")
CHOICE_FAILED = Entry(
    "E1410",
    "the choice for `{request}` does not realize it here",
    "a declared choice is applied only where it does what is requested",
)
