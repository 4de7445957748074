"""A picture of a small directed graph, as SVG that needs nothing else.

Made for dependency graphs and propagation networks: what is read lies below what is made of it.

    Arc("edge", "path"), Arc("path", "path")      path (with a loop)
                                                    |
                                                  edge

The layout is the layered one of Sugiyama, Tagawa and Toda (1981), in four steps:

1. rows: arcs that close a cycle are turned round; then a node lies one row above the highest it
   depends on (longest path), and a given layer lies wholly above the layers before it;
2. routes: an arc that passes a row gets a place of its own there, and so does every arc label, in
   rows between the rows of nodes. Places never overlap, so labels and boxes never do;
3. order: sweeps sort each row by the barycentre of its neighbours, then swap neighbours while that
   removes crossings; the best order seen is kept;
4. columns: each row in turn moves as near as its order allows to where its neighbours are. That is
   least squares under an order, which pooling adjacent violators solves exactly.

Every loop is bounded by the size of the graph or by a constant; the same graph always gives the
same picture. Text is measured by a monospace estimate, so widths are right to a few pixels.
"""

from __future__ import annotations

import math
import unicodedata
from bisect import bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal as OneOf
from xml.sax.saxutils import escape, quoteattr

NodeKind = OneOf["base", "view", "generated"]
ArcKind = OneOf["positive", "negative", "aggregate"]

LABEL_LENGTH_MAX = 48
ORDER_SWEEPS = 16
COLUMN_SWEEPS = 40

_MARGIN = 24.0
_LABEL_SIZE, _SMALL_SIZE, _TITLE_SIZE = 13.0, 11.0, 16.0
_CHARACTER = 0.61
_BOX_HEIGHT, _NOTE_HEIGHT, _CHIP_HEIGHT = 32.0, 15.0, 16.0
_ROW_GAP_MIN, _ROW_GAP_MAX = 26.0, 90.0
_ARROW = 9.0
_PORT_GAP = 14.0
_LOOP_REACH = 26.0
_FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"

_NODE_COLOURS = {
    "base": ("#fdf4dc", "#a97b12"),
    "view": ("#e4effc", "#2b6cb0"),
    "generated": ("#f1f2f4", "#7a828c"),
}
_ARC_COLOURS = {"positive": "#4a5568", "negative": "#c5282f", "aggregate": "#1d4ed8"}
_ARC_DASHES = {"positive": "", "negative": "7 4", "aggregate": "1 4.5"}


@dataclass(frozen=True)
class Node:
    """A box. Nodes of one `layer` are drawn above those of any lower layer; None leaves it free."""

    name: str
    label: str
    kind: NodeKind
    layer: int | None = None
    note: str = ""


@dataclass(frozen=True)
class Arc:
    """An arrow from what is read to what is made of it, by the names of the nodes."""

    source: str
    target: str
    label: str = ""
    kind: ArcKind = "positive"


def graph_svg(nodes: Sequence[Node], arcs: Sequence[Arc], title: str) -> str:
    """The graph as a whole SVG document."""
    names = {node.name for node in nodes}
    assert len(names) == len(nodes), "two nodes have one name"
    assert all({arc.source, arc.target} <= names for arc in arcs), "an arc leads to no node"
    layout = _Layout(nodes, arcs)
    layout.arrange()
    return _document(layout, title)


# The layout


@dataclass(eq=False)
class _Place:
    """What takes room in a row: a node, or the point where an arc passes, perhaps with its label.

    `left` and `right` are its extents from the vertical line at `x` that arcs are drawn to.
    """

    row: int
    left: float
    right: float
    node: Node | None = None
    label: str = ""
    x: float = 0.0
    below: list[_Place] = field(default_factory=list)
    above: list[_Place] = field(default_factory=list)

    def gap_to(self, other: _Place) -> float:
        """How far apart the lines of two neighbours must be."""
        both_nodes = self.node is not None and other.node is not None
        return self.right + (28.0 if both_nodes else 14.0) + other.left


