"""Pipelines that are run often become machine code, in the background.

The interpreter counts the steps of every pipeline and asks for machine code once there have been
many (`note_steps` in `kernels/pipeline.py`). A thread reads the shape of the pipeline from its
code, has the function made (`llvm_codegen.py`), and writes its address into the code; from then on
it is called. Nobody waits, and nothing else changes: what is derived, in which order, and what is
counted is the same. Functions are kept as long as the process lives, one for each shape. A function
made late is right for rows that died, returned or moved before or after: a shape has no address of
rows, hash or index and no count of them; all of these are read from the relation's line on every
call.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import threading
import warnings
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
from numba import types
from numba.core.compiler_lock import global_compiler_lock

from deltalog.engines.embedded import llvm_codegen, llvm_writer
from deltalog.engines.embedded.compile import compiled_sources, kept_at
from deltalog.engines.embedded.kernels import layout, pipeline
from deltalog.engines.embedded.llvm_codegen import function_text
from deltalog.engines.embedded.llvm_shapes import Check, Comparison, Lookup, Shape

STEPS = 20_000
"""Steps after which a pipeline is worth machine code: it takes about as long to make."""
SHAPES_MAX, LONGEST = 4096, 32
"""How many functions there may be, and of how many steps: longer ones take long to make."""
VARIABLE = "DELTALOG_MACHINE_CODE"

_DIGEST = 32
_LOG = logging.getLogger(__name__)

ArityOf = Callable[[int], int]


def _when_to_specialize() -> str:
    said = os.environ.get(VARIABLE, "often")
    if said not in ("often", "never", "eager"):
        warnings.warn(f"{VARIABLE}={said}: it is often, never or eager", stacklevel=2)
        return "often"
    return said


WHEN = _when_to_specialize()
"""When a pipeline becomes machine code: if it is run `often`, `never`, or `eager`: at once."""


def shape_of(code: Sequence[int], start: int, mode: int, arity_of: ArityOf) -> Shape:
    """The shape of the pipeline that begins at a word of its part's code."""
    steps, outputs = code[start + layout.STEPS_OF], code[start + layout.OUTPUTS]
    first = start + layout.PIPELINE_HEADER
    places = code[first : first + steps]
    values = range(first + steps, first + steps + layout.VALUE_WORDS * outputs, layout.VALUE_WORDS)
    return Shape(
        tuple(_step_shape(code, at, arity_of) for at in places),
        code[start + layout.DECIDING],
        tuple(_slot_read(code, value) for value in values),
        mode,
        code[start + layout.IS_ONCE] != 0,
    )


def _slot_read(code: Sequence[int], value: int) -> int | None:
    """The slot that a value is read from, or None for a constant."""
    is_slot = code[value + layout.VALUE_KIND] == layout.FROM_SLOT
    return code[value + layout.VALUE_WORD] if is_slot else None


def _step_shape(code: Sequence[int], at: int, arity_of: ArityOf) -> Lookup | Check | Comparison:
    operation = code[at + layout.OPERATION]
    if operation == layout.TEST:
        return _test_shape(code, at)
    if operation == layout.ASSIGN:
        slot, expression = code[at + layout.ASSIGN_SLOT], code[at + layout.ASSIGN_VALUE]
        return Check(operation, _slots_of_expression(code, expression), slot)
    if operation == layout.SOME:
        return Check(operation, ())
    head = code[at : at + layout.HEADER]
    at += layout.HEADER
    bound_at = at + layout.KEY_WORDS * head[layout.KEYS]
    keys = range(at, bound_at, layout.KEY_WORDS)
    pairs = head[layout.BINDS] + head[layout.SAMES]
    bound = [
        (code[pair + layout.BIND_COLUMN], code[pair + layout.BIND_SLOT])
        for pair in range(bound_at, bound_at + layout.BIND_WORDS * pairs, layout.BIND_WORDS)
    ]
    return Lookup(
        operation=operation,
        mode=head[layout.MODE],
        arity=arity_of(head[layout.STORED]),
        is_overlay=head[layout.IS_OVERLAY] == 1,
        has_minus=head[layout.MINUS] != 0,
        has_plus=head[layout.PLUS] != 0,
        window=head[layout.WINDOW],
        occurrence=head[layout.OCCURRENCE],
        is_ranked=head[layout.IS_RANKED] == 1,
        keys=tuple(
            (code[key + layout.KEY_COLUMN], _slot_read(code, key + layout.KEY_VALUE))
            for key in keys
        ),
        binds=tuple(bound[: head[layout.BINDS]]),
        sames=tuple(bound[head[layout.BINDS] :]),
    )


