"""The errors of `why`, `why_not` and `why_changed`; `ENTRIES` of `catalogue.py` has them, too."""

from __future__ import annotations

from deltalog.diagnostics.entry import Entry

NOT_A_FACT = Entry(
    "E1501",
    "`{text}` is not a fact",
    "a fact is one relation with a value for every column, as in `path(1, 3)`; only `why` takes "
    "variables, too",
)
DOES_NOT_HOLD = Entry("E1502", "`{fact}` does not hold{when}")
HOLDS = Entry("E1503", "`{fact}` holds{when}")
NO_PROOF_FOUND = Entry(
    "E1504",
    "no proof of `{fact}` was found among {count} facts",
    "a search of proofs is bounded by `facts_max`",
)
NOT_CHANGED = Entry("E1505", "{when} did not change `{fact}`")
NO_TRANSACTION = Entry(
    "E1506",
    "there is no transaction to explain",
    "a database in memory knows what changed it last since it was opened",
)
NO_PREDECESSOR = Entry(
    "E1508",
    "version {version} has no version before it",
    "the log leads back to version {first}; a change is what leads from one version to the next",
)