@dataclass(eq=False)
class _Route:
    """The places an arc goes through, from the lower end to the upper."""

    arc: Arc
    places: list[_Place]
    is_turned: bool


class _Layout:
    def __init__(self, nodes: Sequence[Node], arcs: Sequence[Arc]) -> None:
        self.nodes = nodes
        self.loops = {
            node.name: [a for a in arcs if a.source == a.target == node.name] for node in nodes
        }
        self.arcs = [arc for arc in arcs if arc.source != arc.target]
        self.arc_kinds = [kind for kind in _ARC_COLOURS if any(arc.kind == kind for arc in arcs)]
        self.bands = _bands(nodes, self.arcs)
        self.has_bands = len({node.layer for node in nodes} - {None}) > 1
        self.stride = 2 if any(arc.label for arc in self.arcs) else 1
        turned = _turned_arcs(nodes, self.arcs, self.bands)
        self.upward = [
            (arc.target, arc.source) if number in turned else (arc.source, arc.target)
            for number, arc in enumerate(self.arcs)
        ]
        self.level = _levels(nodes, self.upward, self.bands)
        self.places = {node.name: self._node_place(node) for node in nodes}
        height = max((place.row for place in self.places.values()), default=-1) + 1
        self.rows: list[list[_Place]] = [[] for _ in range(height)]
        for place in self.places.values():
            self.rows[place.row].append(place)
        self.routes = [self._route(arc, number in turned) for number, arc in enumerate(self.arcs)]

    def arrange(self) -> None:
        """Order every row and give every place its column."""
        connected = [[place for place in row if place.below or place.above] for row in self.rows]
        _order_rows(connected)
        _place_columns(connected)
        for route in self.routes * 2:
            _straighten(route.places[1:-1], connected)
        _append_loners(self.rows, connected)

    def _node_place(self, node: Node) -> _Place:
        degree = max(sum(arc[end] == node.name for arc in self.upward) for end in (0, 1))
        half = max(_box_width(node), degree * _PORT_GAP + 12) / 2
        right = half + self._loops_width(node)
        return _Place(self.level[node.name] * self.stride, half, right, node)

    def _loops_width(self, node: Node) -> float:
        loops = self.loops[node.name]
        if not loops:
            return 0.0
        labels = max(_width(_short(loop.label), _SMALL_SIZE) for loop in loops)
        return _LOOP_REACH + 8.0 * len(loops) + labels

    def _route(self, arc: Arc, is_turned: bool) -> _Route:
        ends = (self.places[arc.source], self.places[arc.target])
        lower, upper = reversed(ends) if is_turned else ends
        between = [_Place(row, 3.0, 3.0) for row in range(lower.row + 1, upper.row)]
        if arc.label:
            # The middle of the rows between rows of nodes: those with odd numbers.
            middle = between[(len(between) - 1) // 4 * 2]
            middle.label = _short(arc.label)
            middle.left = middle.right = _width(middle.label, _SMALL_SIZE) / 2 + 5
        places = [lower, *between, upper]
        for place in between:
            self.rows[place.row].append(place)
        for one, next_ in pairwise(places):
            one.above.append(next_)
            next_.below.append(one)
        return _Route(arc, places, is_turned)


def _bands(nodes: Sequence[Node], arcs: Sequence[Arc]) -> dict[str, int]:
    """The layer of every node: its own, or else the highest it depends on."""
    given = [node.layer for node in nodes if node.layer is not None]
    lowest = min(given, default=0)
    bands = {node.name: lowest if node.layer is None else node.layer for node in nodes}
    free = {node.name for node in nodes if node.layer is None}
    for _ in nodes:
        for arc in arcs:
            if arc.target in free:
                bands[arc.target] = max(bands[arc.target], bands[arc.source])
    return bands


def _turned_arcs(nodes: Sequence[Node], arcs: Sequence[Arc], bands: dict[str, int]) -> set[int]:
    """The numbers of the arcs that go down: to a lower layer, or back along a path of their own."""
    turned = {n for n, arc in enumerate(arcs) if bands[arc.source] > bands[arc.target]}
    outgoing: dict[str, list[int]] = {node.name: [] for node in nodes}
    entered_within, entered_from_below = set(), set()
    for number, arc in enumerate(arcs):
        if bands[arc.source] == bands[arc.target]:
            outgoing[arc.source].append(number)
            entered_within.add(arc.target)
        elif number not in turned:
            entered_from_below.add(arc.target)
    roots = sorted(
        outgoing, key=lambda name: (name in entered_within, name not in entered_from_below)
    )
    return turned | _closing_arcs(roots, arcs, outgoing)


def _closing_arcs(
    roots: Sequence[str], arcs: Sequence[Arc], outgoing: dict[str, list[int]]
) -> set[int]:
    """Arcs that a depth-first walk finds leading back to a node it has not finished."""
    closing: set[int] = set()
    started: set[str] = set()
    finished: set[str] = set()
    for root in roots:
        if root in started:
            continue
        started.add(root)
        stack: list[tuple[str, Iterator[int]]] = [(root, iter(outgoing[root]))]
        while stack:
            name, remaining = stack[-1]
            number = next(remaining, None)
            if number is None:
                finished.add(name)
                stack.pop()
                continue
            target = arcs[number].target
            if target not in started:
                started.add(target)
                stack.append((target, iter(outgoing[target])))
            elif target not in finished:
                closing.add(number)
    return closing


def _levels(
    nodes: Sequence[Node], upward: Sequence[tuple[str, str]], bands: dict[str, int]
) -> dict[str, int]:
    """The row of nodes each node is in, by longest path, band after band."""
    level: dict[str, int] = {}
    floor = 0
    for band in sorted(set(bands.values())):
        members = [node.name for node in nodes if bands[node.name] == band]
        level.update(dict.fromkeys(members, floor))
        within = [arc for arc in upward if bands[arc[0]] == bands[arc[1]] == band]
        for _ in members:
            for lower, upper in within:
                level[upper] = max(level[upper], level[lower] + 1)
        floor = max(level[name] for name in members) + 1
    return level


# Order within rows

_Side = Callable[[_Place], list[_Place]]


def _below(place: _Place) -> list[_Place]:
    return place.below


def _above(place: _Place) -> list[_Place]:
    return place.above


def _order_rows(rows: list[list[_Place]]) -> None:
    best = [list(row) for row in rows]
    fewest = _crossings(rows)
    for sweep in range(ORDER_SWEEPS):
        is_upward = sweep % 2 == 0
        for row in rows if is_upward else reversed(rows):
            _sort_by_barycentre(row, rows, _below if is_upward else _above)
        _swap_neighbours(rows)
        crossings = _crossings(rows)
        if crossings < fewest:
            fewest, best = crossings, [list(row) for row in rows]
    for row, order in zip(rows, best, strict=True):
        row[:] = order


def _indices(rows: list[list[_Place]]) -> dict[_Place, int]:
    return {place: index for row in rows for index, place in enumerate(row)}


def _sort_by_barycentre(row: list[_Place], rows: list[list[_Place]], side: _Side) -> None:
    """Sort the places that have neighbours on that side; the others stay where they are."""
    if not row:
        return
    around = rows[max(row[0].row - 1, 0) : row[0].row + 2]
    index = _indices(around)
    slots = [slot for slot, place in enumerate(row) if side(place)]
    ordered = sorted(
        (row[slot] for slot in slots),
        key=lambda place: sum(index[other] for other in side(place)) / len(side(place)),
    )
    for slot, place in zip(slots, ordered, strict=True):
        row[slot] = place


def _swap_neighbours(rows: list[list[_Place]]) -> None:
    index = _indices(rows)
    for row in rows:
        for slot in range(len(row) - 1):
            one, two = row[slot], row[slot + 1]
            if _pair_crossings(two, one, index) < _pair_crossings(one, two, index):
                row[slot], row[slot + 1] = two, one
                index[one], index[two] = slot + 1, slot


def _pair_crossings(left: _Place, right: _Place, index: dict[_Place, int]) -> int:
    return sum(
        index[one] > index[two]
        for side in (_below, _above)
        for one in side(left)
        for two in side(right)
    )


def _crossings(rows: list[list[_Place]]) -> int:
    """How many pairs of arcs cross between neighbouring rows."""
    index = _indices(rows)
    count = 0
    for row in rows:
        seen: list[int] = []
        for place in row:
            targets = sorted(index[other] for other in place.above)
            count += sum(len(seen) - bisect_right(seen, target) for target in targets)
            for target in targets:
                insort(seen, target)
    return count


# Columns


def _place_columns(rows: list[list[_Place]]) -> None:
    for row in rows:
        for left, right in pairwise(row):
            right.x = left.x + left.gap_to(right)
    for sweep in range(COLUMN_SWEEPS):
        is_last = sweep >= COLUMN_SWEEPS * 3 // 4
        for row in rows if sweep % 2 == 0 else reversed(rows):
            sides = (_below, _above) if is_last else ((_below,) if sweep % 2 == 0 else (_above,))
            _move_row(row, sides)


def _straighten(passing: Sequence[_Place], rows: list[list[_Place]]) -> None:
    """Bring neighbouring points of an arc into one column wherever there is room for it."""
    run: list[_Place] = []
    low, high = -math.inf, math.inf
    for place in passing:
        least, most = _room(place, rows[place.row])
        if max(low, least) > min(high, most):
            _align(run, low, high)
            run, low, high = [], -math.inf, math.inf
        run.append(place)
        low, high = max(low, least), min(high, most)
    _align(run, low, high)


def _align(run: list[_Place], low: float, high: float) -> None:
    if run:
        middle = sum(place.x for place in run) / len(run)
        for place in run:
            place.x = max(low, min(high, middle))


def _room(place: _Place, row: list[_Place]) -> tuple[float, float]:
    """The columns between its neighbours that a place may take."""
    slot = row.index(place)
    before = row[slot - 1] if slot else None
    after = row[slot + 1] if slot + 1 < len(row) else None
    return (
        -math.inf if before is None else before.x + before.gap_to(place),
        math.inf if after is None else after.x - place.gap_to(after),
    )


def _append_loners(rows: list[list[_Place]], connected: list[list[_Place]]) -> None:
    """Put nodes without arcs at the right end of their rows, and begin the picture at zero."""
    leftmost = min((place.x - place.left for row in connected for place in row), default=0.0)
    for row, ordered in zip(rows, connected, strict=True):
        for place in ordered:
            place.x -= leftmost
        loners = [place for place in row if not (place.below or place.above)]
        for place in loners:
            place.x = ordered[-1].x + ordered[-1].gap_to(place) if ordered else place.left
            ordered.append(place)
        row[:] = ordered


def _stiffness(place: _Place, other: _Place) -> float:
    """How much an arc wants to be straight: most where it only passes by."""
    passing = (place.node is None) + (other.node is None)
    return (1.0, 2.0, 8.0)[passing]


def _move_row(row: list[_Place], sides: Sequence[_Side]) -> None:
    """Move a row to where its neighbours want it, keeping its order and its gaps."""
    offset = 0.0
    offsets, wishes = [], []
    for number, place in enumerate(row):
        offset += row[number - 1].gap_to(place) if number else 0.0
        pulls = [(_stiffness(place, other), other.x) for side in sides for other in side(place)]
        weight = sum(pull for pull, _ in pulls)
        wish = sum(pull * x for pull, x in pulls) / weight if weight else place.x
        offsets.append(offset)
        wishes.append((wish - offset, weight or 0.05))
    for place, offset, position in zip(row, offsets, _pooled(wishes), strict=True):
        place.x = position + offset


def _pooled(wishes: list[tuple[float, float]]) -> list[float]:
    """The non-decreasing numbers nearest to the weighted wishes (pool adjacent violators).

    >>> _pooled([(1.0, 1.0), (5.0, 1.0), (3.0, 1.0)])
    [1.0, 4.0, 4.0]
    """
    blocks: list[tuple[float, float, int]] = []
    for wish, weight in wishes:
        count = 1
        while blocks and blocks[-1][0] >= wish:
            other, other_weight, other_count = blocks.pop()
            wish = (wish * weight + other * other_weight) / (weight + other_weight)
            weight, count = weight + other_weight, count + other_count
        blocks.append((wish, weight, count))
    return [wish for wish, _, count in blocks for _ in range(count)]


# Drawing


def _document(layout: _Layout, title: str) -> str:
    drawing = _Drawing(layout)
    legend, legend_width = _legend(layout)
    head = _MARGIN + _TITLE_SIZE + 18
    top = head + (30.0 if legend else 6.0)
    content = drawing.elements(top)
    width = max(drawing.width, legend_width, _width(title, _TITLE_SIZE), 160.0) + 2 * _MARGIN
    height = top + drawing.height + _MARGIN
    heading = _text(_MARGIN, _MARGIN + _TITLE_SIZE * 0.75, title, _TITLE_SIZE, "#1a202c", "start")
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-family="{_FONT}">',
        f"<title>{_safe(title)}</title>",
        f"<defs>{''.join(_marker(kind) for kind in layout.arc_kinds)}</defs>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        f'<g font-weight="bold">{heading}</g>',
        f'<g transform="translate({_MARGIN:.0f} {head:.0f})">{legend}</g>',
        *content,
        "</svg>",
    ]
    return "\n".join(line for line in lines if line) + "\n"


