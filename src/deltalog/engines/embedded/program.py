"""Pipelines as short integer programs.

    [steps, slots, outputs, address of each step…, outputs as (kind, value)…]
    match:  [1, mode, stored, minus, plus, is overlay, window, occurrence, is ranked, index,
             index of plus, keys, binds, sames, keys as (column, kind, value)…,
             binds as (column, slot)…, sames as (column, slot)…]

Kind 0 is a slot, kind 1 a word. `UntranslatableError` says what the kernels cannot do; such a rule
is run by the interpreter instead.
"""

from __future__ import annotations

from collections.abc import Callable

from deltalog.engines.embedded import kernel
from deltalog.engines.embedded.codec import Codec
from deltalog.plan.nodes import (
    Absent,
    Assign,
    Compute,
    Fixed,
    Match,
    Operand,
    Overlay,
    Pipeline,
    Slot,
    Test,
    Window,
)

_WINDOWS = {Window.ALL: kernel.ALL, Window.OLD: kernel.OLD, Window.NEW: kernel.NEW}
_OPERATORS = {"=": 0, "!=": 1, "<": 2, "<=": 3, ">": 4, ">=": 5}
_KINDS = {"int": kernel.INT, "date": kernel.INT, "timestamp": kernel.INT, "bool": kernel.INT}
_KINDS["float"] = kernel.FLOAT
_FUNCTIONS = {
    ("+", 2): kernel.ADD,
    ("-", 2): kernel.SUBTRACT,
    ("*", 2): kernel.MULTIPLY,
    ("/", 2): kernel.DIVIDE,
    ("mod", 2): kernel.MODULO,
    ("-", 1): kernel.NEGATE,
    ("abs", 1): kernel.ABSOLUTE,
}
SLOTS_MAX, STACK_MAX = 60, 30


class UntranslatableError(Exception):
    """The kernels do not know this operation."""


class Translation:
    """Appends pipelines to one code; relations and indexes are given as numbers by the engine."""

    def __init__(
        self,
        codec: Codec,
        number: Callable[[str], int],
        index: Callable[[str, int], int],
        arity: Callable[[str], int],
    ) -> None:
        self.codec = codec
        self.number = number
        self.index = index
        self.arity = arity
        self.code: list[int] = []

    def pipeline(self, pipeline: Pipeline) -> int:
        """The address of the translated pipeline."""
        if pipeline.slots > SLOTS_MAX or len(pipeline.output) > SLOTS_MAX:
            raise UntranslatableError
        addresses = [self._step(step) for step in pipeline.steps]
        start = len(self.code)
        self.code += [len(pipeline.steps), pipeline.slots, len(pipeline.output), *addresses]
        for value in pipeline.output:
            self.code += self._value(value)
        return start

    def _value(self, value: Slot | Fixed) -> list[int]:
        if isinstance(value, Slot):
            return [0, value.index]
        return [1, self.codec.word(value.value, value.type)]

    def _step(self, step: Match | Absent | Test | Assign) -> int:
        match step:
            case Match() | Absent():
                return self._match(step)
            case Test():
                return self._test(step)
            case Assign():
                value = self._expression(step.value)
                start = len(self.code)
                self.code += [kernel.ASSIGN, step.slot.index, value]
                return start

    def _match(self, step: Match | Absent) -> int:
        overlay = step.relation if isinstance(step.relation, Overlay) else None
        stored = overlay.stored if overlay else str(step.relation)
        columns = sum(1 << column for column, _ in step.key)
        if len(step.key) == self.arity(stored):
            mode = kernel.BY_ROW
        else:
            mode = kernel.BY_INDEX if step.key else kernel.SCAN
        is_indexed = mode == kernel.BY_INDEX
        plus = overlay.plus if overlay else None
        bind = step.bind if isinstance(step, Match) else ()
        same = step.same if isinstance(step, Match) else ()
        start = len(self.code)
        self.code += [
            kernel.MATCH if isinstance(step, Match) else kernel.ABSENT,
            mode,
            self.number(stored),
            self.number(overlay.minus) if overlay else -1,
            self.number(plus) if plus is not None else -1,
            int(overlay is not None),
            _WINDOWS[step.window] if isinstance(step, Match) else kernel.ALL,
            step.occurrence if isinstance(step, Match) else 0,
            int(isinstance(step, Match) and step.is_ranked),
            self.index(stored, columns) if is_indexed else 0,
            self.index(plus, columns) if is_indexed and plus is not None else 0,
            len(step.key),
            len(bind),
            len(same),
        ]
        for column, value in step.key:
            self.code += [column, *self._value(value)]
        for column, slot in (*bind, *same):
            self.code += [column, slot.index]
        return start

    def _test(self, step: Test) -> int:
        if step.operator not in _OPERATORS:
            raise UntranslatableError
        is_order = step.operator not in ("=", "!=")
        if is_order and step.type not in _KINDS:
            raise UntranslatableError
        left, right = self._expression(step.left), self._expression(step.right)
        start = len(self.code)
        kind = _KINDS.get(step.type, kernel.WORD)
        self.code += [kernel.TEST, _OPERATORS[step.operator], kind, left, right]
        return start

    def _expression(self, operand: Operand) -> int:
        words = self._postfix(operand)
        if len(words) > STACK_MAX * 4:
            raise UntranslatableError
        start = len(self.code)
        self.code += [*words, kernel.STOP]
        return start

    def _postfix(self, operand: Operand) -> list[int]:
        if isinstance(operand, Slot):
            return [kernel.PUSH_SLOT, operand.index]
        if isinstance(operand, Fixed):
            return [kernel.PUSH_WORD, self.codec.word(operand.value, operand.type)]
        return self._applied(operand)

    def _applied(self, operand: Compute) -> list[int]:
        inner = [word for each in operand.operands for word in self._postfix(each)]
        count = len(operand.operands)
        if operand.function == "float" and operand.type == "int":
            return [*inner, kernel.APPLY, kernel.TO_FLOAT, kernel.INT, 1]
        function = _FUNCTIONS.get((operand.function, count))
        if function is None or operand.type not in ("int", "float"):
            raise UntranslatableError
        if operand.type == "float" and function == kernel.MODULO:
            raise UntranslatableError
        return [*inner, kernel.APPLY, function, _KINDS[operand.type], count]
