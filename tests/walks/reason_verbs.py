"""The verbs `why`, `why_not` and `why_changed` on a walk, now and in earlier versions.

Proofs are checked by `proof_checker.py`, what blocks and what changed by `reason_checker.py`, over
the facts that naive evaluation gives for the moments of the model. Tables take the same functions
(`tests/pipeline/test_table_walks.py`): a `walker` has a database `db`, a `model` and `run`.
"""

from __future__ import annotations

from typing import Any

from expected import Moment
from proof_checker import check_proof
from reason_checker import Side, check_blocked, check_changed, check_moved_on
from verbs import Drawing, Verb, drawn_request, fits_row
from walker import Action, WrongError

import deltalog
from deltalog.language.ast import Row
from deltalog.language.values import sort_key
from deltalog.runtime.derivation import fact_text
from deltalog.runtime.why.derivations import Derivations
from deltalog.runtime.why.instances import CONTRIBUTORS_MAX
from deltalog.runtime.why.proof import Proof
from deltalog.runtime.why.sets import SetProof
from reference_rules import RefusedError


def side_of(moment: Moment) -> Side:
    return Side(moment.known.checked, moment.state)


def is_view_fact(moment: Moment, name: str, row: Row) -> bool:
    relation = moment.known.relations.get(name)
    return relation is not None and relation.kind == "view" and fits_row(relation, row)


def asking(call: Any, *codes: str) -> Any:
    """The answer, or one of these errors."""
    try:
        return call()
    except deltalog.DataError as error:
        if not set(error.codes) <= set(codes):
            raise
        return error


# --- why ------------------------------------------------------------------------------------------


def why_action(
    db: Any, moment: Moment, fact: tuple[str, Row], form: str, version: int | None = None
) -> Action:
    """A proof of a fact, all its derivations, or the proof of all facts of its view."""
    name, row = fact
    text = fact_text(name, row)
    rows = moment.state[name]
    holds = row in rows
    if form == "set":
        holds = bool(rows)
        text = f"{name}({', '.join(f'V{i}' for i in range(len(row)))})" if row else name
    options: dict[str, Any] = {"every": True} if form == "every" else {}
    if version is not None:
        options["version"] = version

    def check(found: Any) -> None:
        if isinstance(found, deltalog.DataError) == holds:
            raise WrongError(f"{found} of {text}, of {sorted(rows, key=repr)}")
        if holds:
            check_answer(found, moment, fact)

    shown = "".join(f", {key}={value}" for key, value in options.items())
    return Action(
        f"db.why({text!r}{shown})",
        lambda: asking(lambda: db.why(text, **options), "E1502"),
        check,
    )


def check_answer(found: Any, moment: Moment, fact: tuple[str, Row]) -> None:
    """A proof is right step by step; derivations and sets are those of facts that hold."""
    known = moment.known
    everything = {n: set(rows) for n, rows in moment.state.items()}
    match found:
        case Proof():
            if (found.relation, found.row) != fact:
                raise WrongError(f"{found.conclusion} instead of {fact}")
            if all((step.contributors or 0) <= CONTRIBUTORS_MAX for step in found.steps()):
                check_proof(found, known.program, known.relations, everything)
        case Derivations():
            if not found.is_complete:
                raise WrongError(f"{found} is not complete")
            for step in found.steps:
                if step.row not in moment.state[str(step.relation)]:
                    raise WrongError(f"{step.conclusion} does not hold")
        case SetProof():
            if found.count != len(moment.state[fact[0]]):
                raise WrongError(f"{found}, expected {moment.state[fact[0]]}")
            for table in found.tables:
                if not set(table.rows) <= moment.state[table.relation]:
                    raise WrongError(f"{table} has facts that do not hold")


def _drawn_why(drawing: Drawing) -> tuple[Any, ...] | None:
    drawn = drawn_request(drawing)
    if drawn is None:
        return None
    return drawn[0], drawn[1], drawing.rng.choice(("proof", "proof", "every", "set"))


def why(walker: Any, name: str, row: Row, form: str) -> None:
    """The proof of a fact that holds; of one that does not, the error that says so."""
    if is_view_fact(walker.now, name, row):
        walker.run(why_action(walker.db, walker.now, (name, row), form))


def _moment(walker: Any, version: int) -> Moment | None:
    model = walker.model
    return model.moments[version] if model.first <= version <= model.version else None


def why_as_of(walker: Any, version: int, name: str, row: Row, form: str) -> None:
    moment = _moment(walker, version)
    if moment is not None and is_view_fact(moment, name, row):
        walker.run(why_action(walker.db, moment, (name, row), form, version))


# --- why_not --------------------------------------------------------------------------------------


