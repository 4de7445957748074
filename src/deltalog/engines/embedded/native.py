"""Pipelines that are run often become machine code, in the background.

The interpreter counts the steps of every pipeline and asks for machine code once there have been
many (`note_steps` in `pipeline.py`). A thread reads the shape of the pipeline from its code, has
the function made (`assembler.py`), and writes its address into the code; from then on it is called.
Nobody waits, and nothing else changes: what is derived, in which order, and what is counted is the
same. Functions are kept as long as the process lives, one for each shape. A function made late is
right for rows that died, returned or moved before or after: a shape has no address of rows, hash or
index and no count of them; all of these are read from the relation's line on every call.
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

from deltalog.engines.embedded import assembler, kernel, pipeline
from deltalog.engines.embedded.assembler import Check, Comparison, Lookup, Shape, function
from deltalog.engines.embedded.compile import compiled_sources, kept_at

STEPS = 20_000
"""After so many steps a pipeline is worth machine code: it takes about as long to make."""
SHAPES_MAX, LONGEST = 4096, 32
"""How many functions there may be, and of how many steps: longer ones take long to make."""
VARIABLE = "DELTALOG_MACHINE_CODE"

_DIGEST = 32
_LOG = logging.getLogger(__name__)

ArityOf = Callable[[int], int]


def _when() -> str:
    said = os.environ.get(VARIABLE, "often")
    if said not in ("often", "never", "eager"):
        warnings.warn(f"{VARIABLE}={said}: it is often, never or eager", stacklevel=2)
        return "often"
    return said


WHEN = _when()
"""When a pipeline becomes machine code: if it is run `often`, `never`, or `eager`: at once."""


def shape_of(code: Sequence[int], start: int, mode: int, arity_of: ArityOf) -> Shape:
    """The shape of the pipeline that begins at a word of its part's code."""
    steps, deciding, outputs = code[start : start + 3]
    first = start + pipeline.PIPELINE_HEADER
    places = code[first : first + steps]
    parts = code[first + steps : first + steps + 2 * outputs]
    return Shape(
        tuple(_step(code, at, arity_of) for at in places),
        deciding,
        tuple(_slot(parts[2 * i], parts[2 * i + 1]) for i in range(outputs)),
        mode,
        code[start + pipeline.IS_ONCE] != 0,
    )


def _slot(kind: int, value: int) -> int | None:
    """The slot that is read, or None for a constant."""
    return value if kind == 0 else None


def _step(code: Sequence[int], at: int, arity_of: ArityOf) -> Lookup | Check | Comparison:
    operation = code[at]
    if operation == pipeline.TEST:
        return _test(code, at)
    if operation == pipeline.ASSIGN:
        slot, expression = code[at + 1], code[at + 2]
        return Check(operation, _read(code, expression), slot)
    if operation == pipeline.SOME:
        return Check(operation, ())
    head = code[at : at + pipeline.HEADER]
    at += pipeline.HEADER
    keys = [code[at + 3 * i : at + 3 * i + 3] for i in range(head[pipeline.KEYS])]
    at += 3 * len(keys)
    pairs = head[pipeline.BINDS] + head[pipeline.SAMES]
    bound = [(code[at + 2 * i], code[at + 2 * i + 1]) for i in range(pairs)]
    return Lookup(
        operation=operation,
        mode=head[pipeline.MODE],
        arity=arity_of(head[pipeline.STORED]),
        is_overlay=head[pipeline.IS_OVERLAY] == 1,
        has_minus=head[pipeline.MINUS] != 0,
        has_plus=head[pipeline.PLUS] != 0,
        window=head[pipeline.WINDOW],
        occurrence=head[pipeline.OCCURRENCE],
        is_ranked=head[pipeline.IS_RANKED] == 1,
        keys=tuple((column, _slot(kind, value)) for column, kind, value in keys),
        binds=tuple(bound[: head[pipeline.BINDS]]),
        sames=tuple(bound[head[pipeline.BINDS] :]),
    )


