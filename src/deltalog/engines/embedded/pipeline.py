"""The interpreter for rules: pipelines, rounds, ranked deletions, and whole sequences of parts.

See `program.py` for the form of the code. A pipeline is run by backtracking: a match walks its
rows, binds slots and goes one step deeper; a test goes deeper or back. Rows that a round derives
are appended behind the visible end of their relation, so no rule of the round sees them.

Large relations are not in the cache of the processor, and nearly every row that is looked at is
somewhere else in memory. So a match takes its rows in handfuls: it asks for the memory of all of
them, and of what the next step will look up for each, before it goes on with the first. Likewise
rows that go into a large relation, or are looked for in one, are held until there is a handful of
them, and suspects of a deletion are taken in handfuls.
"""

from __future__ import annotations

import numpy as np

from deltalog.engines.embedded.kernel import (
    AHEAD,
    ARITY,
    CAPACITY,
    DEADLINE,
    END,
    FACTS,
    FACTS_MAX,
    FRUITFUL,
    HASH,
    HEADS,
    HEADS_MASK,
    HELD,
    HOT,
    HOT_AFTER,
    HOT_LOG,
    INDEX,
    INDEX_BYTES,
    INDEXED_COLUMNS,
    IS_LIST,
    IS_SORTED,
    LARGEST,
    LAST,
    LINKS,
    LIVE,
    LOWEST,
    MADE,
    MASK,
    MAY_GIVE_UP,
    MAY_LIST,
    NULL,
    PASSED_OVER,
    PAUSE_AT,
    QUEUE,
    QUEUE_SIZE,
    QUEUED,
    ROUNDS,
    ROUNDS_MAX,
    ROWS,
    SCRATCH,
    SEEN_COUNT,
    SEEN_LOG,
    SEEN_SIZE,
    STAMP,
    STEPS,
    VISIBLE,
    add,
    add_hashed,
    append,
    clear,
    compare,
    enter,
    evaluate,
    expect_links,
    expect_row,
    find,
    find_hashed,
    linked_row,
    mixed,
    next_link,
    obtained,
    order_of,
    ratio,
    row_address,
    whole,
    words_hash,
)
from deltalog.engines.embedded.memory import (
    called,
    compiled,
    inlined,
    load32,
    load64,
    nanoseconds,
    prefetch,
    store64,
)

# A pipeline; `NATIVE` is where its machine code is, if it has some, or that it has been asked for.
STEPS_OF, DECIDING, OUTPUTS, IS_ONCE, NATIVE, HEAT = range(6)
PIPELINE_HEADER = 6
ASKED_FOR = 1
# Whether a pipeline emits rows at most once: always, or for each row that its first step walks.
ONCE, ONCE_A_ROW = 1, 2
# Steps, match modes, windows.
MATCH, ABSENT, TEST, ASSIGN, SOME = 1, 2, 3, 4, 5
SCAN, BY_INDEX, BY_ROW = 0, 1, 2
ALL, OLD, NEW = 0, 1, 2
# A match or absent step.
OPERATION, MODE, STORED, MINUS, PLUS, IS_OVERLAY, WINDOW, OCCURRENCE = range(8)
IS_RANKED, INDEX_NUMBER, PLUS_INDEX, KEYS, BINDS, SAMES = range(8, 14)
HEADER = 14
# What happens to what a pipeline emits.
INTO, FIRST, SUSPECT, TOTALS = (np.int64(mode) for mode in range(4))
# A part.
RULES, DELETION = 0, 1
# A rule.
HEAD, INITIAL, HAS_FIRED, VARIANTS, AGGREGATION = range(5)
RULE_HEADER = 5
VARIANT = 3
# A predicate of a deletion.
RELATION, SUSPECTS, DELETED, DOUBTFUL, LOST, SUPPORT, PREDICATE = range(7)
PREDICATE_BYTES = 56
# Totals of an aggregation.
COUNT, SUM, MIN, MAX, AVG = range(5)
TOTAL = 3
# A sequence of parts.
PARTS, IS_SOFT, CURRENT, IS_IMPATIENT = 0, 1, 2, 3
SEQUENCE_HEADER = 4
# How a run ended.
DONE, FOUND, STOPPED, PAUSED, GIVEN_UP = 0, 1, 2, 3, 4

STEPS_MIN, STEPS_PER_FACT = 50_000, 8
"""A deletion that takes more steps for each fact of its component is given up, if it may be: to
compute the component anew costs about that."""

HOT_MAX, HOT_ENTRY = 64, 3
"""How many pipelines can ask for machine code before the caller has a look; where, and its mode."""

ZERO, ONE = np.int64(0), np.int64(1)  # not literals, for which numba would compile once more
SEEN, GONE = np.int64(1 << 62), np.int64(1 << 61)  # marks on the stamps of suspects
RANK = ~(SEEN | GONE)
TICKS = np.int64(0xFFFF)
PAUSE = np.int64(200_000_000)
"""After so many nanoseconds a run comes back between two rounds, so that others have a look."""

# The scratch block, in words: a frame per step, then slots, keys, the emitted row, a stack, totals,
# emitted rows that are held, suspects that are taken. A frame ends with a handful of rows, and
# where in memory the next step will look for each.
HANDFUL_FIRST, HANDFUL = np.int64(4), np.int64(16)
FRAMES_MAX, FRAME = 256, 48
F_AT, F_PHASE, F_RELATION, F_START, F_END, F_INDEX, F_TAKEN, F_FILLED, F_MOST = range(9)
F_ROWS, F_AHEAD = 16, 32
LARGE = np.int64(1 << 12)
"""From this many rows on memory is asked for ahead."""
KEYS_MAX = 64
SLOTS_AT = FRAMES_MAX * FRAME
SLOTS_MAX = 1024
KEYS_AT = SLOTS_AT + SLOTS_MAX
EMITTED_AT = KEYS_AT + FRAMES_MAX * KEYS_MAX
STACK_AT = EMITTED_AT + KEYS_MAX
STACK_MAX = 64
TOTALS_AT = STACK_AT + STACK_MAX
HELD_AT = TOTALS_AT + 4 * KEYS_MAX
H_TARGET, H_RANK, H_HASH, H_WORDS = range(4)
HELD_ROW = H_WORDS + KEYS_MAX
TAKEN_AT = HELD_AT + HANDFUL * HELD_ROW
T_RANK, T_ENTRY, T_STANDS, TAKEN_ROW = range(4)
SCRATCH_WORDS = int(TAKEN_AT + HANDFUL * TAKEN_ROW)


