"""The way of a change through a network, as far as the kernels can go by themselves.

    wave:     [stations, ran, reported, is over, asked, is all news, outbox, made, due…, code of
              each station (0: none)…, those that ran…]
    station:  [sequence, many, then how many and where: flows, forgotten, made, replaced, moves,
              outlasting, shown, heads]; flows as (relation, rows), made as (relation, reader),
              moves as (stored, gone, come, cursor), shown as (come, gone), the others as relations
    inbox:    what shall come to sources and go, each as [station, come, gone, rows…]
    outbox:   [entries, room, used, is all there, then per entry: station, which of its shown
              relations, how many rows, whether they follow (there may be no room), rows…]; of
              sources nothing, if all that was in the inbox is news
    made:     [entries, then per entry: station, which of its heads, rows…]

A station is due when a change that it reads is not empty. Stations run in their order, each reads
only what lower ones make, so one pass is enough. The caller is asked at a station that has no code,
and at one into which many rows flow. Small changes are so common that what there is to tell is
written into boxes: a transaction is one call, and one more to bring it to its end.
"""

from __future__ import annotations

import numpy as np

from deltalog.engines.embedded.kernel import (
    ARITY,
    END,
    LIVE,
    MAY_LIST,
    VISIBLE,
    add,
    clear,
    copy_rows,
    find,
    move,
)
from deltalog.engines.embedded.kernel import MADE as MADE_BY
from deltalog.engines.embedded.kernel import enter as enter_rows
from deltalog.engines.embedded.memory import compiled, load64, store64
from deltalog.engines.embedded.pipeline import (
    DONE,
    GIVEN_UP,
    ZERO,
    begin,
    rewind,
    run_sequence,
)

ASKED = 5
DUE, BEGUN = 1, 2
# A wave.
STATIONS, RAN, REPORTED, IS_OVER, ASKED_AT, IS_NEWS, OUTBOX, MADE_BOX = range(8)
WAVE_HEADER = 8
# A station: how many there are of each list, and where (in bytes) they begin.
SEQUENCE, MANY, FLOWS, FLOWS_AT, FORGOTTEN, FORGOTTEN_AT = range(6)
MADE, MADE_AT, REPLACED, REPLACED_AT = range(6, 10)
MOVES, MOVES_AT, OUTLASTING, OUTLASTING_AT = range(10, 14)
SHOWN, SHOWN_AT, HEADS, HEADS_AT = range(14, 18)
STATION_HEADER = 18
# Boxes, and their entries.
ENTRIES, ROOM, USED, IS_ALL = range(4)
OUTBOX_HEADER, SHOWN_ENTRY = 4, 4
MADE_HEADER, MADE_ENTRY = 1, 3


@compiled
def flowing(station):
    """How many rows flow into a station; what each flow brings is noted beside it."""
    flows = station + load64(station, FLOWS_AT)
    total = np.int64(0)
    for i in range(load64(station, FLOWS)):
        rows = load64(load64(flows, 2 * i), LIVE)
        store64(flows, 2 * i + 1, rows)
        total += rows
    return total


@compiled
def enter(wave, number):
    """Note that a station runs, and what flows into it."""
    if load64(wave, IS_OVER) == 1:
        store64(wave, IS_OVER, 0)
        store64(wave, RAN, 0)
        store64(wave, REPORTED, 0)
    ran, count = load64(wave, RAN), load64(wave, STATIONS)
    store64(wave, WAVE_HEADER + 2 * count + ran, number)
    store64(wave, RAN, ran + 1)
    return flowing(load64(wave, WAVE_HEADER + count + number))


@compiled
def leave(wave, station):
    """A station is done: those that read what it made are due, and what only it needed goes."""
    made = station + load64(station, MADE_AT)
    for i in range(load64(station, MADE)):
        if load64(load64(made, 2 * i), LIVE) > 0:
            store64(wave, WAVE_HEADER + load64(made, 2 * i + 1), DUE)
    clear_listed(station, FORGOTTEN)
    if load64(station, SEQUENCE) != 0:
        rewind(load64(station, SEQUENCE))


@compiled
def take(machine, wave, inbox, count):
    """Fill the changes of sources with what is not so yet: who reads them is due."""
    if count > 0:
        store64(wave, IS_NEWS, 1)
    for _ in range(count):
        number, come, gone = load64(inbox, 0), load64(inbox, 1), load64(inbox, 2)
        station = load64(wave, WAVE_HEADER + load64(wave, STATIONS) + number)
        sides = station + load64(station, SHOWN_AT)
        stored = np.int64(0)
        if load64(station, MOVES) > 0:  # otherwise it has changed already
            stored = load64(station + load64(station, MOVES_AT), 0)
            enter_rows(stored)
        inbox += 24
        enter(wave, number)
        inbox = insert_news(machine, stored, load64(sides, 0), inbox, come, False)
        inbox = insert_news(machine, stored, load64(sides, 1), inbox, gone, True)
        if load64(load64(sides, 0), LIVE) + load64(load64(sides, 1), LIVE) < come + gone:
            store64(wave, IS_NEWS, 0)
        leave(wave, station)


