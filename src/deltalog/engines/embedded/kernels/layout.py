"""Layouts of all records that kernels read and write, as numbers of 64-bit words.

Whoever reads a record takes its places from here: the translation of plans (`program.py`), the
kernels, and the generator of machine code (`llvm_codegen.py`), which also takes the hash from here.
A name that ends in `_WORDS` is the width of a record or of its header, what follows it are entries.

    value         [kind, word]: a slot, a constant, or (in heads of aggregations) a total
    pipeline      [steps, deciding, outputs, is once, machine code, heat, places of steps…, values…]
    lookup step   14 words, then keys [column, value], binds and sames [column, slot]
    rule          5 words, then variants [relation, mark, pipeline]…
    part          [RULES, heads, rules, addresses of heads…, places of rules…]
    deletion      [DELETION, predicates, is done, their places…, overdeleted…, doubtful…]
    predicate     7 words, then losses [head, pipeline]…, support pipelines…
    aggregation   5 words, then values…, totals [function, kind, column]…
    sequence      [parts, is soft, current, may abort, addresses of parts…]
"""

from __future__ import annotations

import numpy as np

WORD_BYTES, HALF_BYTES = 8, 4

# --- values, and the hash of rows -----------------------------------------------------------------

NULL = np.int64(-(2**63))
LARGEST = np.int64(2**63 - 1)
LAST_DAY = np.int64(3_652_059)
LINK_SHIFT = 32
"""A link has the number of a row in its low half, and the next link above."""
LOW_HALF = np.int64(0xFFFFFFFF)
HASH_MULTIPLIER = np.int64(-7046029254386353131)
HASH_SHIFT = np.int64(29)
HASH_SHIFTED_BITS = np.int64(0x7FFFFFFFF)
"""Bits that are left of a word after the shift: the sign is not repeated."""
ZERO, ONE = np.int64(0), np.int64(1)  # not literals, for which numba would compile once more

# --- relations ------------------------------------------------------------------------------------

# A relation's line.
ROWS, ARITY, END, VISIBLE, CAPACITY, HASH, MASK, LIVE = range(8)
INDEX, INDEXES, LAST, MADE, NOTHING, INDEXED, ROOM = range(8, 15)
LINE = 16
STAMP = np.int64(-1)
"""Place of a row's stamp, seen from its words."""
STAMP_WORDS = 1
CAPACITY_MIN, CAPACITY_MAX = 16, 2**30
KEPT_MAX = 1 << 14
"""A relation that is emptied keeps memory for as many rows, and more if it used much of it."""
LARGE_PAGE, LARGE_BLOCK = np.int64(1 << 21), np.int64(1 << 23)
AHEAD = 12
"""Distance, in rows, at which loops over many rows prefetch memory."""
# An index.
COLUMNS, HEADS, HEADS_MASK, LINKS, IS_SORTED = range(5)
INDEX_BYTES = 5 * WORD_BYTES
INDEXED_COLUMNS = 63
"""Columns from here on have no bit in an index; they are compared, and not looked up by."""
SIDE_BY_SIDE = 4
"""From this many rows to a key on their links are side by side."""
# A key to look up rows by, and a move of changed rows into a stored relation.
PAIR_COLUMN, PAIR_WORD, PAIR_WORDS = range(3)
MOVE_STORED, MOVE_DELETED, MOVE_INSERTED, MOVE_CURSOR, MOVE_WORDS = range(5)
# A text.
TEXT_BYTES, TEXT_SIZE, TEXT_WORDS = range(3)

# --- the machine: what all kernels of an engine share ---------------------------------------------

CLOCK, SCRATCH, DEADLINE, FACTS, FACTS_MAX, ROUNDS, ROUNDS_MAX, TEXTS = range(8)
QUEUE, QUEUED, QUEUE_SIZE, SEEN_LOG, SEEN_COUNT, SEEN_SIZE, PAUSE_AT, PRODUCTIVE = range(8, 16)
PASSED_OVER, STEPS, MAY_ABORT, HELD, LOWEST, HOT_AFTER, HOT, HOT_LOG = range(16, 24)
IS_APPENDING, MAY_APPEND = 24, 25
CALLED = 26
"""From here on: addresses of the kernels that machine code calls (`llvm_codegen.py`)."""
MACHINE = 40
# A request for machine code.
HOT_CODE, HOT_START, HOT_MODE, HOT_WORDS = range(4)
HOT_MAX = 64
"""Requests for machine code before the caller has a look."""

# --- expressions, in postfix order ----------------------------------------------------------------

STOP, PUSH_SLOT, PUSH_WORD, APPLY = range(4)
PUSHED, PUSH_WORDS = 1, 2
APPLIED, APPLIED_KIND, APPLIED_COUNT, APPLY_WORDS = 1, 2, 3, 4
ADD, SUBTRACT, MULTIPLY, DIVIDE, MODULO, NEGATE, ABSOLUTE, TO_FLOAT = range(8)
LEAST, GREATEST, HIGH, LOW, WHOLE, RATIO, SAME = range(8, 15)
INT, FLOAT, WORD, TEXT, DATE = range(5)
EQUAL, UNEQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL = range(6)

# --- pipelines ------------------------------------------------------------------------------------