@inlined
def value_at(code, slots):
    """A slot or a word, as (kind, value)."""
    value = load64(code, 1)
    return load64(slots, value) if load64(code, 0) == 0 else value


@inlined
def open_phase(step, frame, keys, slots, marks, phase):
    """Where the candidates of a match begin: of its stored relation (0) or of `plus` (1)."""
    relation = load64(step, STORED if phase == 0 else PLUS)
    store64(frame, F_PHASE, phase)
    store64(frame, F_RELATION, relation)
    store64(frame, F_AT, -1)
    store64(frame, F_START, 0)
    store64(frame, F_TAKEN, 0)
    store64(frame, F_FILLED, 0)
    store64(frame, F_MOST, HANDFUL_FIRST)
    if relation == 0:
        return
    window = load64(step, WINDOW)
    is_overlay = load64(step, IS_OVERLAY) == 1
    if phase == 0 and is_overlay and window == NEW:
        return
    start, end = np.int64(0), load64(relation, VISIBLE)
    if window != ALL and (phase == 1 or not is_overlay):
        mark = load64(marks, VARIANT * load64(step, OCCURRENCE) + 1)
        if window == NEW:
            start = mark
        else:
            end = mark
    if start >= end:
        return
    store64(frame, F_START, start)
    store64(frame, F_END, end)
    mode = load64(step, MODE)
    if mode == SCAN:
        store64(frame, F_AT, end - 1)
        return
    count = load64(step, KEYS)
    at = step + 8 * HEADER
    state = np.int64(0)
    for i in range(count):
        word = value_at(at + 8, slots)
        store64(keys, i, word)
        if load64(at, 0) < INDEXED_COLUMNS:
            state = mixed(state, word)
        at += 24
    number = load64(step, INDEX_NUMBER if phase == 0 else PLUS_INDEX)
    index = load64(relation, INDEX) + number * INDEX_BYTES
    store64(frame, F_INDEX, index)
    bucket = state & load64(index, HEADS_MASK)
    store64(frame, F_AT, load32(load64(index, HEADS), bucket) - 1)


@inlined
def advance(step, frame, slots):
    """Bind the next row of the handful; False when there is none."""
    relation, filled = load64(frame, F_RELATION), load64(frame, F_FILLED)
    taken = load64(frame, F_TAKEN)
    while taken < filled:
        words = row_address(relation, load64(frame, F_ROWS + taken))
        taken += 1
        at = bind(step, words, slots)
        fits = True
        for _ in range(load64(step, SAMES)):
            if load64(words, load64(at, 0)) != load64(slots, load64(at, 1)):
                fits = False
                break
            at += 16
        if fits:
            store64(frame, F_TAKEN, taken)
            return True
    store64(frame, F_TAKEN, taken)
    return False


@compiled
def fill(machine, step, frame, keys, slots, marks, rank):
    """Take the next handful of rows that a match may read and that have its key; False at the end.

    First those of its stored relation, then those of `plus`.
    """
    if load64(frame, F_AT) < 0:
        if load64(frame, F_PHASE) == 1 or not has_plus(step):
            return False
        open_phase(step, frame, keys, slots, marks, ONE)
        if load64(frame, F_AT) < 0:
            return False
    relation = load64(frame, F_RELATION)
    rows = load64(relation, ROWS) + 8
    width = 8 * (load64(relation, ARITY) + 1)
    start, end = load64(frame, F_START), load64(frame, F_END)
    at = load64(frame, F_AT)
    is_indexed = load64(step, MODE) == BY_INDEX
    links = load64(load64(frame, F_INDEX), LINKS) if is_indexed else np.int64(0)
    is_stored = load64(frame, F_PHASE) == 0
    is_ranked = is_stored and load64(step, IS_RANKED) == 1
    minus = load64(step, MINUS) if is_stored else np.int64(0)
    if minus != 0 and (is_ranked or load64(minus, LIVE) == 0):
        minus = np.int64(0)  # what a ranked deletion took is marked
    key_count = load64(step, KEYS) if is_indexed else np.int64(0)
    most = load64(frame, F_MOST)
    store64(frame, F_MOST, min(2 * most, HANDFUL))
    is_far = is_indexed and load64(relation, CAPACITY) >= LARGE
    count = np.int64(0)
    while at >= 0 and count < most:
        row, at = at, at - 1
        if is_indexed:
            link = load64(links, row)
            row, at = linked_row(link), next_link(link)
        if row < start:
            at = -ONE
            break
        words = rows + row * width
        if is_far:
            prefetch(words)
        if row < end and (
            is_far or is_read(machine, step, keys, key_count, words, minus, is_ranked, rank)
        ):
            store64(frame, F_ROWS + count, row)
            count += 1
    store64(frame, F_AT, at)
    if is_far:
        kept = np.int64(0)
        for number in range(count):
            row = load64(frame, F_ROWS + number)
            words = rows + row * width
            if is_read(machine, step, keys, key_count, words, minus, is_ranked, rank):
                store64(frame, F_ROWS + kept, row)
                kept += 1
        count = kept
    store64(frame, F_TAKEN, 0)
    store64(frame, F_FILLED, count)
    return True


@inlined
def is_read(machine, step, keys, key_count, words, minus, is_ranked, rank):
    """Whether a match may read a row, and it has the key."""
    stamp = load64(words, STAMP)
    if stamp < 0:
        return False
    for i in range(key_count):
        if load64(words, load64(step, HEADER + 3 * i)) != load64(keys, i):
            return False
    if is_ranked:
        if stamp & GONE != 0:
            return False
        if stamp & RANK >= rank:
            store64(machine, PASSED_OVER, 1)
            return False
    return minus == 0 or find(minus, words) < 0