def _test_shape(code: Sequence[int], at: int) -> Check | Comparison:
    left, right = code[at + layout.TEST_LEFT], code[at + layout.TEST_RIGHT]
    kind = code[at + layout.TEST_KIND]
    if kind in (layout.INT, layout.WORD) and _is_simple(code, left) and _is_simple(code, right):
        return Comparison(
            code[at + layout.TEST_OPERATOR], _pushed_slot(code, left), _pushed_slot(code, right)
        )
    reads = _slots_of_expression(code, left) + _slots_of_expression(code, right)
    return Check(layout.TEST, tuple(dict.fromkeys(reads)))


def _pushed_slot(code: Sequence[int], expression: int) -> int | None:
    """The slot of a simple expression, or None for a constant."""
    is_slot = code[expression] == layout.PUSH_SLOT
    return code[expression + layout.PUSHED] if is_slot else None


def _is_simple(code: Sequence[int], expression: int) -> bool:
    """Whether an expression is a slot or a constant."""
    is_push = code[expression] in (layout.PUSH_SLOT, layout.PUSH_WORD)
    return is_push and code[expression + layout.PUSH_WORDS] == layout.STOP


def _slots_of_expression(code: Sequence[int], at: int) -> tuple[int, ...]:
    """The slots that a postfix expression reads."""
    slots = []
    while code[at] != layout.STOP:
        if code[at] == layout.PUSH_SLOT:
            slots.append(code[at + layout.PUSHED])
        at += layout.APPLY_WORDS if code[at] == layout.APPLY else layout.PUSH_WORDS
    return tuple(dict.fromkeys(slots))


class Specialist:
    """Makes machine code: one function for each shape, one after the other, in a thread."""

    def __init__(self) -> None:
        self.addresses: dict[Shape, int] = {}
        self._engine: Any = None
        self._wanted: deque[tuple[array[int], int, Shape] | None] = deque()
        self._is_awake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_making = False

    @property
    def is_busy(self) -> bool:
        """Whether machine code is being made, or will be."""
        with self._is_awake:
            return self._is_making or bool(self._wanted)

    def ask(self, code: array[int], start: int, mode: int, arity_of: ArityOf) -> None:
        """Have machine code made for a pipeline, some time soon."""
        if code[start + layout.STEPS_OF] > LONGEST:
            return
        shape = shape_of(code, start, mode, arity_of)
        if shape in self.addresses:
            self._publish_address(code, start, shape)
            return
        with self._is_awake:
            self._wanted.append((code, start, shape))
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work_off_wanted, daemon=True, name="specialist"
                )
                self._thread.start()
            self._is_awake.notify()

    def make(self, code: array[int], start: int, mode: int, arity_of: ArityOf) -> None:
        """Have it made now, unless it adds up totals or is long."""
        if mode != layout.TOTALS and code[start + layout.STEPS_OF] <= LONGEST:
            self._publish_address(code, start, shape_of(code, start, mode, arity_of))

    def _publish_address(self, code: array[int], start: int, shape: Shape) -> None:
        address = self.addresses.get(shape)
        if address is None and len(self.addresses) < SHAPES_MAX:
            with global_compiler_lock:
                address = self.addresses.get(shape)  # another may have made it meanwhile
                if address is None:
                    address = self.addresses[shape] = self._load_shape(shape)
        if address is not None:
            code[start + layout.NATIVE] = address

    def _load_shape(self, shape: Shape) -> int:
        """Return the address of the function for a shape."""
        if self._engine is None:
            self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
        name = f"pipeline_{hashlib.sha256(repr(shape).encode()).hexdigest()}"
        made = llvm.ObjectFileRef.from_data(_kept_machine_code(name, shape))
        self._engine.add_object_file(made)
        self._engine.finalize_object()
        return int(self._engine.get_function_address(name))

    def _work_off_wanted(self) -> None:
        while True:
            with self._is_awake:
                self._is_making = False
                while not self._wanted:
                    self._is_awake.wait()
                wanted = self._wanted.popleft()
                self._is_making = True
            if wanted is None:
                return
            try:
                self._publish_address(*wanted)
            except Exception:  # it is interpreted, as before
                _LOG.warning("no machine code for %s", wanted[2], exc_info=True)
            del wanted  # the code of a database that is gone is not held

    def end(self) -> None:
        """Make nothing more; what is being made is finished, as it cannot be left."""
        with self._is_awake:
            thread, self._thread = self._thread, None
            self._wanted.clear()
            self._wanted.append(None)
            self._is_awake.notify()
        if thread is not None:
            thread.join()


