"""A change on its way through a network, as far as the kernels can go by themselves.

    wave:     [stations, ran, reported, is over, asked, is effective, output, counts, due…, code of
              each station (0: none)…, those that ran…]
    station:  [sequence, many, then how many and where: flows, forgotten, made, replaced, moves,
              outlasting, shown, heads]; flows as (relation, rows), made as (relation, reader),
              moves as (stored, deleted, inserted, cursor), shown as (inserted, deleted), the others
              as relations
    input:    rows to insert into sources and to delete, each as [station, inserted, deleted, rows…]
    output:   [entries, room, used, is all there, then per entry: station, which of its shown
              relations, how many rows, whether they follow (there may be no room), rows…]; of
              sources nothing, if all of the input is effective
    counts:   [entries, then per entry: station, which of its heads, rows…]

A station is due when a change that it reads is not empty. Stations run in their order, each reads
only what lower ones make, so one pass is enough. The caller is asked at a station that has no code,
and at one into which many rows flow. Small changes are so common that results are written into
buffers: a transaction is one call, and one more to bring it to its end.
"""

from __future__ import annotations

import numpy as np

from deltalog.engines.embedded.kernels.bulk import copy_rows, move_rows
from deltalog.engines.embedded.kernels.fixpoint import begin_run, rewind_sequence, run_sequence
from deltalog.engines.embedded.kernels.layout import (
    ABORTED,
    ARITY,
    DONE,
    END,
    LIVE,
    MAY_APPEND,
    MOVE_STORED,
    VISIBLE,
    ZERO,
)
from deltalog.engines.embedded.kernels.layout import MADE as MADE_BY
from deltalog.engines.embedded.kernels.memory import compiled, load64, store64
from deltalog.engines.embedded.kernels.relation_memory import (
    add_row,
    clear_relation,
    ensure_indexed,
    find_row,
)

ASKED = 5
DUE, BEGUN = 1, 2
# A wave.
STATIONS, RAN, REPORTED, IS_OVER, ASKED_AT, IS_EFFECTIVE, OUTPUT, COUNTS = range(8)
WAVE_HEADER = 8
# A station: how many there are of each list, and where (in bytes) they begin.
SEQUENCE, MANY, FLOWS, FLOWS_AT, FORGOTTEN, FORGOTTEN_AT = range(6)
MADE, MADE_AT, REPLACED, REPLACED_AT = range(6, 10)
MOVES, MOVES_AT, OUTLASTING, OUTLASTING_AT = range(10, 14)
SHOWN, SHOWN_AT, HEADS, HEADS_AT = range(14, 18)
STATION_HEADER = 18
# Entries of these lists.
FLOW_RELATION, FLOW_ROWS, FLOW_WORDS = range(3)
MADE_RELATION, MADE_READER, MADE_WORDS = range(3)
SHOWN_INSERTED, SHOWN_DELETED, SHOWN_WORDS = range(3)
# A change in the input buffer; its rows follow.
INPUT_STATION, INPUT_INSERTED, INPUT_DELETED, INPUT_HEADER = range(4)
# The output buffer and that of counts, and their entries.
ENTRIES, ROOM, USED, IS_ALL = range(4)
OUTPUT_HEADER, COUNTS_HEADER = 4, 1
OUTPUT_STATION, OUTPUT_WHICH, OUTPUT_ROWS, OUTPUT_HAS_ROWS, OUTPUT_ENTRY = range(5)
COUNT_STATION, COUNT_HEAD, COUNT_ROWS, COUNT_ENTRY = range(4)


@compiled
def count_inflow(station):
    """Count the rows that flow into a station; those of each flow are noted beside it."""
    flows = station + load64(station, FLOWS_AT)
    total = np.int64(0)
    for i in range(load64(station, FLOWS)):
        flow = flows + 8 * FLOW_WORDS * i
        rows = load64(load64(flow, FLOW_RELATION), LIVE)
        store64(flow, FLOW_ROWS, rows)
        total += rows
    return total