# A value.
VALUE_KIND, VALUE_WORD, VALUE_WORDS = range(3)
FROM_SLOT, FROM_CODE, FROM_TOTAL = range(3)
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
# A match or absent step, then its keys, binds and sames.
OPERATION, MODE, STORED, MINUS, PLUS, IS_OVERLAY, WINDOW, OCCURRENCE = range(8)
IS_RANKED, INDEX_NUMBER, PLUS_INDEX, KEYS, BINDS, SAMES = range(8, 14)
HEADER = 14
KEY_COLUMN, KEY_VALUE = 0, 1
KEY_WORDS = KEY_VALUE + VALUE_WORDS
BIND_COLUMN, BIND_SLOT, BIND_WORDS = range(3)
# The other steps.
TEST_OPERATOR, TEST_KIND, TEST_LEFT, TEST_RIGHT = range(1, 5)
ASSIGN_SLOT, ASSIGN_VALUE = range(1, 3)
SOME_IS_WANTED, SOME_STORED, SOME_MINUS, SOME_PLUS = range(1, 5)
# What happens to what a pipeline emits.
INTO, FIRST, SUSPECT, TOTALS = (np.int64(mode) for mode in range(4))

# --- parts and sequences --------------------------------------------------------------------------

# A part.
RULES, DELETION = 0, 1
PART_KIND, PART_HEADS, PART_RULES = range(3)
DELETION_PREDICATES, DELETION_IS_DONE = 1, 2
PART_HEADER = 3
# A rule, and its variants.
HEAD, INITIAL, HAS_FIRED, VARIANTS, AGGREGATION = range(5)
RULE_HEADER = 5
VARIANT_RELATION, VARIANT_MARK, VARIANT_PIPELINE, VARIANT = range(4)
# A predicate of a deletion, and the facts that were derived from one of its facts.
RELATION, SUSPECTS, DELETED, DOUBTFUL, LOST, SUPPORT, PREDICATE = range(7)
PREDICATE_HEADER = 7
LOST_HEAD, LOST_PIPELINE, LOST_WORDS = range(3)
# An aggregation, its totals, and what is added up while one group is computed.
GROUPS, BINDINGS, GROUP_WIDTH, HEAD_VALUES, HEAD_TOTALS = range(5)
AGGREGATION_HEADER = 5
COUNT, SUM, MIN, MAX, AVG = range(5)
TOTAL_FUNCTION, TOTAL_KIND, TOTAL_COLUMN, TOTAL = range(4)
BINDING_COUNT, SUMS_HEADER = 0, 1
SUM_COUNT, SUM_HIGH, SUM_LOW, SUM_WORDS = 0, 1, 2, 4
EXTREME = 1
# A sequence of parts.
PARTS, IS_SOFT, CURRENT, CAN_ABORT = 0, 1, 2, 3
SEQUENCE_HEADER = 4
# How a run ended.
DONE, FOUND, STOPPED, PAUSED, ABORTED = 0, 1, 2, 3, 4

STEPS_MIN, STEPS_PER_FACT = 50_000, 8
"""A deletion that takes more steps for each fact of its component is aborted, if it may be: to
compute the component anew costs about that."""
SEEN, GONE = np.int64(1 << 62), np.int64(1 << 61)  # marks on the stamps of suspects
RANK = ~(SEEN | GONE)
TICKS = np.int64(0xFFFF)
PAUSE = np.int64(200_000_000)
"""After so many nanoseconds a run comes back between two rounds, so that others have a look."""
# The queue of suspects: a suspect is its predicate, shifted, and its row.
QUEUE_RANK, QUEUE_SUSPECT, QUEUE_WORDS = range(3)
SUSPECT_SHIFT = 32
LISTS_MIN = 256
"""Entries of the queue and of the log of suspects when they are first needed."""

# --- scratch memory -------------------------------------------------------------------------------

# A frame per step, then slots, keys, the emitted row, a stack, totals, emitted rows that are held,
# suspects that are taken. A frame ends with a batch of rows, and where in memory the next step will
# look for each.
BATCH_FIRST, BATCH = np.int64(4), np.int64(16)
FRAMES_MAX, FRAME = 256, 48
F_AT, F_PHASE, F_RELATION, F_START, F_END, F_INDEX, F_TAKEN, F_FILLED, F_MOST = range(9)
F_LAST, F_CAPACITY = 9, 10
F_ROWS, F_AHEAD = 16, 32
LARGE = np.int64(1 << 12)
"""From this many rows on memory is prefetched."""
KEYS_MAX = 64
SLOTS_AT = FRAMES_MAX * FRAME
SLOTS_MAX = 1024
KEYS_AT = SLOTS_AT + SLOTS_MAX
EMITTED_AT = KEYS_AT + FRAMES_MAX * KEYS_MAX
STACK_AT = EMITTED_AT + KEYS_MAX
STACK_MAX = 64
TOTALS_AT = STACK_AT + STACK_MAX
HELD_AT = TOTALS_AT + SUM_WORDS * KEYS_MAX
H_TARGET, H_RANK, H_HASH, H_WORDS = range(4)
HELD_ROW = H_WORDS + KEYS_MAX
TAKEN_AT = HELD_AT + BATCH * HELD_ROW
T_RANK, T_SUSPECT, T_STANDS, TAKEN_ROW = range(4)
SCRATCH_WORDS = int(TAKEN_AT + BATCH * TAKEN_ROW)