@inlined
def large_relation(step):
    """The large relation in which a step looks something up, or 0."""
    if load64(step, OPERATION) > ABSENT or load64(step, MODE) == SCAN:
        return ZERO
    relation = load64(step, STORED)
    if relation == 0 or load64(relation, CAPACITY) < LARGE:
        return ZERO
    return relation


@compiled
def look_ahead(step, frame, slots, ahead):
    """Ask for the memory that the next step needs for each row of a handful."""
    wanted = large_relation(ahead)
    if wanted == 0:
        return
    for number in range(load64(frame, F_FILLED)):
        bind(step, row_address(load64(frame, F_RELATION), load64(frame, F_ROWS + number)), slots)
        ask_for(frame, number, place_of(ahead, wanted, slots))
    if load64(ahead, MODE) == BY_INDEX:
        ask_for_links(frame, index_of(ahead, wanted), wanted)
    else:
        ask_for_rows(frame, wanted)


@inlined
def place_of(step, relation, slots):
    """Where in memory a step begins to look for its key in its stored relation."""
    is_indexed = load64(step, MODE) == BY_INDEX
    state = np.int64(0)
    at = step + 8 * HEADER
    for _ in range(load64(step, KEYS)):
        if not is_indexed or load64(at, 0) < INDEXED_COLUMNS:
            state = mixed(state, value_at(at + 8, slots))
        at += 24
    if is_indexed:
        index = index_of(step, relation)
        return load64(index, HEADS) + 4 * (state & load64(index, HEADS_MASK))
    return load64(relation, HASH) + 4 * (state & load64(relation, MASK))


@inlined
def index_of(step, relation):
    return load64(relation, INDEX) + load64(step, INDEX_NUMBER) * INDEX_BYTES


@inlined
def ask_for(frame, number, place):
    store64(frame, F_AHEAD + number, place)
    prefetch(place)


@compiled
def ask_for_rows(frame, relation):
    """Ask for the rows that the places say, which are there by now."""
    for number in range(load64(frame, F_FILLED)):
        row = load32(load64(frame, F_AHEAD + number), 0) - 1
        if row >= 0:
            prefetch(row_address(relation, row))


@compiled
def ask_for_links(frame, index, relation):
    """Ask for the first links that the places say, and for the rows that these tell."""
    links, filled = load64(index, LINKS), load64(frame, F_FILLED)
    is_sorted = load64(index, IS_SORTED) == 1
    for number in range(filled):
        first = load32(load64(frame, F_AHEAD + number), 0) - 1
        if first >= 0:
            prefetch(links + 8 * first)
            if not is_sorted:
                prefetch(row_address(relation, first))
    if is_sorted:
        for number in range(filled):
            first = load32(load64(frame, F_AHEAD + number), 0) - 1
            if first >= 0:
                prefetch(row_address(relation, linked_row(load64(links, first))))


@inlined
def bind(step, words, slots):
    """Bind what a match takes from a row; answers where its repeated variables stand."""
    at = step + 8 * (HEADER + 3 * load64(step, KEYS))
    for _ in range(load64(step, BINDS)):
        store64(slots, load64(at, 1), load64(words, load64(at, 0)))
        at += 16
    return at


@inlined
def has_plus(step):
    """Whether a step has a second phase with something in it."""
    plus = load64(step, PLUS)
    return plus != 0 and load64(plus, LIVE) != 0


@inlined
def is_in_window(step, marks, row, is_plus):
    """Whether a row found is among those that a match reads."""
    window = load64(step, WINDOW)
    if window == ALL:
        return True
    if load64(step, IS_OVERLAY) == 1 and not is_plus:
        return window == OLD
    mark = load64(marks, VARIANT * load64(step, OCCURRENCE) + 1)
    return row >= mark if window == NEW else row < mark


@inlined
def is_row_there(machine, step, keys, slots, marks, rank):
    """A match whose columns all have values is a test."""
    at = step + 8 * HEADER
    for i in range(load64(step, KEYS)):
        store64(keys, i, value_at(at + 8, slots))
        at += 24
    stored = load64(step, STORED)
    row = find(stored, keys)
    if 0 <= row < load64(stored, VISIBLE) and is_in_window(step, marks, row, False):
        if load64(step, IS_RANKED) == 1:
            stamp = load64(row_address(stored, row), STAMP)
            if stamp & GONE != 0:
                return False
            if stamp & RANK < rank:
                return True
            store64(machine, PASSED_OVER, 1)
            return False
        minus = load64(step, MINUS)
        if minus == 0 or load64(minus, LIVE) == 0 or find(minus, keys) < 0:
            return True
    if not has_plus(step):
        return False
    plus = load64(step, PLUS)
    row = find(plus, keys)
    return 0 <= row < load64(plus, VISIBLE) and is_in_window(step, marks, row, True)


@inlined
def has_row(step, keys, slots):
    """Whether the very row of an absent step is there."""
    at = step + 8 * HEADER
    for i in range(load64(step, KEYS)):
        store64(keys, i, value_at(at + 8, slots))
        at += 24
    stored, minus = load64(step, STORED), load64(step, MINUS)
    row = find(stored, keys)
    if 0 <= row < load64(stored, VISIBLE) and (
        minus == 0 or load64(minus, LIVE) == 0 or find(minus, keys) < 0
    ):
        return True
    if not has_plus(step):
        return False
    plus = load64(step, PLUS)
    return 0 <= find(plus, keys) < load64(plus, VISIBLE)


@compiled
def has_match(machine, step, frame, keys, slots, marks):
    """Whether some row has the values of an absent step."""
    if load64(step, MODE) == BY_ROW:
        return has_row(step, keys, slots)
    open_phase(step, frame, keys, slots, marks, ZERO)
    while fill(machine, step, frame, keys, slots, marks, ZERO):
        if advance(step, frame, slots):
            return True
    return False