@compiled
def enter_station(wave, number):
    """Note that a station runs, and what flows into it."""
    if load64(wave, IS_OVER) == 1:
        store64(wave, IS_OVER, 0)
        store64(wave, RAN, 0)
        store64(wave, REPORTED, 0)
    ran, count = load64(wave, RAN), load64(wave, STATIONS)
    store64(wave, WAVE_HEADER + 2 * count + ran, number)
    store64(wave, RAN, ran + 1)
    return count_inflow(load64(wave, WAVE_HEADER + count + number))


@compiled
def leave_station(wave, station):
    """A station is done: those that read what it made are due, and what only it needed goes."""
    made = station + load64(station, MADE_AT)
    for i in range(load64(station, MADE)):
        each = made + 8 * MADE_WORDS * i
        if load64(load64(each, MADE_RELATION), LIVE) > 0:
            store64(wave, WAVE_HEADER + load64(each, MADE_READER), DUE)
    clear_relations(station, FORGOTTEN)
    if load64(station, SEQUENCE) != 0:
        rewind_sequence(load64(station, SEQUENCE))


@compiled
def take_changes(machine, wave, changes, count):
    """Fill the changes of sources with effective changes: stations that read them are due."""
    if count > 0:
        store64(wave, IS_EFFECTIVE, 1)
    for _ in range(count):
        number = load64(changes, INPUT_STATION)
        inserted, deleted = load64(changes, INPUT_INSERTED), load64(changes, INPUT_DELETED)
        station = load64(wave, WAVE_HEADER + load64(wave, STATIONS) + number)
        sides = station + load64(station, SHOWN_AT)
        stored = np.int64(0)
        if load64(station, MOVES) > 0:  # otherwise it has changed already
            stored = load64(station + load64(station, MOVES_AT), MOVE_STORED)
            ensure_indexed(stored)
        changes += 8 * INPUT_HEADER
        enter_station(wave, number)
        plus, minus = load64(sides, SHOWN_INSERTED), load64(sides, SHOWN_DELETED)
        changes = insert_effective(machine, stored, plus, changes, inserted, False)
        changes = insert_effective(machine, stored, minus, changes, deleted, True)
        if load64(plus, LIVE) + load64(minus, LIVE) < inserted + deleted:
            store64(wave, IS_EFFECTIVE, 0)
        leave_station(wave, station)


@compiled
def insert_effective(machine, stored, side, words, count, is_there):
    """Add the rows that are no no-ops to a side; returns where the next ones stand."""
    width = 8 * load64(side, ARITY)
    for _ in range(count):
        if stored == 0 or (find_row(stored, words) >= 0) == is_there:
            add_row(machine, side, words)
        words += width
    store64(side, VISIBLE, load64(side, END))
    return words


@compiled
def clear_relations(station, which):
    """Clear the relations of a list of a station."""
    relations = station + load64(station, which + 1)
    for i in range(load64(station, which)):
        clear_relation(load64(relations, i))


@compiled
def run_wave(machine, wave, changes, taken, rounds, rounds_max, facts, facts_max, until):
    """Take the changes of the input, and run what is due, lowest first; returns how it ended."""
    take_changes(machine, wave, changes, taken)
    store64(machine, MAY_APPEND, 1)
    begin_run(machine, rounds, rounds_max, facts, facts_max, until)
    status = run_due(machine, wave)
    write_counts(wave)
    if status == DONE:
        write_output(wave)
    return status


@compiled
def run_due(machine, wave):
    count = load64(wave, STATIONS)
    due = wave + 8 * WAVE_HEADER
    stations = due + 8 * count
    for number in range(count):
        if load64(due, number) == 0:
            continue
        store64(wave, ASKED_AT, number)
        station = load64(stations, number)
        if station == 0 or count_inflow(station) >= load64(station, MANY):
            store64(due, number, 0)
            return ASKED
        if load64(due, number) == DUE:
            enter_station(wave, number)
            store64(due, number, BEGUN)
        status = run_sequence(machine, load64(station, SEQUENCE))
        if status in (DONE, ABORTED):
            store64(due, number, 0)
        if status != DONE:
            return status
        leave_station(wave, station)
    return DONE


