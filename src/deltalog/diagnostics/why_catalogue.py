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
NO_PROOF_FOUND = Entry(
    "E1504",
    "no proof of `{fact}` was found among {count} facts",
    "a search of proofs is bounded by `facts_max`",
)