@compiled
def insert_news(machine, stored, side, words, count, is_there):
    """Add those rows to a side of which it is not so yet; answers where the next ones stand."""
    width = 8 * load64(side, ARITY)
    for _ in range(count):
        if stored == 0 or (find(stored, words) >= 0) == is_there:
            add(machine, side, words)
        words += width
    store64(side, VISIBLE, load64(side, END))
    return words


@compiled
def clear_listed(station, which):
    listed = station + load64(station, which + 1)
    for i in range(load64(station, which)):
        clear(load64(listed, i))


@compiled
def run_wave(machine, wave, inbox, taken, rounds, rounds_max, facts, facts_max, until):
    """Take what is in the inbox, and run what is due, lowest first; answers how it ended."""
    take(machine, wave, inbox, taken)
    store64(machine, MAY_LIST, 1)
    begin(machine, rounds, rounds_max, facts, facts_max, until)
    status = run_due(machine, wave)
    tell_made(wave)
    if status == DONE:
        tell_shown(wave)
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
        if station == 0 or flowing(station) >= load64(station, MANY):
            store64(due, number, 0)
            return ASKED
        if load64(due, number) == DUE:
            enter(wave, number)
            store64(due, number, BEGUN)
        status = run_sequence(machine, load64(station, SEQUENCE))
        if status in (DONE, GIVEN_UP):
            store64(due, number, 0)
        if status != DONE:
            return status
        leave(wave, station)
    return DONE


@compiled
def tell_made(wave):
    """Write down how many rows each station has made since this was last done."""
    count = load64(wave, STATIONS)
    log = wave + 8 * (WAVE_HEADER + 2 * count)
    box = load64(wave, MADE_BOX)
    told = np.int64(0)
    for i in range(max(load64(wave, REPORTED) - 1, 0), load64(wave, RAN)):  # it may have gone on
        number = load64(log, i)
        station = load64(wave, WAVE_HEADER + count + number)
        heads = station + load64(station, HEADS_AT)
        for head in range(load64(station, HEADS)):
            relation = load64(heads, head)
            rows = load64(relation, MADE_BY)
            if rows > 0:
                store64(relation, MADE_BY, 0)
                entry = box + 8 * (MADE_HEADER + MADE_ENTRY * told)
                store64(entry, 0, number)
                store64(entry, 1, head)
                store64(entry, 2, rows)
                told += 1
    store64(box, ENTRIES, told)
    store64(wave, REPORTED, load64(wave, RAN))


@compiled
def tell_shown(wave):
    """Write down what comes to the stations that ran, and goes."""
    count = load64(wave, STATIONS)
    log = wave + 8 * (WAVE_HEADER + 2 * count)
    box = load64(wave, OUTBOX)
    at, room, told = np.int64(OUTBOX_HEADER), load64(box, ROOM), np.int64(0)
    is_news = load64(wave, IS_NEWS) == 1
    store64(box, IS_ALL, 1)
    for i in range(load64(wave, RAN)):
        number = load64(log, i)
        station = load64(wave, WAVE_HEADER + count + number)
        if is_news and load64(station, FLOWS) == 0:  # a source
            continue
        shown = station + load64(station, SHOWN_AT)
        for which in range(2 * load64(station, SHOWN)):
            relation = load64(shown, which)
            rows = load64(relation, LIVE)
            if rows > 0:
                entry = box + 8 * at
                at += SHOWN_ENTRY
                told += 1
                size = rows * load64(relation, ARITY)
                store64(entry, 0, number)
                store64(entry, 1, which)
                store64(entry, 2, rows)
                store64(entry, 3, 1 if size <= room else 0)
                if size <= room:
                    copy_rows(relation, ZERO, load64(relation, END), box + 8 * at, ZERO)
                    at += size
                    room -= size
                else:
                    store64(box, IS_ALL, 0)
    store64(box, ENTRIES, told)
    store64(box, USED, at)


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
            clear_listed(station, FORGOTTEN)
            rewind(load64(station, SEQUENCE))
        if is_applied == 1:
            clear_listed(station, REPLACED)
            move(machine, station + load64(station, MOVES_AT), load64(station, MOVES))
        clear_listed(station, OUTLASTING)
    store64(wave, IS_OVER, 1)
    for number in range(count):
        store64(wave, WAVE_HEADER + number, 0)