@compiled
def run_pipeline(machine, code, start, mode, target, marks, rank):
    """Run the pipeline at `start`; `mode` says what becomes of every row it emits.

    One that is run often becomes machine code (`native.py`), which does the same.
    """
    native = load64(start, NATIVE)
    if native > ASKED_FOR:
        return called(native, machine, code, start, target, marks, rank)
    return interpret(machine, code, start, mode, target, marks, rank)


@compiled
def note_steps(machine, code, start, mode, steps):
    """Count steps; machine code is asked for where many have been taken, if there is room."""
    store64(machine, STEPS, load64(machine, STEPS) + steps)
    heat = load64(start, HEAT) + steps
    store64(start, HEAT, heat)
    if heat > load64(machine, HOT_AFTER) and load64(start, NATIVE) == 0 and mode != TOTALS:
        number = load64(machine, HOT)
        if number < HOT_MAX:
            store64(start, NATIVE, ASKED_FOR)
            store64(machine, HOT, number + 1)
            entry = load64(machine, HOT_LOG) + 8 * HOT_ENTRY * number
            store64(entry, 0, code)
            store64(entry, 1, (start - code) >> 3)
            store64(entry, 2, mode)


@compiled
def interpret(machine, code, start, mode, target, marks, rank):
    scratch = load64(machine, SCRATCH)
    slots = scratch + 8 * SLOTS_AT
    steps = load64(start, STEPS_OF)
    deciding = load64(start, DECIDING)
    outputs = load64(start, OUTPUTS)
    first = start + 8 * PIPELINE_HEADER
    out_at = first + 8 * steps
    depth = np.int64(0)
    is_entering = True
    ticks = np.int64(0)
    while depth >= 0:
        if depth == steps:
            if mode == FIRST:
                note_steps(machine, code, start, mode, ticks)
                return FOUND
            emit(machine, mode, target, out_at, outputs, slots, rank)
            ticks += 1
            if ticks & TICKS == 0 and is_over(machine, target, mode) == 1:
                send(machine, mode)
                return STOPPED
            depth = deciding - 1  # what comes after only finds the same row again
            is_entering = False
            continue
        step = code + 8 * load64(first, depth)
        operation = load64(step, 0)
        goes_on = False
        if operation == MATCH and load64(step, MODE) == BY_ROW:
            if is_entering:
                keys = scratch + 8 * (KEYS_AT + KEYS_MAX * depth)
                goes_on = is_row_there(machine, step, keys, slots, marks, rank)
                ticks += 1
        elif operation == MATCH:
            frame = scratch + 8 * FRAME * depth
            keys = scratch + 8 * (KEYS_AT + KEYS_MAX * depth)
            if is_entering:
                open_phase(step, frame, keys, slots, marks, ZERO)
            goes_on = advance(step, frame, slots)
            while not goes_on and fill(machine, step, frame, keys, slots, marks, rank):
                if load64(frame, F_FILLED) > 1 and depth + 1 < steps:
                    look_ahead(step, frame, slots, code + 8 * load64(first, depth + 1))
                goes_on = advance(step, frame, slots)
            ticks += 1
            if ticks & TICKS == 0 and is_over(machine, target, mode) == 1:
                send(machine, mode)
                return STOPPED
        elif is_entering:
            if operation == ABSENT:
                frame = scratch + 8 * FRAME * depth
                keys = scratch + 8 * (KEYS_AT + KEYS_MAX * depth)
                goes_on = not has_match(machine, step, frame, keys, slots, marks)
            elif operation == TEST:
                goes_on = holds(machine, code, step) == 1
            elif operation == SOME:
                goes_on = is_some(machine, code, step) == 1
            else:
                goes_on = assigned(machine, code, step) == 1
        if goes_on:
            depth += 1
            is_entering = True
        else:
            depth -= 1
            is_entering = False
    if mode == INTO and load64(machine, HELD) > 0:
        send(machine, mode)
    note_steps(machine, code, start, mode, ticks)
    return DONE


@compiled
def holds(machine, code, step):
    """Whether a test holds of what is in the slots."""
    scratch = load64(machine, SCRATCH)
    slots, stack = scratch + 8 * SLOTS_AT, scratch + 8 * STACK_AT
    has_left, left = evaluate(code + 8 * load64(step, 3), slots, stack)
    if not has_left:
        return ZERO
    has_right, right = evaluate(code + 8 * load64(step, 4), slots, stack)
    is_true = has_right and compare(machine, load64(step, 1), load64(step, 2), left, right)
    return ONE if is_true else ZERO


@compiled
def is_some(machine, code, step):
    """Whether a relation has rows, if it should have some; or that it has none.

    Counts decide, so neither a large relation nor its dead rows are walked: of more rows than
    `minus` has, one is not in `minus`. Otherwise there are no more than a change has. Rows behind
    the visible end may be among those that are counted.
    """
    stored, minus, plus = load64(step, 2), load64(step, 3), load64(step, 4)
    is_there = plus != 0 and has_visible(plus, ZERO)
    return ONE if (is_there or has_visible(stored, minus)) == (load64(step, 1) == 1) else ZERO


@compiled
def has_visible(relation, minus):
    """Whether a relation has a visible row that is not in `minus`, if there is such a relation."""
    visible = load64(relation, VISIBLE)
    less = load64(relation, END) - visible
    if minus != 0:
        less += load64(minus, LIVE)
    if load64(relation, LIVE) > less:
        return True
    if minus != 0:
        enter(minus)
    for row in range(visible):
        words = row_address(relation, row)
        if load64(words, STAMP) >= 0 and (minus == 0 or find(minus, words) < 0):
            return True
    return False


@compiled
def assigned(machine, code, step):
    """Give a slot its value; answers whether there is one."""
    scratch = load64(machine, SCRATCH)
    slots, stack = scratch + 8 * SLOTS_AT, scratch + 8 * STACK_AT
    has_value, value = evaluate(code + 8 * load64(step, 2), slots, stack)
    store64(slots, load64(step, 1), value)
    return ONE if has_value else ZERO


@inlined
def free_row(machine):
    """Where the next row to be held is written."""
    return load64(machine, SCRATCH) + 8 * (HELD_AT + HELD_ROW * load64(machine, HELD))


