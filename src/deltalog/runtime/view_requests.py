"""Changes of views by declared choices, as a transaction makes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from deltalog.diagnostics import view_catalogue
from deltalog.diagnostics.report import DataError
from deltalog.language.ast import Row, UpdateChoice
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.realization import Wish

if TYPE_CHECKING:
    from deltalog.runtime.database import MemoryDatabase


class ViewRequests:
    """The choices that a program declares, and whether they do what is requested."""

    def __init__(self, database: MemoryDatabase) -> None:
        self._database = database

    def choice(self, holds: bool, view: str) -> UpdateChoice | None:
        from deltalog.runtime.update_choices import choice_of  # which imports the database

        return choice_of(self._database.model.checked.program.update_choices, holds, view)

    def translated(self, choice: UpdateChoice, row: Row) -> list[Wish]:
        from deltalog.runtime.update_choices import translate_request  # which imports the database

        return translate_request(choice, row, self._database.model.checked.relations)

    def holds(self, wish: Wish, change: ChangeSet) -> bool:
        """Whether a wish is fulfilled after a net change of base relations."""
        from deltalog.runtime.hypothetical import Hypothetical  # which imports the database

        with self._database.turn():
            state = Hypothetical(self._database, change)
            return state.holds(wish.relation, wish.row) == wish.holds

    def check(self, wishes: Iterable[Wish], change: ChangeSet) -> None:
        """Refuse a change that does not fulfil what its choices were asked for."""
        for wish in wishes:
            if not self.holds(wish, change):
                sign = "+" if wish.holds else "-"
                hint = f"`db.realize({str(wish)!r})` finds the changes that do"
                raise DataError(
                    [
                        view_catalogue.CHOICE_FAILED.at(
                            None, request=f"{sign}{wish.relation}", hint=hint
                        )
                    ]
                )
