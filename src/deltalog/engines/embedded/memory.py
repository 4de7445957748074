"""Loads and stores by address, so that one compiled kernel serves relations of every shape.

A relation's arrays belong to numpy; kernels are given their addresses in a table and reach them
through these intrinsics. That keeps the number of kernels, and so the compile time, constant, and
lets every relation grow by itself.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic


def _pointer(builder: Any, address: Any, index: Any, bits: int) -> Any:
    base = builder.inttoptr(address, ir.PointerType(ir.IntType(bits)))
    return builder.gep(base, [index])


@intrinsic
def load64(typing: Any, address: Any, index: Any) -> Any:
    """The 64-bit word number `index` behind an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_pointer(builder, arguments[0], arguments[1], 64))

    return types.int64(types.int64, types.int64), generate


@intrinsic
def store64(typing: Any, address: Any, index: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _pointer(builder, arguments[0], arguments[1], 64))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@intrinsic
def load32(typing: Any, address: Any, index: Any) -> Any:
    """The 32-bit word number `index` behind an address, with its sign."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = builder.load(_pointer(builder, arguments[0], arguments[1], 32))
        return builder.sext(word, ir.IntType(64))

    return types.int64(types.int64, types.int64), generate


@intrinsic
def store32(typing: Any, address: Any, index: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = builder.trunc(arguments[2], ir.IntType(32))
        builder.store(word, _pointer(builder, arguments[0], arguments[1], 32))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


compiled = njit(cache=True, nogil=True, inline="never")