@inlined
def emit(machine, mode, target, outputs, count, slots, rank):
    """Make a row of what is bound, and hold it."""
    row = free_row(machine)
    words = row + 8 * H_WORDS
    state = np.int64(0)
    for i in range(count):
        word = value_at(outputs + 16 * i, slots)
        state = mixed(state, word)
        store64(words, i, word)
    if mode == INTO and load64(machine, IS_LIST) == 1:
        append(machine, target, words)
    elif mode == TOTALS:
        accumulate(machine, target, words)
    else:
        hold(machine, mode, target, row, state, rank)


@inlined
def hold(machine, mode, target, row, state, rank):
    """Hold a free row that has been filled, and ask for the memory where it will be looked for.

    Where memory is near, it is put at once.
    """
    relation = target if mode == INTO else load64(target, RELATION)
    if load64(relation, CAPACITY) < LARGE:
        put(machine, mode, target, row + 8 * H_WORDS, state, rank)
        return
    prefetch(load64(relation, HASH) + 4 * (state & load64(relation, MASK)))
    store64(row, H_TARGET, target)
    store64(row, H_RANK, rank)
    store64(row, H_HASH, state)
    held = load64(machine, HELD) + 1
    store64(machine, HELD, held)
    if held == HANDFUL:
        send(machine, mode)


@compiled
def send(machine, mode):
    """Put the rows that are held, in the order in which they came."""
    held = load64(machine, HELD)
    store64(machine, HELD, 0)
    rows = load64(machine, SCRATCH) + 8 * HELD_AT
    if held > 1:
        for i in range(held):
            row = rows + 8 * HELD_ROW * i
            target = load64(row, H_TARGET)
            relation = target if mode == INTO else load64(target, RELATION)
            expect_row(relation, load64(row, H_HASH))
            if mode == INTO:
                expect_links(relation, row + 8 * H_WORDS)
    for i in range(held):
        row = rows + 8 * HELD_ROW * i
        target, state = load64(row, H_TARGET), load64(row, H_HASH)
        put(machine, mode, target, row + 8 * H_WORDS, state, load64(row, H_RANK))
    return ZERO


@compiled
def put(machine, mode, target, words, state, rank):
    """Add or suspect a row that was emitted."""
    if mode == INTO:
        add_hashed(machine, target, words, state)
    else:
        suspect(machine, target, words, state, rank)
    return ZERO


@compiled
def is_over(machine, target, mode):
    """Whether a limit is reached in the middle of a round: time, or facts of one rule."""
    if nanoseconds() > load64(machine, DEADLINE):
        return ONE
    if mode != INTO:
        return ZERO
    made = load64(target, END) - load64(target, VISIBLE)
    return ONE if load64(machine, FACTS) + made > load64(machine, FACTS_MAX) else ZERO


# --- rules --------------------------------------------------------------------------------------


@compiled
def run_into(machine, code, start, target, marks):
    """Run a pipeline into a relation; where rows can come but once, they are listed."""
    walked = walked_first(code, start)
    if walked != 0 and load64(walked, VISIBLE) == 0:
        return np.int64(DONE)
    enter_looked_up(code, start)
    once = load64(start, IS_ONCE)
    is_single = walked != 0 and load64(walked, END) == 1
    is_once = once == ONCE or (once == ONCE_A_ROW and is_single)
    is_list = is_once and load64(machine, MAY_LIST) == 1 and load64(target, END) == 0
    store64(machine, IS_LIST, 1 if is_list else 0)
    return run_pipeline(machine, code, start, INTO, target, marks, ZERO)


@inlined
def walked_first(code, start):
    """The relation that the first step of a pipeline walks from end to end, or 0."""
    if load64(start, STEPS_OF) == 0:
        return ZERO
    step = code + 8 * load64(start, PIPELINE_HEADER)
    if load64(step, OPERATION) != MATCH or load64(step, MODE) != SCAN:
        return ZERO
    return ZERO if load64(step, IS_OVERLAY) == 1 else load64(step, STORED)


@compiled
def enter_looked_up(code, start):
    """Enter the rows of all relations in which a pipeline looks something up."""
    for number in range(load64(start, STEPS_OF)):
        step = code + 8 * load64(start, PIPELINE_HEADER + number)
        if load64(step, OPERATION) <= ABSENT:
            if load64(step, MODE) != SCAN:
                enter(load64(step, STORED))
                if load64(step, PLUS) != 0:
                    enter(load64(step, PLUS))
            if load64(step, MINUS) != 0:
                enter(load64(step, MINUS))


@compiled
def fire(machine, code, rule):
    """What one rule derives from what it has not read yet.

    A head without columns has one row at most, so nothing is derived once that is there.
    """
    aggregation = load64(rule, AGGREGATION)
    target = load64(rule, HEAD)
    if load64(target, ARITY) == 0 and load64(target, LIVE) > 0:
        return DONE
    if aggregation != 0:
        target = load64(code + 8 * aggregation, 0)
    marks = rule + 8 * RULE_HEADER
    if load64(rule, HAS_FIRED) == 0 and load64(rule, INITIAL) >= 0:
        start = code + 8 * load64(rule, INITIAL)
        if run_into(machine, code, start, target, marks) == STOPPED:
            return STOPPED
    store64(rule, HAS_FIRED, 1)
    variants = load64(rule, VARIANTS)
    for i in range(variants):
        variant = marks + 8 * VARIANT * i
        if load64(variant, 1) < load64(load64(variant, 0), VISIBLE):
            start = code + 8 * load64(variant, 2)
            if run_into(machine, code, start, target, marks) == STOPPED:
                return STOPPED
    status = np.int64(DONE)
    if aggregation != 0:
        status = np.int64(fire_groups(machine, code, rule, code + 8 * aggregation, marks))
    for i in range(variants):
        variant = marks + 8 * VARIANT * i
        store64(variant, 1, load64(load64(variant, 0), VISIBLE))
    return status