class _Drawing:
    """Turns places into shapes; rows get their heights here, the last row on top."""

    def __init__(self, layout: _Layout) -> None:
        self.layout = layout
        self.heights = [max(map(_place_height, row), default=0.0) for row in layout.rows]
        self.gaps = [self._gap(row) for row in layout.rows[:-1]]
        self.pad = 14.0 if layout.has_bands else 0.0
        names = [f"layer {band}" for band in layout.bands.values()]
        self.indent = max(_width(n, _SMALL_SIZE) for n in names) + 34 if layout.has_bands else 0.0
        places = [place for row in layout.rows for place in row]
        right = max((place.x + place.right for place in places), default=0.0)
        self.width = self.indent + right + self.pad
        self.height = max(sum(self.heights) + sum(self.gaps) + 2 * self.pad, 30.0)
        self.tops: list[float] = []

    def _gap(self, row: list[_Place]) -> float:
        """Arcs that go far sideways need height, or they run together."""
        sideways = max((abs(p.x - other.x) for p in row for other in p.above), default=0.0)
        least = _ROW_GAP_MIN if self.layout.stride == 2 else 2 * _ROW_GAP_MIN
        return min(max(least, 0.16 * sideways), max(_ROW_GAP_MAX, least))

    def elements(self, top: float) -> list[str]:
        if not self.layout.rows:
            return [_text(_MARGIN, top + 10, "there is nothing to draw", 13, "#718096", "start")]
        self._place_rows(top)
        shift = f'<g transform="translate({_MARGIN + self.indent:.1f} 0)">'
        routes = list(self._routes())
        nodes = [self._node(node) for node in self.layout.nodes]
        chips = [self._chip(route) for route in self.layout.routes]
        return [*self._band_panels(), shift, *routes, *chips, *nodes, "</g>"]

    def _place_rows(self, top: float) -> None:
        y = top + self.pad
        self.tops = [0.0] * len(self.heights)
        for row in range(len(self.heights) - 1, -1, -1):
            self.tops[row] = y
            y += self.heights[row] + (self.gaps[row - 1] if row else 0.0)

    def _middle(self, row: int) -> float:
        return self.tops[row] + self.heights[row] / 2

    def _band_panels(self) -> Iterator[str]:
        layout = self.layout
        if not layout.has_bands:
            return
        for band in sorted(set(layout.bands.values())):
            rows = [layout.places[name].row for name, of in layout.bands.items() if of == band]
            top = self.tops[max(rows)] - 12
            bottom = self.tops[min(rows)] + self.heights[min(rows)] + 12
            yield (
                f'<rect class="layer" x="{_MARGIN:.1f}" y="{top:.1f}" width="{self.width:.1f}" '
                f'height="{bottom - top:.1f}" rx="8" fill="#f7f9fb" stroke="#e6eaef"/>'
            )
            middle = (top + bottom) / 2
            yield _text(_MARGIN + 12, middle, f"layer {band}", _SMALL_SIZE, "#8a94a3", "start")

    def _node(self, node: Node) -> str:
        place = self.layout.places[node.name]
        y, height = self._middle(place.row), _box_height(node)
        fill, stroke = _NODE_COLOURS[node.kind]
        shape = _shape(node.kind, place.x, y, 2 * place.left, height)
        dash = ' stroke-dasharray="5 3"' if node.kind == "generated" else ""
        hover = node.name + (f": {node.note}" if node.note else "")
        label_y = y - (_NOTE_HEIGHT / 2 if node.note else 0)
        parts = [
            f'<g class="node {node.kind}" data-name={quoteattr(_clean(node.name))}>',
            f"<title>{_safe(hover)}</title>",
            f'<g fill="{fill}" stroke="{stroke}" stroke-width="1.5"{dash}>{shape}</g>',
            _text(place.x, label_y, _short(node.label), _LABEL_SIZE, "#1a202c"),
        ]
        if node.note:
            note_y = label_y + _NOTE_HEIGHT
            parts.append(_text(place.x, note_y, _short(node.note), _SMALL_SIZE, "#5f6b7a"))
        loops = self.layout.loops[node.name]
        parts += [self._loop(arc, place, y, n, len(loops)) for n, arc in enumerate(loops)]
        return "".join(parts) + "</g>"

    def _loop(self, arc: Arc, place: _Place, y: float, number: int, count: int) -> str:
        """A self loop on the right side; further ones lie around the first."""
        x = place.x + place.left
        reach = x + (_LOOP_REACH - 4 + 8 * number) * 4 / 3
        start, end = y - min(4 + 8 * number, 14), y + min(4 + 8 * number, 14)
        path = (
            f"M{x:.1f} {start:.1f}C{reach:.1f} {start - 11:.1f} {reach:.1f} {end + 11:.1f} "
            f"{x + _ARROW:.1f} {end + 1:.1f}"
        )
        label = ""
        if arc.label:
            label_y = y + (number - (count - 1) / 2) * 13
            label_x = x + _LOOP_REACH + 8.0 * (count - 1) + 4
            colour = _ARC_COLOURS[arc.kind]
            label = _text(label_x, label_y, _short(arc.label), _SMALL_SIZE, colour, "start")
        return _arc_element(arc, path) + label

    def _routes(self) -> Iterator[str]:
        exits = self._ports(lambda route: (route.places[0], route.places[1]))
        entries = self._ports(lambda route: (route.places[-1], route.places[-2]))
        for route in self.layout.routes:
            first, *between, last = route.places
            assert first.node is not None
            assert last.node is not None
            start = self._middle(first.row) - _box_height(first.node) / 2
            end = self._middle(last.row) + _box_height(last.node) / 2
            points = [_Point(exits[route], start), *self._passing(between)]
            points.append(_Point(entries[route], end))
            if route.is_turned:
                points.reverse()
            yield _arc_element(route.arc, _curve(points))

    def _passing(self, places: Sequence[_Place]) -> Iterator[_Point]:
        """Straight up past boxes; past labels at a slant, but not one that could touch them."""
        for place in places:
            top, height = self.tops[place.row], self.heights[place.row]
            if place.row % self.layout.stride:
                yield _Point(place.x, top + height / 2, slant_max=1.0 if height else 3.0)
            else:
                yield _Point(place.x, top + height)
                yield _Point(place.x, top)

    def _ports(self, ends: Callable[[_Route], tuple[_Place, _Place]]) -> dict[_Route, float]:
        """Where on the edge of its node each route begins or ends, in the order of the routes."""
        by_node: dict[_Place, list[_Route]] = {}
        for route in self.layout.routes:
            by_node.setdefault(ends(route)[0], []).append(route)
        ports = {}
        for place, routes in by_node.items():
            routes.sort(key=lambda route: ends(route)[1].x)
            for number, route in enumerate(routes):
                ports[route] = place.x + (number - (len(routes) - 1) / 2) * _PORT_GAP
        return ports

    def _chip(self, route: _Route) -> str:
        """The label of an arc, on a patch that interrupts its line."""
        for place in route.places:
            if place.label:
                y, width = self._middle(place.row), 2 * place.left - 2
                return (
                    f'<rect class="arc-label" x="{place.x - width / 2:.1f}" '
                    f'y="{y - _CHIP_HEIGHT / 2:.1f}" width="{width:.1f}" '
                    f'height="{_CHIP_HEIGHT:.0f}" rx="4" fill="#ffffff"/>'
                    + _text(place.x, y, place.label, _SMALL_SIZE, _ARC_COLOURS[route.arc.kind])
                )
        return ""


