"""Expressions, arithmetic and comparisons of words; their meaning is in `engines/scalars.py`."""

from __future__ import annotations

import numpy as np

from deltalog.engines.embedded.kernels.layout import (
    ABSOLUTE,
    ADD,
    APPLIED,
    APPLIED_COUNT,
    APPLIED_KIND,
    APPLY_WORDS,
    DATE,
    DIVIDE,
    EQUAL,
    FLOAT,
    GREATER,
    GREATEST,
    HIGH,
    LARGEST,
    LAST_DAY,
    LEAST,
    LESS,
    LESS_EQUAL,
    LOW,
    LOW_HALF,
    MODULO,
    MULTIPLY,
    NEGATE,
    NULL,
    PUSH_SLOT,
    PUSH_WORD,
    PUSH_WORDS,
    PUSHED,
    RATIO,
    STOP,
    SUBTRACT,
    TEXT,
    TEXT_BYTES,
    TEXT_SIZE,
    TEXT_WORDS,
    TEXTS,
    TO_FLOAT,
    UNEQUAL,
    WHOLE,
)
from deltalog.engines.embedded.kernels.memory import (
    as_float,
    as_word,
    compared_bytes,
    compiled,
    load64,
    store64,
)


@compiled
def evaluate_expression(code, slots, stack):
    """A postfix expression: (whether it has a value, the value). A plain null is a value."""
    depth = np.int64(0)
    at = np.int64(0)
    while True:
        kind = load64(code, at)
        if kind == STOP:
            return True, load64(stack, 0)
        if kind == PUSH_SLOT:
            store64(stack, depth, load64(slots, load64(code, at + PUSHED)))
            depth += 1
            at += PUSH_WORDS
        elif kind == PUSH_WORD:
            store64(stack, depth, load64(code, at + PUSHED))
            depth += 1
            at += PUSH_WORDS
        else:
            function, kind = load64(code, at + APPLIED), load64(code, at + APPLIED_KIND)
            count = load64(code, at + APPLIED_COUNT)
            depth -= count
            for i in range(count):
                if load64(stack, depth + i) == NULL:
                    return False, np.int64(0)
            left = load64(stack, depth)
            right = load64(stack, depth + 1)
            if function == RATIO:
                has_value, value = mean_of_halves(left, right, load64(stack, depth + 2))
            elif kind == FLOAT:
                has_value, value = float_result(function, left, right)
            elif kind == DATE:
                has_value, value = date_result(function, left, right)
            else:
                has_value, value = int_result(function, left, right)
            if not has_value:
                return False, np.int64(0)
            store64(stack, depth, value)
            depth += 1
            at += APPLY_WORDS


@compiled
def int_result(function, left, right):
    # Looked at before computing: the compiler may assume that signed words do not overflow.
    if function == ADD:
        if (right > 0 and left > LARGEST - right) or (right < 0 and left < -LARGEST - right):
            return False, np.int64(0)
        return True, left + right
    if function == SUBTRACT:
        if (right < 0 and left > LARGEST + right) or (right > 0 and left < -LARGEST + right):
            return False, np.int64(0)
        return True, left - right
    if function == MULTIPLY:
        if left == 0 or right == 0:
            return True, np.int64(0)
        if abs(left) > LARGEST // abs(right):
            return False, np.int64(0)
        return True, left * right
    if function in (DIVIDE, MODULO):
        if right == 0:
            return False, np.int64(0)
        quotient = abs(left) // abs(right)
        if (left < 0) != (right < 0):
            quotient = -quotient
        return True, quotient if function == DIVIDE else left - quotient * right
    if function == NEGATE:
        return True, -left
    if function == ABSOLUTE:
        return True, abs(left)
    if function == TO_FLOAT:
        return True, as_word(np.float64(left))
    if function == LEAST:
        return True, min(left, right)
    if function == GREATEST:
        return True, max(left, right)
    if function == HIGH:
        return True, left >> 32
    if function == LOW:
        return True, left & LOW_HALF
    if function == WHOLE:
        return int_of_halves(left, right)
    return True, left  # SAME


@compiled
def float_result(function, left_word, right_word):
    left, right = as_float(left_word), as_float(right_word)
    if function == ADD:
        result = left + right
    elif function == SUBTRACT:
        result = left - right
    elif function == MULTIPLY:
        result = left * right
    elif function == DIVIDE:
        if right == 0.0:
            return False, np.int64(0)
        result = left / right
    elif function == NEGATE:
        result = -left
    elif function == ABSOLUTE:
        result = abs(left)
    elif function == LEAST:
        result = right if right < left else left
    elif function == GREATEST:
        result = right if right > left else left
    else:
        result = left  # SAME
    if not np.isfinite(result):
        return False, np.int64(0)
    return True, as_word(result + 0.0)