@compiled
def fire_groups(machine, code, rule, aggregation, marks):
    """Every group that was found becomes at most one row of the head."""
    groups, bindings = load64(aggregation, 0), code + 8 * load64(aggregation, 1)
    width, parts, totals = load64(aggregation, 2), load64(aggregation, 3), load64(aggregation, 4)
    head_at = aggregation + 40
    totals_at = head_at + 16 * parts
    enter_looked_up(code, bindings)
    scratch = load64(machine, SCRATCH)
    slots = scratch + 8 * SLOTS_AT
    emitted = scratch + 8 * EMITTED_AT
    sums = scratch + 8 * TOTALS_AT
    for group in range(load64(groups, END)):
        words = row_address(groups, group)
        for i in range(width):
            store64(slots, i, load64(words, i))
        for i in range(4 * totals + 1):
            store64(sums, i, 0)
        if run_pipeline(machine, code, bindings, TOTALS, aggregation, marks, ZERO) == STOPPED:
            clear(groups)
            return STOPPED
        has_values = load64(sums, 0) > 0
        for i in range(parts):
            kind, value = load64(head_at, 2 * i), load64(head_at, 2 * i + 1)
            if kind == 0:
                value = load64(words, value)
            elif kind == 2 and has_values:
                has_values, value = total(totals_at + 8 * TOTAL * value, sums, value)
            store64(emitted, i, value)
        if has_values:
            add(machine, load64(rule, HEAD), emitted)
    clear(groups)
    return DONE


@compiled
def accumulate(machine, aggregation, binding):
    """Take one binding into the totals: word 0 counts bindings, then four words per total."""
    sums = load64(machine, SCRATCH) + 8 * TOTALS_AT
    store64(sums, 0, load64(sums, 0) + 1)
    totals = aggregation + 40 + 16 * load64(aggregation, 3)
    for i in range(load64(aggregation, 4)):
        function = load64(totals, TOTAL * i)
        if function == COUNT:
            continue
        word = load64(binding, load64(totals, TOTAL * i + 2))
        if word == NULL:
            continue
        at = sums + 8 * (1 + 4 * i)
        number = load64(at, 0)
        store64(at, 0, number + 1)
        if function in (SUM, AVG):
            store64(at, 1, load64(at, 1) + (word >> 32))
            store64(at, 2, load64(at, 2) + (word & np.int64(0xFFFFFFFF)))
        elif number == 0:
            store64(at, 1, word)
        else:
            order = order_of(machine, load64(totals, TOTAL * i + 1), word, load64(at, 1))
            if (order < 0) == (function == MIN) and order != 0:
                store64(at, 1, word)


@compiled
def total(code, sums, number):
    """The value of a total: null if there was nothing to take in."""
    at = sums + 8 * (1 + 4 * number)
    function = load64(code, 0)
    if function == COUNT:
        return True, load64(sums, 0)
    if load64(at, 0) == 0:
        return True, NULL
    if function == SUM:
        return whole(load64(at, 1), load64(at, 2))
    if function == AVG:
        return ratio(load64(at, 1), load64(at, 2), load64(at, 0))
    return True, load64(at, 1)


# --- ranked deletion (see plan/ranked_deletion.py) ------------------------------------------------


@compiled
def push(machine, stamp, entry):
    """Put a suspect into the queue, a heap by rank in which an entry has four below it."""
    size = load64(machine, QUEUED)
    if size == load64(machine, QUEUE_SIZE):
        store64(machine, QUEUE_SIZE, max(256, 2 * size))
        wanted = 16 * load64(machine, QUEUE_SIZE)
        store64(machine, QUEUE, obtained(load64(machine, QUEUE), wanted))
    heap = load64(machine, QUEUE)
    at = size
    while at > 0:
        parent = (at - 1) >> 2
        if load64(heap, 2 * parent) <= stamp:
            break
        store64(heap, 2 * at, load64(heap, 2 * parent))
        store64(heap, 2 * at + 1, load64(heap, 2 * parent + 1))
        at = parent
    store64(heap, 2 * at, stamp)
    store64(heap, 2 * at + 1, entry)
    store64(machine, QUEUED, size + 1)


@inlined
def log_seen(machine, entry):
    seen = load64(machine, SEEN_COUNT)
    if seen == load64(machine, SEEN_SIZE):
        store64(machine, SEEN_SIZE, max(256, 2 * seen))
        wanted = 8 * load64(machine, SEEN_SIZE)
        store64(machine, SEEN_LOG, obtained(load64(machine, SEEN_LOG), wanted))
    store64(load64(machine, SEEN_LOG), seen, entry)
    store64(machine, SEEN_COUNT, seen + 1)


@compiled
def pop(machine):
    """The suspect of lowest rank: (rank, predicate and row)."""
    heap = load64(machine, QUEUE)
    stamp, entry = load64(heap, 0), load64(heap, 1)
    size = load64(machine, QUEUED) - 1
    store64(machine, QUEUED, size)
    last, last_entry = load64(heap, 2 * size), load64(heap, 2 * size + 1)
    at = np.int64(0)
    while True:
        first = 4 * at + 1
        if first >= size:
            break
        child, least = first, load64(heap, 2 * first)
        for other in range(first + 1, min(first + 4, size)):
            rank = load64(heap, 2 * other)
            child = other if rank < least else child
            least = min(rank, least)
        if least >= last:
            break
        store64(heap, 2 * at, least)
        store64(heap, 2 * at + 1, load64(heap, 2 * child + 1))
        at = child
    store64(heap, 2 * at, last)
    store64(heap, 2 * at + 1, last_entry)
    return stamp, entry


@inlined
def suspect(machine, predicate, words, state, rank):
    """A fact lost a derivation: if it is there and of higher rank, it must be examined."""
    relation = load64(predicate, RELATION)
    row = find_hashed(relation, words, state)
    if row < 0:
        return
    found = row_address(relation, row)
    stamp = load64(found, STAMP)
    if stamp & SEEN == 0 and stamp > rank:
        store64(found, STAMP, stamp | SEEN)
        entry = (load64(predicate, PREDICATE) << 32) | row
        push(machine, stamp, entry)
        log_seen(machine, entry)
        store64(machine, LOWEST, min(stamp, load64(machine, LOWEST)))