def why_not_action(
    db: Any, moment: Moment, fact: tuple[str, Row], version: int | None = None
) -> Action:
    """What blocks a fact; what would unblock it is applied to the model and recomputed."""
    name, row = fact
    text, holds = fact_text(name, row), row in moment.state[name]
    options = {} if version is None else {"version": version}

    def check(found: Any) -> None:
        if isinstance(found, deltalog.DataError) != holds:
            raise WrongError(f"{found} of {text}, of {moment.state[name]}")
        if holds:
            return
        side = side_of(moment)
        for place, blocked in enumerate(found.rules):
            check_blocked(blocked, side)
            check_moved_on(place, blocked, changed, side, fact)
        if found.realization is not None:
            each = found.realization
            later = _changed(moment, each.base)
            if row not in later.state[name] or later.is_violated:
                raise WrongError(f"{each} does not make {text} true")

    def changed(op: str, relation: str, values: Row) -> Any:
        kind = "insert" if op == "+" else "delete"
        try:
            later = moment.changed(((kind, relation, (values,)),))
        except RefusedError:  # its key is taken
            return None
        return side_of(later), lambda: _reference(later).why_not(text)

    shown = "" if version is None else f", version={version}"
    return Action(
        f"db.why_not({text!r}{shown})",
        lambda: asking(lambda: db.why_not(text, **options), "E1503"),
        check,
    )


def _changed(moment: Moment, base: deltalog.ChangeSet) -> Moment:
    deleted = (("delete", n, tuple(rows)) for n, rows in base.deleted.items())
    inserted = (("insert", n, tuple(rows)) for n, rows in base.inserted.items())
    return moment.changed((*deleted, *inserted))


def _reference(moment: Moment) -> deltalog.MemoryDatabase:
    """A database of its own; constraints may be violated in what is only tried."""
    text = moment.text.replace("deny immediate", "deny").replace("deny view", "deny")
    program = text.replace("deny ", "deny view ").replace("require ", "require view ")
    return deltalog.connect(program=program, facts=moment.base, engine="reference")


def why_not(walker: Any, name: str, row: Row, *_: str) -> None:
    """What blocks a fact that does not hold; of one that does, the error that says so."""
    if is_view_fact(walker.now, name, row):
        walker.run(why_not_action(walker.db, walker.now, (name, row)))


def why_not_as_of(walker: Any, version: int, name: str, row: Row, *_: str) -> None:
    moment = _moment(walker, version)
    if moment is not None and is_view_fact(moment, name, row):
        walker.run(why_not_action(walker.db, moment, (name, row), version))


def _drawn_as_of(drawing: Drawing) -> tuple[Any, ...] | None:
    drawn = _drawn_why(drawing)
    return None if drawn is None else (drawing.version(), *drawn)


# --- why_changed ----------------------------------------------------------------------------------


def why_changed_action(
    db: Any, before: Moment, after: Moment, number: int, version: int | None
) -> Action | None:
    """The causes of one of the changes of a version, transactions and changes of programs alike."""
    changes = sorted(before.to(after), key=lambda each: (each[1], each[0], sort_key(each[2])))
    arguments = () if version is None else (version,)
    if not changes:
        held = [(n, r) for n, rows in sorted(after.state.items()) for r in rows]
        if not held:
            return None
        text = fact_text(*min(held, key=repr))
        return Action(
            f"db.why_changed({text!r}, {version})",
            lambda: db.why_changed(text, *arguments),
            error="E1505",
        )
    op, name, row = changes[number % len(changes)]
    text = fact_text(name, row)

    def check(found: Any) -> None:
        if found.op != op:
            raise WrongError(f"{found}, expected {op}{text}")
        check_changed(found, (name, row), side_of(before), side_of(after))

    line = f"db.why_changed({text!r}, {version})"
    return Action(line, lambda: db.why_changed(text, *arguments), check)


def why_changed(walker: Any, number: int) -> None:
    """The last change; a database in memory that had none says so."""
    model = walker.model
    if model.version == model.first:
        if not walker.is_file and walker.now.known.relations:
            relation = next(iter(walker.now.known.relations.values()))
            text = f"{relation.name}({', '.join('null' for _ in relation.columns)})"
            line = f"db.why_changed({text!r})"
            walker.run(Action(line, lambda: walker.db.why_changed(text), error="E1506"))
        return
    before, after = model.moments[model.version - 1], walker.now
    action = why_changed_action(walker.db, before, after, number, None)
    if action is not None:
        walker.run(action)


def why_changed_in(walker: Any, version: int, number: int) -> None:
    """A change of any version; the first that there is has none before it."""
    model = walker.model
    if not model.first <= version <= model.version:
        return
    if version == model.first:
        return
    before, after = model.moments[version - 1], model.moments[version]
    action = why_changed_action(walker.db, before, after, number, version)
    if action is not None:
        walker.run(action)


def _drawn_version(drawing: Drawing) -> tuple[Any, ...]:
    return drawing.version(), drawing.rng.randint(0, 99)


REASONS = {
    "why": Verb(_drawn_why, why, 2),
    "why_as_of": Verb(_drawn_as_of, why_as_of, 1, "file"),
    "why_not": Verb(drawn_request, why_not, 1),
    "why_not_as_of": Verb(_drawn_as_of, why_not_as_of, 1, "file"),
    "why_changed": Verb(lambda d: (d.rng.randint(0, 99),), why_changed, 2),
    "why_changed_in": Verb(
        lambda d: (d.version(), d.rng.randint(0, 99)), why_changed_in, 2, "file"
    ),
}
