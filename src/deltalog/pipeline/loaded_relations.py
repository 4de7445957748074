"""Relations of a state that were loaded into this process, and the models they are used with."""

from __future__ import annotations

from dataclasses import replace

from deltalog.checks.program import check_program
from deltalog.engines.base import Engine
from deltalog.language.ast import Row
from deltalog.pipeline.state_tables import kept_relations
from deltalog.runtime.changes import ChangeSet
from deltalog.runtime.engine_choice import DEFAULT_ENGINE, ENGINES
from deltalog.runtime.evaluation import create_relations
from deltalog.runtime.model import Model, Options, make_model, query_model
from deltalog.store.programs import stored_program


class LoadedRelations:
    """Stored relations of a model that were loaded into an engine of this process."""

    def __init__(self, model: Model, engine: Engine | None = None) -> None:
        self.model = model
        self.engine: Engine = ENGINES[DEFAULT_ENGINE]() if engine is None else engine
        self.names: set[str] = set()
        if engine is None:
            create_relations(self.engine, {name: model.relations[name] for name in model.stored})

    def load(self, name: str, rows: set[Row]) -> None:
        self.engine.insert(name, rows)
        self.names.add(name)

    def follow(self, name: str, net: ChangeSet | None) -> None:
        """Apply a change to a relation, or forget it if the change is too large to be known."""
        if name not in self.names:
            return
        if net is None:
            self.engine.clear(name)
            self.names.discard(name)
        else:
            self.engine.delete(name, net.deleted[name])
            self.engine.insert(name, net.inserted[name])


def two_models(text: str) -> tuple[Model, Model]:
    """Two models of one program: over what the state stores, and with virtual views only."""
    checked = stored_program(text)
    stored = kept_relations(text).keys() & checked.relations.keys()
    made = checked.program
    declarations = tuple(
        each if each.storage is None else replace(each, storage="virtual")
        for each in made.declarations
    )
    virtual = check_program(replace(made, declarations=declarations))
    options = Options(materialize=False, strategy="demand")
    return query_model(checked, frozenset(stored)), make_model(virtual, options)