@dataclass(frozen=True)
class _Point:
    """Where a curve passes, and how far it may lean there: sideways for each step upward."""

    x: float
    y: float
    slant_max: float = 0.0


def _curve(points: list[_Point]) -> str:
    """A smooth path through the points; it stops where its arrow head begins.

    Each piece stays between the columns of its ends, as slants are those of a monotone spline.
    """
    last = points[-1]
    points[-1] = _Point(last.x, last.y + (_ARROW if points[-2].y > last.y else -_ARROW))
    slants = [0.0, *map(_slant, points, points[1:], points[2:]), 0.0]
    path = f"M{points[0].x:.1f} {points[0].y:.1f}"
    for (one, slant), (two, next_slant) in pairwise(zip(points, slants, strict=True)):
        reach = (two.y - one.y) * 0.42
        path += (
            f"C{one.x + slant * reach:.1f} {one.y + reach:.1f} "
            f"{two.x - next_slant * reach:.1f} {two.y - reach:.1f} {two.x:.1f} {two.y:.1f}"
        )
    return path


def _slant(before: _Point, point: _Point, after: _Point) -> float:
    """The harmonic mean of the slants on both sides, none where the curve turns back."""
    if not point.slant_max:
        return 0.0
    one = (point.x - before.x) / (point.y - before.y)
    two = (after.x - point.x) / (after.y - point.y)
    if one * two <= 0:
        return 0.0
    mean = 2 * one * two / (one + two)
    return max(-point.slant_max, min(point.slant_max, mean))