def _target_machine() -> Any:
    """This processor, for code that is made while the program runs."""
    target = llvm.Target.from_triple(llvm.get_process_triple())
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=2, jit=True
    )


def _kept_machine_code(name: str, shape: Shape) -> bytes:
    """The machine code for a shape: what an earlier process has kept, or made now and kept.

    A digest of the code stands before it, as what is damaged must not be run.
    """
    path = _machine_code_folder() / name
    with suppress(OSError):
        digest, made = (kept := path.read_bytes())[:_DIGEST], kept[_DIGEST:]
        if digest == hashlib.sha256(made).digest():
            return made
    made = _make_machine_code(name, shape)
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        begun = path.with_suffix(f".{os.getpid()}")
        begun.write_bytes(hashlib.sha256(made).digest() + made)
        begun.replace(path)  # who reads it finds all of it
    return made


def _make_machine_code(name: str, shape: Shape) -> bytes:
    module = llvm.parse_assembly(function_text(name, shape))
    target = _target_machine()
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_new_gvn_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options()))
    return bytes(target.emit_object(module))


@cache
def _machine_code_folder() -> Path:
    """Return the folder of machine code: beside the kernels, one for what it was made with."""
    generators = Path(str(llvm_codegen.__file__)).parent
    made_with = (
        compiled_sources(),
        *(path.read_text(encoding="utf-8") for path in sorted(generators.glob("llvm_*.py"))),
        llvmlite.__version__,
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
    )
    digest = hashlib.sha256(repr(made_with).encode()).hexdigest()
    return kept_at() / f"pipelines_{digest[:16]}"


@cache
def kernel_addresses() -> tuple[int, ...]:
    """Return the addresses of the kernels that machine code calls; these return a word."""
    return tuple(_address_of_function(getattr(pipeline, name)) for name in llvm_writer.CALLED)


def _address_of_function(function: Any) -> int:
    words = (types.int64,) * function.py_func.__code__.co_argcount
    function.compile(words)
    made = function.overloads[words]
    return int(made.library.get_pointer_to_function(made.fndesc.llvm_func_name))


SPECIALIST = Specialist()
atexit.register(lambda: SPECIALIST.end())


def _begin_anew() -> None:
    """A forked process has no thread; what the parent has made is there."""
    global_compiler_lock.release()  # type: ignore[no-untyped-call]
    SPECIALIST._thread = None
    SPECIALIST._is_making = False
    SPECIALIST._wanted.clear()
    SPECIALIST._is_awake = threading.Condition()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=_begin_anew,
    )
