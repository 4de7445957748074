"""Memory by address: loads, stores and the allocator, so that one kernel serves every shape.

Kernels are given addresses, never arrays: a relation may grow in the middle of a rule without
coming back to Python, and installing a rule compiles nothing. Everything here is an intrinsic of
one or two machine instructions or a call of the C library.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

_WORD = ir.IntType(64)
_INT = ir.IntType(32)
_BYTE = ir.IntType(8)
_BYTES = ir.PointerType(_BYTE)

compiled: Callable[[Any], Any] = njit(cache=True, nogil=True, error_model="numpy")
inlined: Callable[[Any], Any] = njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
"""For what is called so often that the call itself counts."""


def _pointer_to_word(builder: Any, address: Any, index: Any, bits: int) -> Any:
    base = builder.inttoptr(address, ir.PointerType(ir.IntType(bits)))
    return builder.gep(base, [index])


def _pointer_to_bytes(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, _BYTES)


def _call_library(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    """Call a function of the C library."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    module = builder.module
    function = cgutils.get_or_insert_function(module, kind, name)  # type: ignore[no-untyped-call]
    return builder.call(function, arguments)


@intrinsic
def load64(typing: Any, address: Any, index: Any) -> Any:
    """The 64-bit word number `index` behind an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_pointer_to_word(builder, arguments[0], arguments[1], 64))

    return types.int64(types.int64, types.int64), generate


@intrinsic
def store64(typing: Any, address: Any, index: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _pointer_to_word(builder, arguments[0], arguments[1], 64))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@intrinsic
def load32(typing: Any, address: Any, index: Any) -> Any:
    """The 32-bit word number `index` behind an address, with its sign."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = builder.load(_pointer_to_word(builder, arguments[0], arguments[1], 32))
        return builder.sext(word, _WORD)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def store32(typing: Any, address: Any, index: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = builder.trunc(arguments[2], _INT)
        builder.store(word, _pointer_to_word(builder, arguments[0], arguments[1], 32))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@intrinsic
def as_float(typing: Any, word: Any) -> Any:
    """The float whose bits a word holds."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@intrinsic
def as_word(typing: Any, number: Any) -> Any:
    """The bits of a float as a word."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], _WORD)

    return types.int64(types.float64), generate


@intrinsic
def reallocated_block(typing: Any, address: Any, size: Any) -> Any:
    """A block of so many bytes with the contents of the block at `address` (0: a new one), or 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = _call_library(
            builder, "realloc", _BYTES, [_pointer_to_bytes(builder, arguments[0]), arguments[1]]
        )
        return builder.ptrtoint(block, _WORD)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def allocated_zeros(typing: Any, size: Any) -> Any:
    """A new block of so many bytes, all zero, or 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = _call_library(builder, "calloc", _BYTES, [arguments[0], ir.Constant(_WORD, 1)])
        return builder.ptrtoint(block, _WORD)

    return types.int64(types.int64), generate


@intrinsic
def ask_for_large_pages(typing: Any, address: Any, size: Any) -> Any:
    """Tell the system that a block of whole large pages is looked up all over; Linux listens."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if sys.platform == "linux":
            block = [_pointer_to_bytes(builder, arguments[0]), arguments[1], ir.Constant(_INT, 14)]
            _call_library(builder, "madvise", _INT, block)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def release_block(typing: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _call_library(builder, "free", ir.VoidType(), [_pointer_to_bytes(builder, arguments[0])])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def zero_bytes(typing: Any, target: Any, size: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = [_pointer_to_bytes(builder, arguments[0]), ir.Constant(_INT, 0), arguments[1]]
        _call_library(builder, "memset", _BYTES, block)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def compared_bytes(typing: Any, left: Any, right: Any, size: Any) -> Any:
    """Negative, zero or positive, as the first differing byte says."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        blocks = [
            _pointer_to_bytes(builder, arguments[0]),
            _pointer_to_bytes(builder, arguments[1]),
            arguments[2],
        ]
        return builder.sext(_call_library(builder, "memcmp", _INT, blocks), _WORD)

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def prefetch_line(typing: Any, address: Any) -> Any:
    """Begin to load the line of memory at an address, so that it is there when it is wanted."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [_BYTES, _INT, _INT, _INT])
        module = builder.module
        name = "llvm.prefetch.p0"
        function = cgutils.get_or_insert_function(module, kind, name)  # type: ignore[no-untyped-call]
        hints = [ir.Constant(_INT, number) for number in (1, 2, 1)]
        builder.call(function, [_pointer_to_bytes(builder, arguments[0]), *hints])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def call_machine_code(
    typing: Any,
    address: Any,
    machine: Any,
    code: Any,
    start: Any,
    target: Any,
    marks: Any,
    rank: Any,
) -> Any:
    """Call machine code by its address, made the way numba makes its own (see `native.py`)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        convention, words = context.call_conv, (types.int64,) * 6
        kind = convention.get_function_type(types.int64, words)
        function = builder.inttoptr(arguments[0], kind.as_pointer())
        status, value = convention.call_function(
            builder, function, types.int64, words, arguments[1:]
        )
        with cgutils.if_unlikely(builder, status.is_error):  # type: ignore[no-untyped-call]
            convention.return_status_propagate(builder, status)
        return value

    return types.int64(*(types.int64,) * 7), generate


@intrinsic
def monotonic_nanoseconds(typing: Any) -> Any:
    """The monotonic clock, the one `time.monotonic_ns` reads."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        two = ir.Constant(_WORD, 2)
        pair = cgutils.alloca_once(builder, _WORD, size=two)  # type: ignore[no-untyped-call]
        _call_library(builder, "clock_gettime", _INT, [ir.Constant(_INT, 1), pair])
        seconds = builder.load(pair)
        rest = builder.load(builder.gep(pair, [ir.Constant(_WORD, 1)]))
        return builder.add(builder.mul(seconds, ir.Constant(_WORD, 1_000_000_000)), rest)

    return types.int64(), generate