def _arc_element(arc: Arc, path: str) -> str:
    dashes = _ARC_DASHES[arc.kind]
    style = f' stroke-dasharray="{dashes}" stroke-linecap="round"' if dashes else ""
    about = f"{arc.source} → {arc.target} ({arc.kind})" + (f": {arc.label}" if arc.label else "")
    return (
        f'<path class="arc {arc.kind}" data-source={quoteattr(_clean(arc.source))} '
        f'data-target={quoteattr(_clean(arc.target))} d="{path}" fill="none" '
        f'stroke="{_ARC_COLOURS[arc.kind]}" stroke-width="1.6"{style} '
        f'marker-end="url(#arrow-{arc.kind})"><title>{_safe(about)}</title></path>'
    )


def _marker(kind: str) -> str:
    return (
        f'<marker id="arrow-{kind}" viewBox="0 0 9 8" refX="0.5" refY="4" markerWidth="9" '
        f'markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
        f'<path d="M0 0L9 4L0 8z" fill="{_ARC_COLOURS[kind]}"/></marker>'
    )


def _shape(kind: str, x: float, y: float, width: float, height: float) -> str:
    """A square box for what is stored, a round one for a view, cut corners for what is made."""
    left, top = x - width / 2, y - height / 2
    if kind == "generated":
        right, bottom, cut = left + width, top + height, min(7.0, height / 3)
        corners = [
            (left + cut, top),
            (right - cut, top),
            (right, top + cut),
            (right, bottom - cut),
            (right - cut, bottom),
            (left + cut, bottom),
            (left, bottom - cut),
            (left, top + cut),
        ]
        return f'<polygon points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in corners)}"/>'
    radius = min(11.0, height / 2) if kind == "view" else 0
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'rx="{radius:g}"/>'
    )