@compiled
def steps_allowed(machine, code, count):
    """How many steps a deletion may take before it is given up."""
    if load64(machine, MAY_GIVE_UP) == 0:
        return np.int64(1 << 62)
    facts = np.int64(0)
    for number in range(count):
        predicate = code + 8 * load64(code, 3 + number)
        facts += load64(load64(predicate, RELATION), LIVE)
    return max(np.int64(STEPS_MIN), STEPS_PER_FACT * facts)


@inlined
def suspected(code, entry):
    """A suspect: (its predicate, where its words are)."""
    predicate = code + 8 * load64(code, 3 + (entry >> 32))
    return predicate, row_address(load64(predicate, RELATION), entry & np.int64(0xFFFFFFFF))


@compiled
def take_handful(machine, code):
    """Take the suspects of lowest rank, and ask for the memory that is needed to examine them."""
    handful = load64(machine, SCRATCH) + 8 * TAKEN_AT
    count = min(HANDFUL, load64(machine, QUEUED))
    for i in range(count):
        taken = handful + 8 * TAKEN_ROW * i
        rank, entry = pop(machine)
        store64(taken, T_RANK, rank)
        store64(taken, T_ENTRY, entry)
        _, words = suspected(code, entry)
        prefetch(words)
    looked_at, is_far = ZERO, False
    for i in range(count):
        taken = handful + 8 * TAKEN_ROW * i
        predicate, words = suspected(code, load64(taken, T_ENTRY))
        if predicate != looked_at:
            looked_at, is_far = predicate, look_ahead_of_given(code, predicate, words)
        elif is_far:
            look_ahead_of_given(code, predicate, words)
    return count


@compiled
def look_ahead_of_given(code, predicate, words):
    """Ask for the memory that the first steps for a suspect need; answers whether it is far."""
    lost = load64(predicate, LOST)
    at = predicate + PREDICATE_BYTES
    is_far = False
    for number in range(lost + load64(predicate, SUPPORT)):
        where = 2 * number + 1 if number < lost else lost + number
        pipeline = code + 8 * load64(at, where)
        if load64(pipeline, STEPS_OF) > 0:
            step = code + 8 * load64(pipeline, PIPELINE_HEADER)
            wanted = large_relation(step)
            if wanted != 0:
                is_far = True
                prefetch(place_of(step, wanted, words))  # what is given are the first slots
    return is_far


@inlined
def give(slots, words, arity):
    for column in range(arity):
        store64(slots, column, load64(words, column))


@compiled
def examine(machine, code, predicate, words, rank):
    """Whether a suspect has support; one that has none is deleted, which happens but once."""
    slots = load64(machine, SCRATCH) + 8 * SLOTS_AT
    arity = load64(load64(predicate, RELATION), ARITY)
    at = predicate + PREDICATE_BYTES + 16 * load64(predicate, LOST)
    store64(machine, PASSED_OVER, 0)
    for i in range(load64(predicate, SUPPORT)):
        give(slots, words, arity)
        pipeline = code + 8 * load64(at, i)
        if run_pipeline(machine, code, pipeline, FIRST, ZERO, ZERO, rank) == FOUND:
            return True
    append(machine, load64(predicate, DELETED), words)
    store64(words, STAMP, load64(words, STAMP) | GONE)
    if load64(machine, PASSED_OVER) == 1:
        append(machine, load64(predicate, DOUBTFUL), words)
    return False


@compiled
def enter_examined(code, predicate):
    """Enter the rows that a deletion looks up."""
    lost = load64(predicate, LOST)
    at = predicate + PREDICATE_BYTES
    for i in range(lost):
        enter_looked_up(code, code + 8 * load64(at, 2 * i + 1))
    for i in range(load64(predicate, SUPPORT)):
        enter_looked_up(code, code + 8 * load64(at + 16 * lost, i))


@compiled
def suspect_derived(machine, code, predicate, words, rank):
    """Suspect what was derived from a deleted fact."""
    slots = load64(machine, SCRATCH) + 8 * SLOTS_AT
    arity = load64(load64(predicate, RELATION), ARITY)
    at = predicate + PREDICATE_BYTES
    for i in range(load64(predicate, LOST)):
        give(slots, words, arity)
        head = code + 8 * load64(code, 3 + load64(at, 2 * i))
        pipeline = code + 8 * load64(at, 2 * i + 1)
        run_pipeline(machine, code, pipeline, SUSPECT, head, ZERO, rank)


@compiled
def run_deletion(machine, code):
    """Examine suspects in order of rank; those without support are deleted.

    They are taken in handfuls, so that memory is asked for before it is needed. A handful is
    examined in order of rank, but suspects that its deletions make come too late for it. Who was
    found without support by then has none now. Who was found with support, and has a higher rank
    than one of the new suspects, is examined again. The first of a handful never is, so this ends.
    """
    if load64(code, 2) != 0:
        return DONE
    store64(code, 2, 1)
    count = load64(code, 1)
    predicates = code + 24
    store64(machine, QUEUED, 0)
    store64(machine, SEEN_COUNT, 0)
    store64(machine, HELD, 0)
    steps_max = load64(machine, STEPS) + steps_allowed(machine, code, count)
    for i in range(count):
        predicate = code + 8 * load64(predicates, i)
        enter(load64(predicate, RELATION))
        enter_examined(code, predicate)
        suspects = load64(predicate, SUSPECTS)
        arity = load64(suspects, ARITY)
        for number in range(load64(suspects, END)):
            words = row_address(suspects, number)
            row = free_row(machine)
            give(row + 8 * H_WORDS, words, arity)
            hold(machine, SUSPECT, predicate, row, words_hash(words, arity), -ONE)
    send(machine, SUSPECT)
    status = np.int64(DONE)
    handful = load64(machine, SCRATCH) + 8 * TAKEN_AT
    examined = np.int64(0)
    while load64(machine, QUEUED) > 0:
        examined += 1
        if examined & 0xFF == 0 and nanoseconds() > load64(machine, DEADLINE):
            status = np.int64(STOPPED)
            break
        if load64(machine, STEPS) > steps_max:
            status = np.int64(GIVEN_UP)
            break
        run_handful(machine, code, handful, take_handful(machine, code))
    log, seen = load64(machine, SEEN_LOG), load64(machine, SEEN_COUNT)
    for i in range(seen):
        if i + AHEAD < seen:
            _, words = suspected(code, load64(log, i + AHEAD))
            prefetch(words)
        _, words = suspected(code, load64(log, i))
        store64(words, STAMP, load64(words, STAMP) & RANK)
    return status