@compiled
def date_result(function, day, days):
    """A day so many days later or earlier, or the days between two."""
    if abs(days) > 2 * LAST_DAY:
        return False, np.int64(0)
    result = day + days if function == ADD else day - days
    return 1 <= result <= LAST_DAY, result


@compiled
def int_of_halves(high, low):
    """The int made of a high and a low half (sums of halves, so the low one may be long)."""
    high += low >> 32
    low &= LOW_HALF
    if high < -(2**31) or high >= 2**31:
        return False, np.int64(0)
    result = high * np.int64(2**32) + low
    return result != NULL, result


@compiled
def mean_of_halves(high, low, count):
    """The float nearest to (high * 2^32 + low) / count, for a count below 2^32."""
    if count <= 0 or count > LOW_HALF:
        return False, np.int64(0)
    high += low >> 32
    low &= LOW_HALF
    is_negative = high < 0
    if is_negative:  # the absolute value, in halves again
        high = -high
        if low != 0:
            high -= 1
            low = (LOW_HALF + 1) - low
    # Digits to the base 2^32, three of them behind the point; quotient digits by long division.
    digits = (high >> 32, high & LOW_HALF, low, np.int64(0), np.int64(0), np.int64(0))
    rest = np.uint64(0)
    top = np.uint64(0)  # the first 64 significant bits, as they come
    taken = np.int64(0)  # how many bits of the quotient have been taken, leading zeros left out
    left_out = np.int64(0)
    is_inexact = False
    divisor = np.uint64(count)
    for i in range(6):
        current = (rest << np.uint64(32)) | np.uint64(digits[i])
        digit = current // divisor
        rest = current - digit * divisor
        for bit in range(31, -1, -1):
            is_set = (digit >> np.uint64(bit)) & np.uint64(1)
            if taken == 0 and is_set == 0:
                continue
            if taken < 64:
                top = (top << np.uint64(1)) | is_set
                taken += 1
            else:
                left_out += 1
                if is_set != 0:
                    is_inexact = True
    if taken == 0:
        return True, as_word(0.0)
    exponent = left_out - 96
    is_inexact = is_inexact or rest != 0
    # 53 bits, halves to even.
    drop = max(taken - 53, np.int64(0))
    kept = top >> np.uint64(drop)
    if drop > 0:
        cut = top & ((np.uint64(1) << np.uint64(drop)) - np.uint64(1))
        half = np.uint64(1) << np.uint64(drop - 1)
        if cut > half or (cut == half and (is_inexact or (kept & np.uint64(1)) != 0)):
            kept += np.uint64(1)
    exponent += drop
    result = np.float64(kept)
    while exponent < 0:
        result *= 0.5
        exponent += 1
    while exponent > 0:
        result *= 2.0
        exponent -= 1
    return True, as_word(-result if is_negative else result)


@compiled
def text_order(machine, left, right):
    """Negative, zero or positive; texts are numbered, and their UTF-8 bytes sort as they do."""
    texts = load64(machine, TEXTS)
    left_text, right_text = texts + 8 * TEXT_WORDS * left, texts + 8 * TEXT_WORDS * right
    left_size, right_size = load64(left_text, TEXT_SIZE), load64(right_text, TEXT_SIZE)
    shared = min(left_size, right_size)
    order = compared_bytes(load64(left_text, TEXT_BYTES), load64(right_text, TEXT_BYTES), shared)
    return order if order != 0 else left_size - right_size


@compiled
def order_of(machine, kind, left, right):
    """Negative, zero or positive, for words that are no nulls."""
    if kind == FLOAT:
        a, b = as_float(left), as_float(right)
        return np.int64(-1) if a < b else np.int64(1) if a > b else np.int64(0)
    if kind == TEXT:
        return text_order(machine, left, right)
    return np.int64(-1) if left < right else np.int64(1) if left > right else np.int64(0)


@compiled
def compare_values(machine, operator, kind, left, right):
    """Whether a comparison holds; nothing but equality holds of a null."""
    if operator == EQUAL:
        return left == right
    if operator == UNEQUAL:
        return left != right
    if left == NULL or right == NULL:
        return False
    order = order_of(machine, kind, left, right)
    if operator == LESS:
        return order < 0
    if operator == LESS_EQUAL:
        return order <= 0
    if operator == GREATER:
        return order > 0
    return order >= 0