def _legend(layout: _Layout) -> tuple[str, float]:
    """A sample of each kind that occurs, in one line, and its width."""
    node_kinds = {node.kind for node in layout.nodes}
    samples: list[tuple[str, str]] = []
    for kind, (fill, stroke) in _NODE_COLOURS.items():
        if kind in node_kinds:
            shape = _shape(kind, 11, 0, 22, 14)
            samples.append((kind, f'<g fill="{fill}" stroke="{stroke}">{shape}</g>'))
    for arc_kind in layout.arc_kinds:
        line = (
            f'<path d="M0 0H{30 - _ARROW:g}" stroke="{_ARC_COLOURS[arc_kind]}" stroke-width="1.6" '
            f'stroke-dasharray="{_ARC_DASHES[arc_kind] or "none"}" stroke-linecap="round" '
            f'marker-end="url(#arrow-{arc_kind})"/>'
        )
        samples.append((arc_kind, line))
    parts, x = [], 0.0
    for words, sample in samples:
        indent = 30 if words in _NODE_COLOURS else 37
        text = _text(indent, 0, words, _SMALL_SIZE, "#4a5568", "start")
        parts.append(f'<g transform="translate({x:.0f} 0)">{sample}{text}</g>')
        x += indent + _width(words, _SMALL_SIZE) + 22
    return "".join(parts), x


