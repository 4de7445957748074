"""Plans as short integer programs: records of words, whose layouts are in `kernels/layout.py`.

    path(X, Z) :- path(X, Y), edge(Y, Z).

    pipeline   2 steps, both decide, 2 outputs, …   outputs: slot 0, slot 2
    match      scan of `path`, binds columns 0, 1 to slots 0, 1
    match      `edge` by its index on column 0, key: slot 1, binds column 1 to slot 2

Relations are addresses, everything else is counted in words from the beginning of the code. The
first `deciding` steps of a pipeline bind all outputs, so one way through the others is enough.
Rules that the kernels cannot run (`UntranslatableError`) are left to the interpreter.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from deltalog.engines.embedded.codec import Codec
from deltalog.engines.embedded.kernels import layout
from deltalog.plan.nodes import (
    Absent,
    Aggregation,
    Assign,
    Compute,
    Fixed,
    Match,
    Operand,
    Overlay,
    Pipeline,
    RankedDeletion,
    RulePlan,
    Slot,
    Step,
    Test,
    Total,
    Window,
)

if TYPE_CHECKING:
    from deltalog.engines.embedded.relation import EmbeddedRelation

_WINDOWS = {Window.ALL: layout.ALL, Window.OLD: layout.OLD, Window.NEW: layout.NEW}
_OPERATORS = {
    "=": layout.EQUAL,
    "!=": layout.UNEQUAL,
    "<": layout.LESS,
    "<=": layout.LESS_EQUAL,
    ">": layout.GREATER,
    ">=": layout.GREATER_EQUAL,
}
_KINDS = dict.fromkeys(("int", "date", "timestamp", "bool"), layout.INT)
_KINDS |= {"float": layout.FLOAT, "str": layout.TEXT}
_NUMBERS = {
    ("+", 2): layout.ADD,
    ("-", 2): layout.SUBTRACT,
    ("*", 2): layout.MULTIPLY,
    ("/", 2): layout.DIVIDE,
    ("-", 1): layout.NEGATE,
    ("abs", 1): layout.ABSOLUTE,
    ("least", 2): layout.LEAST,
    ("greatest", 2): layout.GREATEST,
}
_FUNCTIONS: dict[tuple[str, str, int], tuple[int, int]] = {
    **{(name, "int", n): (f, layout.INT) for (name, n), f in _NUMBERS.items()},
    **{(name, "float", n): (f, layout.FLOAT) for (name, n), f in _NUMBERS.items()},
    ("mod", "int", 2): (layout.MODULO, layout.INT),
    ("float", "int", 1): (layout.TO_FLOAT, layout.INT),
    ("int", "int", 1): (layout.SAME, layout.INT),
    ("float", "float", 1): (layout.SAME, layout.FLOAT),
    ("+", "date,int", 2): (layout.ADD, layout.DATE),
    ("-", "date,int", 2): (layout.SUBTRACT, layout.DATE),
    ("-", "date", 2): (layout.SUBTRACT, layout.INT),
    ("high__", "int", 1): (layout.HIGH, layout.INT),
    ("low__", "int", 1): (layout.LOW, layout.INT),
    ("whole__", "int", 2): (layout.WHOLE, layout.INT),
    ("ratio__", "int", 3): (layout.RATIO, layout.INT),
}
_TOTALS = {
    "count": layout.COUNT,
    "sum": layout.SUM,
    "avg": layout.AVG,
    "min": layout.MIN,
    "max": layout.MAX,
}
OUTPUTS_MAX = layout.KEYS_MAX - 1


class UntranslatableError(Exception):
    """The kernels do not know this operation."""


class Translation:
    """The code of one part, with the relations it needs for itself."""

    def __init__(self, codec: Codec, relations: Mapping[str, EmbeddedRelation]) -> None:
        self.codec = codec
        self.relations = relations
        self.code: list[int] = []
        self.groups: list[EmbeddedRelation] = []
        self.pipelines: list[tuple[int, int]] = []
        """Place of each one, and the use of the rows that it emits."""

    def finished(self) -> array[int]:
        return array("q", self.code)

    def rules(self, plans: tuple[RulePlan, ...]) -> list[int]:
        """Translate a part; returns where each rule is, -1 for one that kernels cannot run."""
        heads = list(dict.fromkeys(plan.head for plan in plans))
        start = layout.PART_HEADER + len(heads)
        self.code = [layout.RULES, len(heads), 0, *(self._address_of(head) for head in heads)]
        self.code += [0] * len(plans)
        where = []
        for plan in plans:
            kept = len(self.code)
            try:
                where.append(self._translate_rule(plan))
            except UntranslatableError:
                del self.code[kept:]
                self.pipelines = [entry for entry in self.pipelines if entry[0] < kept]
                where.append(-1)
        known = [at for at in where if at >= 0]
        self.code[layout.PART_RULES] = len(known)
        self.code[start : start + len(known)] = known
        return where

    def deletion(self, plan: RankedDeletion) -> None:
        """A ranked deletion; it is translated wholly or not at all."""
        count = len(plan.predicates)
        deleted = [self._address_of(name) for name in plan.deleted]
        doubtful = [self._address_of(name) for name in plan.doubtful]
        self.code = [layout.DELETION, count, 0, *([0] * count), *deleted, *doubtful]
        number_of = {name: number for number, name in enumerate(plan.predicates)}
        for number, name in enumerate(plan.predicates):
            lost = [
                (number_of[head], self.pipeline(used, int(layout.SUSPECT)))
                for head, used in plan.lost[number]
            ]
            support = [self.pipeline(each, int(layout.FIRST)) for each in plan.support[number]]
            self.code[layout.PART_HEADER + number] = len(self.code)
            self.code += [self._address_of(name), self._address_of(plan.suspects[number])]
            self.code += [deleted[number], doubtful[number], len(lost), len(support), number]
            self.code += [word for pair in lost for word in pair] + support

    def _address_of(self, relation: str) -> int:
        return self.relations[relation].address

    def _translate_rule(self, plan: RulePlan) -> int:
        initial = -1 if plan.initial is None else self.pipeline(plan.initial)
        variants = [self.pipeline(variant) for variant in plan.variants]
        aggregation = 0 if plan.aggregation is None else self._translate_aggregation(plan)
        start = len(self.code)
        self.code += [self._address_of(plan.head), initial, 0, len(variants), aggregation]
        for occurrence, variant in zip(plan.occurrences, variants, strict=True):
            self.code += [self._address_of(occurrence), 0, variant]
        return start

    def _translate_aggregation(self, plan: RulePlan) -> int:
        from deltalog.engines.embedded.relation import EmbeddedRelation

        aggregation = plan.aggregation
        assert aggregation is not None
        totals = [part for part in aggregation.head if isinstance(part, Total)]
        if any(not _is_known(total) for total in totals) or len(aggregation.head) > OUTPUTS_MAX:
            raise UntranslatableError
        bindings = self.pipeline(aggregation.bindings, int(layout.TOTALS))
        width = aggregation.bindings.inputs
        engine = self.relations[plan.head].engine
        groups = EmbeddedRelation(engine, ("int",) * width)
        self.groups.append(groups)
        start = len(self.code)
        self.code += [groups.address, bindings, width, len(aggregation.head), len(totals)]
        self.code += self._translate_head_parts(aggregation)
        for total in totals:
            kind = self._kind_of_type(str(total.type)) if total.function in ("min", "max") else 0
            self.code += [_TOTALS[total.function], kind, total.column or 0]
        return start

    def _translate_head_parts(self, aggregation: Aggregation) -> list[int]:
        words: list[int] = []
        number = 0
        for part in aggregation.head:
            if isinstance(part, Total):
                words += [layout.FROM_TOTAL, number]
                number += 1
            else:
                words += self._translate_value(part)
        return words

    def pipeline(self, plan: Pipeline, mode: int = int(layout.INTO)) -> int:
        """Translate a pipeline; returns its place."""
        if (
            plan.slots >= layout.SLOTS_MAX
            or len(plan.output) > OUTPUTS_MAX
            or len(plan.steps) >= layout.FRAMES_MAX
        ):
            raise UntranslatableError
        steps = [
            self._translate_some(step) if _is_some(plan, number) else self._translate_step(step)
            for number, step in enumerate(plan.steps)
        ]
        start = len(self.code)
        once = self._makes_rows_once(plan)
        self.code += [len(plan.steps), _count_deciding(plan), len(plan.output), once, 0, 0, *steps]
        for value in plan.output:
            self.code += self._translate_value(value)
        self.pipelines.append((start, mode))
        return start

    def _makes_rows_once(self, plan: Pipeline) -> int:
        """Whether every row emitted determines which rows it was made of, so that none comes twice.

        Steps behind those that decide only ask whether there is something, so they make no row
        twice. A relation is a set, and what an overlay adds is not in the rest of it. Of a relation
        that is walked first it need not be known which row it was if there is but one.
        """
        known = {value.index for value in plan.output if isinstance(value, Slot)}
        matches = [step for step in plan.steps[: _count_deciding(plan)] if isinstance(step, Match)]
        if self._are_determined(matches, known):
            return layout.ONCE
        first = plan.steps[0] if plan.steps else None
        if isinstance(first, Match) and isinstance(first.relation, str) and not first.key:
            known |= {slot.index for _, slot in first.bind}
            if self._are_determined(matches[1:], known):
                return layout.ONCE_A_ROW
        return 0

    def _are_determined(self, matches: list[Match], known: set[int]) -> bool:
        return all(
            {slot.index for _, slot in step.bind} <= known
            and len(step.key) + len(step.bind) + len(step.same) == self._arity_of(step.relation)
            for step in matches
        )

    def _arity_of(self, relation: str | Overlay) -> int:
        return self.relations[relation.stored if isinstance(relation, Overlay) else relation].arity

    def _translate_value(self, value: Slot | Fixed) -> list[int]:
        if isinstance(value, Slot):
            return [layout.FROM_SLOT, value.index]
        return [layout.FROM_CODE, self.codec.constant(value.value, value.type)]

    def _translate_step(self, step: Step) -> int:
        match step:
            case Match() | Absent():
                return self._translate_match(step)
            case Test():
                return self._translate_test(step)
            case Assign():
                value = self._translate_expression(step.value)
                start = len(self.code)
                self.code += [layout.ASSIGN, step.slot.index, value]
                return start

    def _translate_match(self, step: Match | Absent) -> int:
        overlay = step.relation if isinstance(step.relation, Overlay) else None
        stored = self.relations[overlay.stored if overlay else str(step.relation)]
        plus = self.relations[overlay.plus] if overlay and overlay.plus is not None else None
        columns = [column for column, _ in step.key]
        if len(step.key) > OUTPUTS_MAX:
            raise UntranslatableError
        if len(step.key) == stored.arity:
            mode = layout.BY_ROW
        else:
            mode = layout.BY_INDEX if step.key else layout.SCAN
        is_indexed = mode == layout.BY_INDEX
        is_match = isinstance(step, Match)
        bind = step.bind if isinstance(step, Match) else ()
        same = step.same if isinstance(step, Match) else ()
        start = len(self.code)
        self.code += [
            layout.MATCH if is_match else layout.ABSENT,
            mode,
            stored.address,
            self._address_of(overlay.minus) if overlay else 0,
            plus.address if plus is not None else 0,
            int(overlay is not None),
            _WINDOWS[step.window] if isinstance(step, Match) else layout.ALL,
            step.occurrence if isinstance(step, Match) else 0,
            int(isinstance(step, Match) and step.is_ranked),
            stored.index(columns) if is_indexed else 0,
            plus.index(columns) if is_indexed and plus is not None else 0,
            len(step.key),
            len(bind),
            len(same),
        ]
        for column, value in step.key:
            self.code += [column, *self._translate_value(value)]
        for column, slot in (*bind, *same):
            self.code += [column, slot.index]
        return start

    def _translate_some(self, step: Step) -> int:
        assert isinstance(step, Match | Absent)
        overlay = step.relation if isinstance(step.relation, Overlay) else None
        stored = overlay.stored if overlay else str(step.relation)
        minus = self._address_of(overlay.minus) if overlay else 0
        plus = self._address_of(overlay.plus) if overlay and overlay.plus is not None else 0
        start = len(self.code)
        is_wanted = int(isinstance(step, Match))
        self.code += [layout.SOME, is_wanted, self._address_of(stored), minus, plus]
        return start

    def _kind_of_type(self, type_: str) -> int:
        if type_ not in _KINDS:
            raise UntranslatableError
        if type_ == "str":
            self.codec.sort_texts()
        return _KINDS[type_]

    def _translate_test(self, step: Test) -> int:
        if step.operator not in _OPERATORS:
            raise UntranslatableError
        is_order = step.operator not in ("=", "!=")
        kind = self._kind_of_type(step.type) if is_order else layout.WORD
        left, right = self._translate_expression(step.left), self._translate_expression(step.right)
        start = len(self.code)
        self.code += [layout.TEST, _OPERATORS[step.operator], kind, left, right]
        return start

    def _translate_expression(self, operand: Operand) -> int:
        words = self._postfix_words(operand)
        if len(words) >= 2 * layout.STACK_MAX:
            raise UntranslatableError
        start = len(self.code)
        self.code += [*words, layout.STOP]
        return start

    def _postfix_words(self, operand: Operand) -> list[int]:
        if isinstance(operand, Slot):
            return [layout.PUSH_SLOT, operand.index]
        if isinstance(operand, Fixed):
            return [layout.PUSH_WORD, self.codec.constant(operand.value, operand.type)]
        return self._postfix_of_function(operand)

    def _postfix_of_function(self, operand: Compute) -> list[int]:
        inner = [word for each in operand.operands for word in self._postfix_words(each)]
        count = len(operand.operands)
        found = _FUNCTIONS.get((operand.function, operand.type, count))
        if found is None:
            raise UntranslatableError
        return [*inner, layout.APPLY, *found, count]


def _is_some(plan: Pipeline, number: int) -> bool:
    """Whether a step only asks if a relation with columns has any rows."""
    step = plan.steps[number]
    if isinstance(step, Absent):
        return not step.key
    if not isinstance(step, Match) or step.key or step.same or not step.bind:
        return False
    bound = {slot for _, slot in step.bind}
    read = {slot for later in plan.steps[number + 1 :] for slot in _slots_read_by(later)}
    is_used = bound & {*read, *plan.output}
    return not is_used and step.window is Window.ALL and not step.is_ranked


def _slots_read_by(step: Step) -> Iterator[Slot]:
    """The slots that a step reads."""
    match step:
        case Match() | Absent():
            operands: tuple[Operand, ...] = tuple(value for _, value in step.key)
        case Test():
            operands = (step.left, step.right)
        case Assign():
            operands = (step.value,)
    waiting = list(operands)
    while waiting:
        operand = waiting.pop()
        if isinstance(operand, Slot):
            yield operand
        elif isinstance(operand, Compute):
            waiting += operand.operands


def _count_deciding(plan: Pipeline) -> int:
    """How many steps it takes until every output has its value."""
    wanted = {value.index for value in plan.output if isinstance(value, Slot)}
    count = 0
    for number, step in enumerate(plan.steps, start=1):
        match step:
            case Match():
                bound = {slot.index for _, slot in step.bind}
            case Assign():
                bound = {step.slot.index}
            case _:
                continue
        if bound & wanted:
            count = number
    return count


def _is_known(total: Total) -> bool:
    """Whether kernels can compute a total: sums of ints, and ends of what they can compare."""
    if total.function == "count":
        return True
    if total.function in ("sum", "avg"):
        return total.type == "int"
    return total.type in _KINDS