def _test(code: Sequence[int], at: int) -> Check | Comparison:
    operation, operator, kind, left, right = code[at : at + 5]
    if kind in (kernel.INT, kernel.WORD) and _is_simple(code, left) and _is_simple(code, right):
        sides = [_slot(code[side] - kernel.PUSH_SLOT, code[side + 1]) for side in (left, right)]
        return Comparison(operator, *sides)
    reads = _read(code, left) + _read(code, right)
    return Check(operation, tuple(dict.fromkeys(reads)))


def _is_simple(code: Sequence[int], expression: int) -> bool:
    """Whether an expression is a slot or a constant."""
    return code[expression] != kernel.STOP and code[expression + 2] == kernel.STOP


def _read(code: Sequence[int], at: int) -> tuple[int, ...]:
    """The slots that a postfix expression reads."""
    slots = []
    while code[at] != kernel.STOP:
        if code[at] == kernel.PUSH_SLOT:
            slots.append(code[at + 1])
        at += 4 if code[at] == kernel.APPLY else 2
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
        if code[start + pipeline.STEPS_OF] > LONGEST:
            return
        shape = shape_of(code, start, mode, arity_of)
        if shape in self.addresses:
            self._publish(code, start, shape)
            return
        with self._is_awake:
            self._wanted.append((code, start, shape))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True, name="specialist")
                self._thread.start()
            self._is_awake.notify()

    def make(self, code: array[int], start: int, mode: int, arity_of: ArityOf) -> None:
        """Have it made now, unless it adds up totals or is long."""
        if mode != pipeline.TOTALS and code[start + pipeline.STEPS_OF] <= LONGEST:
            self._publish(code, start, shape_of(code, start, mode, arity_of))

    def _publish(self, code: array[int], start: int, shape: Shape) -> None:
        address = self.addresses.get(shape)
        if address is None and len(self.addresses) < SHAPES_MAX:
            with global_compiler_lock:
                address = self.addresses.get(shape)  # another may have made it meanwhile
                if address is None:
                    address = self.addresses[shape] = self._loaded(shape)
        if address is not None:
            code[start + pipeline.NATIVE] = address

    def _loaded(self, shape: Shape) -> int:
        """Where the function for a shape is in memory."""
        if self._engine is None:
            self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target())
        name = f"pipeline_{hashlib.sha256(repr(shape).encode()).hexdigest()}"
        made = llvm.ObjectFileRef.from_data(_kept(name, shape))
        self._engine.add_object_file(made)
        self._engine.finalize_object()
        return int(self._engine.get_function_address(name))

    def _work(self) -> None:
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
                self._publish(*wanted)
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


def _target() -> Any:
    """This processor, for code that is made while the program runs."""
    target = llvm.Target.from_triple(llvm.get_process_triple())
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=2, jit=True
    )


def _kept(name: str, shape: Shape) -> bytes:
    """The machine code for a shape: what an earlier process has kept, or made now and kept.

    A digest of the code stands before it, as what is damaged must not be run.
    """
    path = _folder() / name
    with suppress(OSError):
        digest, made = (kept := path.read_bytes())[:_DIGEST], kept[_DIGEST:]
        if digest == hashlib.sha256(made).digest():
            return made
    made = _made(name, shape)
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        begun = path.with_suffix(f".{os.getpid()}")
        begun.write_bytes(hashlib.sha256(made).digest() + made)
        begun.replace(path)  # who reads it finds all of it
    return made


def _made(name: str, shape: Shape) -> bytes:
    module = llvm.parse_assembly(function(name, shape))
    target = _target()
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
def _folder() -> Path:
    """Where machine code is kept: beside the kernels, apart for what it was made with."""
    made_with = (
        compiled_sources(),
        Path(str(assembler.__file__)).read_text(encoding="utf-8"),
        llvmlite.__version__,
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
    )
    digest = hashlib.sha256(repr(made_with).encode()).hexdigest()
    return kept_at() / f"pipelines_{digest[:16]}"


@cache
def kernel_addresses() -> tuple[int, ...]:
    """Where the kernels are that machine code calls; they take words, and answer one."""
    return tuple(_address(getattr(pipeline, name)) for name in assembler.CALLED)


def _address(function: Any) -> int:
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