# Text


def _text(x: float, y: float, words: str, size: float, colour: str, anchor: str = "middle") -> str:
    """A line of text centred on `y`; the baseline is set by hand, since not all viewers can."""
    return (
        f'<text x="{x:.1f}" y="{y + size * 0.35:.1f}" font-size="{size:g}" fill="{colour}" '
        f'text-anchor="{anchor}">{_safe(words)}</text>'
    )


def _clean(words: str) -> str:
    """Without what XML cannot hold: control characters and halves of characters."""
    return (
        "".join(
            " " if c in "\t\n\r" else "\ufffd" if unicodedata.category(c) in ("Cc", "Cs") else c
            for c in words
        )
        .replace("\ufffe", "\ufffd")
        .replace("\uffff", "\ufffd")
    )


def _safe(words: str) -> str:
    return escape(_clean(words))


def _short(words: str) -> str:
    return words if len(words) <= LABEL_LENGTH_MAX else words[: LABEL_LENGTH_MAX - 1] + "…"


def _width(words: str, size: float) -> float:
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in words)
    return (len(words) + wide) * size * _CHARACTER


def _box_width(node: Node) -> float:
    label, note = _width(_short(node.label), _LABEL_SIZE), _width(_short(node.note), _SMALL_SIZE)
    return max(label, note, 30.0) + 26


def _box_height(node: Node) -> float:
    return _BOX_HEIGHT + (_NOTE_HEIGHT if node.note else 0.0)


def _place_height(place: _Place) -> float:
    if place.node is not None:
        return _box_height(place.node)
    return _CHIP_HEIGHT if place.label else 0.0