@compiled
def write_counts(wave):
    """Write down how many rows each station has made since this was last done."""
    count = load64(wave, STATIONS)
    log = wave + 8 * (WAVE_HEADER + 2 * count)
    counts = load64(wave, COUNTS)
    entries = np.int64(0)
    for i in range(max(load64(wave, REPORTED) - 1, 0), load64(wave, RAN)):  # it may have gone on
        number = load64(log, i)
        station = load64(wave, WAVE_HEADER + count + number)
        heads = station + load64(station, HEADS_AT)
        for head in range(load64(station, HEADS)):
            relation = load64(heads, head)
            rows = load64(relation, MADE_BY)
            if rows > 0:
                store64(relation, MADE_BY, 0)
                entry = counts + 8 * (COUNTS_HEADER + COUNT_ENTRY * entries)
                store64(entry, COUNT_STATION, number)
                store64(entry, COUNT_HEAD, head)
                store64(entry, COUNT_ROWS, rows)
                entries += 1
    store64(counts, ENTRIES, entries)
    store64(wave, REPORTED, load64(wave, RAN))


@compiled
def write_output(wave):
    """Write down the changes of the stations that ran."""
    count = load64(wave, STATIONS)
    log = wave + 8 * (WAVE_HEADER + 2 * count)
    output = load64(wave, OUTPUT)
    at, room, entries = np.int64(OUTPUT_HEADER), load64(output, ROOM), np.int64(0)
    is_effective = load64(wave, IS_EFFECTIVE) == 1
    store64(output, IS_ALL, 1)
    for i in range(load64(wave, RAN)):
        number = load64(log, i)
        station = load64(wave, WAVE_HEADER + count + number)
        if is_effective and load64(station, FLOWS) == 0:  # a source
            continue
        shown = station + load64(station, SHOWN_AT)
        for which in range(SHOWN_WORDS * load64(station, SHOWN)):
            relation = load64(shown, which)
            rows = load64(relation, LIVE)
            if rows > 0:
                entry = output + 8 * at
                at += OUTPUT_ENTRY
                entries += 1
                size = rows * load64(relation, ARITY)
                store64(entry, OUTPUT_STATION, number)
                store64(entry, OUTPUT_WHICH, which)
                store64(entry, OUTPUT_ROWS, rows)
                store64(entry, OUTPUT_HAS_ROWS, 1 if size <= room else 0)
                if size <= room:
                    copy_rows(relation, ZERO, load64(relation, END), output + 8 * at, ZERO)
                    at += size
                    room -= size
                else:
                    store64(output, IS_ALL, 0)
    store64(output, ENTRIES, entries)
    store64(output, USED, at)


@compiled
def end_wave(machine, wave, is_applied):
    """Bring up what the stations that ran have stored, if it is to be; forget their changes."""
    if load64(wave, IS_OVER) == 1:  # nothing has begun since
        return
    count = load64(wave, STATIONS)
    stations = wave + 8 * (WAVE_HEADER + count)
    log = stations + 8 * count
    for i in range(load64(wave, RAN)):
        number = load64(log, i)
        station = load64(stations, number)
        if load64(wave, WAVE_HEADER + number) == BEGUN:  # it was stopped
            clear_relations(station, FORGOTTEN)
            rewind_sequence(load64(station, SEQUENCE))
        if is_applied == 1:
            clear_relations(station, REPLACED)
            move_rows(machine, station + load64(station, MOVES_AT), load64(station, MOVES))
        clear_relations(station, OUTLASTING)
    store64(wave, IS_OVER, 1)
    for number in range(count):
        store64(wave, WAVE_HEADER + number, 0)
