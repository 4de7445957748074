"""The way of a change through a network, as far as the kernels can go by themselves.

    wave:     [stations, ran, due…, code of each station (0: none)…, those that ran…]
    station:  [sequence, many, then how many and where: flows, forgotten, made, replaced, moves,
              outlasting]; flows as (relation, rows), made as (relation, reader), moves as
              (stored, gone, come, cursor), the others as relations

A station is due when a change that it reads is not empty. Stations run in their order, each reads
only what lower ones make, so one pass is enough. The caller is asked at a station that has no code,
and at one into which many rows flow.
"""

from __future__ import annotations

import numpy as np

from deltalog.engines.embedded.kernel import LIVE, clear, move
from deltalog.engines.embedded.memory import compiled, load64, store64
from deltalog.engines.embedded.pipeline import DONE, GIVEN_UP, begin, rewind, run_sequence

ASKED = 5
DUE, BEGUN = 1, 2
# A wave.
STATIONS, RAN = 0, 1
WAVE_HEADER = 2
# A station: how many there are of each list, and where (in bytes) they begin.
SEQUENCE, MANY, FLOWS, FLOWS_AT, FORGOTTEN, FORGOTTEN_AT = range(6)
MADE, MADE_AT, REPLACED, REPLACED_AT = range(6, 10)
MOVES, MOVES_AT, OUTLASTING, OUTLASTING_AT = range(10, 14)
STATION_HEADER = 14


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
def bind(wave, number):
    """What belongs to a station has been filled from outside."""
    enter(wave, number)
    leave(wave, load64(wave, WAVE_HEADER + load64(wave, STATIONS) + number))


@compiled
def clear_listed(station, which):
    listed = station + load64(station, which + 1)
    for i in range(load64(station, which)):
        clear(load64(listed, i))


@compiled
def run_wave(machine, wave, rounds, rounds_max, facts, facts_max, until):
    """Run what is due, lowest first: (how it ended, at which station)."""
    begin(machine, rounds, rounds_max, facts, facts_max, until)
    count = load64(wave, STATIONS)
    due = wave + 8 * WAVE_HEADER
    stations = due + 8 * count
    for number in range(count):
        if load64(due, number) == 0:
            continue
        station = load64(stations, number)
        if station == 0 or flowing(station) >= load64(station, MANY):
            store64(due, number, 0)
            return ASKED, np.int64(number)
        if load64(due, number) == DUE:
            enter(wave, number)
            store64(due, number, BEGUN)
        status = run_sequence(machine, load64(station, SEQUENCE))
        if status in (DONE, GIVEN_UP):
            store64(due, number, 0)
        if status != DONE:
            return status, np.int64(number)
        leave(wave, station)
    return DONE, np.int64(-1)


@compiled
def end_wave(machine, wave, is_applied):
    """Bring up what the stations that ran have stored, if it is to be; forget their changes."""
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
    store64(wave, RAN, 0)
    for number in range(count):
        store64(wave, WAVE_HEADER + number, 0)