@compiled
def run_handful(machine, code, handful, count):
    """Examine all suspects of a handful, then suspect what was derived from those that go."""
    for i in range(count):
        taken = handful + 8 * TAKEN_ROW * i
        predicate, words = suspected(code, load64(taken, T_ENTRY))
        stands = examine(machine, code, predicate, words, load64(taken, T_RANK))
        store64(taken, T_STANDS, 1 if stands else 0)
    store64(machine, LOWEST, LARGEST)
    for i in range(count):
        taken = handful + 8 * TAKEN_ROW * i
        if load64(taken, T_STANDS) == 0:
            predicate, words = suspected(code, load64(taken, T_ENTRY))
            suspect_derived(machine, code, predicate, words, load64(taken, T_RANK))
    send(machine, SUSPECT)
    for i in range(count):
        taken = handful + 8 * TAKEN_ROW * i
        rank = load64(taken, T_RANK)
        if load64(taken, T_STANDS) == 1 and rank > load64(machine, LOWEST):
            push(machine, rank, load64(taken, T_ENTRY))


# --- rounds and sequences -------------------------------------------------------------------------


@compiled
def open_round(heads, count):
    for i in range(count):
        head = load64(heads, i)
        store64(head, LAST, load64(head, END))


@compiled
def close_round(machine, heads, count):
    """Make what the round derived visible; answers how much it is."""
    new = np.int64(0)
    for i in range(count):
        head = load64(heads, i)
        end = load64(head, END)
        made = end - load64(head, LAST)
        store64(head, LAST, made)
        store64(head, MADE, load64(head, MADE) + made)
        store64(head, VISIBLE, end)
        new += made
    store64(machine, FACTS, load64(machine, FACTS) + new)
    return new


@compiled
def run_round(machine, code):
    """Fire every rule of a part once: (how it ended, how many facts are new).

    A part's code begins with its kind, the counts of heads and rules (of a deletion: the count of
    predicates, and whether it is done), the addresses of heads, and where its rules are.
    """
    if load64(code, 0) == DELETION:
        count = load64(code, 1)
        heads = code + 8 * (3 + count)
        open_round(heads, 2 * count)
        status = np.int64(run_deletion(machine, code))
        return status, close_round(machine, heads, 2 * count)
    count, rules = load64(code, 1), load64(code, 2)
    heads = code + 24
    open_round(heads, count)
    status = np.int64(DONE)
    for i in range(rules):
        if fire(machine, code, code + 8 * load64(heads, count + i)) == STOPPED:
            status = np.int64(STOPPED)
            break
    return status, close_round(machine, heads, count)


@compiled
def run_sequence(machine, sequence):
    """The soft consequence operator: always the lowest part that still yields something new.

    Comes back PAUSED between rounds when it has taken long, so that others can have a look.
    """
    parts = load64(sequence, PARTS)
    number = load64(sequence, CURRENT)
    store64(machine, MAY_GIVE_UP, load64(sequence, IS_IMPATIENT))
    while number < parts:
        code = load64(sequence, SEQUENCE_HEADER + number)
        status, new = run_round(machine, code)
        store64(machine, ROUNDS, load64(machine, ROUNDS) + 1)
        if new == 0:
            number += 1
        elif load64(sequence, IS_SOFT) == 1:
            number = np.int64(0)
        store64(sequence, CURRENT, number)
        if status == GIVEN_UP:
            return GIVEN_UP
        if status == STOPPED or load64(machine, FACTS) > load64(machine, FACTS_MAX):
            return STOPPED
        if new > 0:
            fruitful = load64(machine, FRUITFUL) + 1
            store64(machine, FRUITFUL, fruitful)
            if fruitful >= load64(machine, ROUNDS_MAX):
                return STOPPED
            now = nanoseconds()
            if now > load64(machine, DEADLINE):
                return STOPPED
            if now > load64(machine, PAUSE_AT):
                return PAUSED
    return DONE


@compiled
def begin(machine, rounds, rounds_max, facts, facts_max, until):
    """Note what a run may use, and what was used before it."""
    store64(machine, FRUITFUL, rounds)
    store64(machine, ROUNDS_MAX, rounds_max)
    store64(machine, FACTS, facts)
    store64(machine, FACTS_MAX, facts_max)
    store64(machine, DEADLINE, until)
    store64(machine, ROUNDS, 0)
    store64(machine, PAUSE_AT, nanoseconds() + PAUSE)


@compiled
def run_alone(machine, sequence, rounds, rounds_max, facts, facts_max, until):
    """Run a sequence that belongs to no wave; what it makes is there to stay."""
    store64(machine, MAY_LIST, 0)
    begin(machine, rounds, rounds_max, facts, facts_max, until)
    return run_sequence(machine, sequence)


@compiled
def rewind_part(code):
    """Forget what has been read: the next round starts from the beginning."""
    if load64(code, 0) == DELETION:
        store64(code, 2, 0)
        return
    count, rules = load64(code, 1), load64(code, 2)
    for i in range(rules):
        rule = code + 8 * load64(code, 3 + count + i)
        store64(rule, HAS_FIRED, 0)
        for variant in range(load64(rule, VARIANTS)):
            store64(rule, RULE_HEADER + VARIANT * variant + 1, 0)


@compiled
def rewind(sequence):
    store64(sequence, CURRENT, 0)
    for number in range(load64(sequence, PARTS)):
        rewind_part(load64(sequence, SEQUENCE_HEADER + number))
