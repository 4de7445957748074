"""Pictures: bars of block characters for a terminal, and SVG written out by hand.

All axes for costs are logarithmic, because strategies differ by orders of magnitude. On such an
axis the length of a bar means nothing, so the SVG shows dots; the bars in the terminal begin at the
smallest figure shown and only rank.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

BLOCKS = " ▏▎▍▌▋▊▉█"
HEIGHTS = "▁▂▃▄▅▆▇█"
COLOURS = ("#999999", "#0072b2", "#d55e00", "#e69f00", "#cc79a7", "#009e73", "#56b4e9", "#000000")
SMALLEST = 0.01
WIDTH, LEFT, RIGHT, TOP, ROW = 900, 170, 30, 92, 22
PLOT_HEIGHT = 300

Row = tuple[str, Mapping[str, float]]


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis from one power of ten to another."""

    low: float
    high: float

    @classmethod
    def over(cls, values: Sequence[float], smallest: float = SMALLEST) -> Axis:
        shown = [max(value, smallest) for value in values] or [1.0]
        low = 10.0 ** math.floor(math.log10(min(shown)))
        high = 10.0 ** math.ceil(math.log10(max(shown)))
        return cls(low, high if high > low else low * 10)

    def place(self, value: float) -> float:
        """From 0 to 1."""
        value = min(max(value, self.low), self.high)
        return math.log(value / self.low) / math.log(self.high / self.low)

    def ticks(self) -> list[float]:
        first, last = round(math.log10(self.low)), round(math.log10(self.high))
        return [10.0**power for power in range(first, last + 1)]


def bar(share: float, width: int) -> str:
    """A bar that fills a share of the width, to an eighth of a character.

    >>> bar(0.5, 5), bar(0, 3)
    ('██▌', '')
    """
    eighths = round(share * width * 8)
    full, part = divmod(eighths, 8)
    return "█" * full + (BLOCKS[part] if part else "")


def sparks(values: Sequence[float], width: int = 60) -> str:
    """A curve of small blocks from the lowest value to the highest.

    >>> sparks([1, 2, 3, 8]), sparks([5, 5])
    ('▁▂▃█', '▁▁')
    """
    step = max(1, math.ceil(len(values) / width))
    shown = values[::step]
    low, high = min(shown), max(shown)
    span = (high - low) or 1
    return "".join(HEIGHTS[round((value - low) / span * (len(HEIGHTS) - 1))] for value in shown)


def dot_line(marks: Mapping[str, float], width: int) -> str:
    """Marks at their shares of the width; the first of two that meet is seen.

    >>> dot_line({"●": 0.5, "○": 0.0, "△": 0.0}, 5)
    '○·●··'
    """
    line = ["·"] * width
    for mark, share in reversed(list(marks.items())):
        line[min(round(share * (width - 1)), width - 1)] = mark
    return "".join(line)


def dot_plot(
    title: str,
    subtitle: str,
    rows: Sequence[Row],
    series: Sequence[str],
    smallest: float = SMALLEST,
) -> str:
    """One line per row, one dot per series, on a logarithmic axis."""
    axis = Axis.over([value for _, values in rows for value in values.values()], smallest)
    bottom = TOP + ROW * len(rows)
    parts = [*_heading(title, subtitle), *_legend(series)]
    parts += _vertical_grid(axis, TOP - 8, bottom)
    for number, (label, values) in enumerate(rows):
        y = TOP + ROW * number + ROW / 2 - 4
        parts.append(_text(LEFT - 10, y + 4, label, anchor="end"))
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" class="row"/>')
        for name, value in values.items():
            x = _across(axis.place(value))
            colour = COLOURS[series.index(name) % len(COLOURS)]
            shown = escape(f"{label}, {name}: {value:.4g}")
            parts.append(f'<circle cx="{x:.1f}" cy="{y}" r="5" fill="{colour}">')
            parts.append(f"<title>{shown}</title></circle>")
    return _document(bottom + 34, parts)


def line_plot(
    title: str, subtitle: str, lines: Mapping[str, Sequence[tuple[float, float]]], level: float
) -> str:
    """Lines over two logarithmic axes, with a level that matters drawn across."""
    points = [point for line in lines.values() for point in line]
    across = Axis.over([x for x, _ in points], 1e-6)
    upwards = Axis.over([*(y for _, y in points), level], 1e-6)
    bottom = TOP + PLOT_HEIGHT

    def height(value: float) -> float:
        return bottom - upwards.place(value) * PLOT_HEIGHT

    parts = [*_heading(title, subtitle), *_legend(list(lines))]
    parts += _vertical_grid(across, TOP, bottom)
    for tick in upwards.ticks():
        y = height(tick)
        style = "level" if tick == level else "row"
        line = f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="{style}"/>'
        parts += [line, _text(LEFT - 10, y + 4, f"{tick:g}", anchor="end")]
    for number, line_points in enumerate(lines.values()):
        colour = COLOURS[number % len(COLOURS)]
        places = " ".join(f"{_across(across.place(x)):.1f},{height(y):.1f}" for x, y in line_points)
        parts.append(f'<polyline points="{places}" stroke="{colour}" class="line"/>')
    return _document(bottom + 34, parts)


def _across(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _heading(title: str, subtitle: str) -> list[str]:
    return [_text(20, 28, title, style="title"), _text(20, 48, subtitle, style="quiet")]


def _legend(series: Sequence[str]) -> list[str]:
    parts = []
    x = 20.0
    for number, name in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        parts.append(f'<circle cx="{x + 5}" cy="66" r="5" fill="{colour}"/>')
        parts.append(_text(x + 15, 70, name))
        x += 30 + 6.4 * len(name)
    return parts


def _vertical_grid(axis: Axis, top: float, bottom: float) -> list[str]:
    parts = []
    for tick in axis.ticks():
        x = _across(axis.place(tick))
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}" class="grid"/>')
        parts.append(_text(x, bottom + 18, f"{tick:g}", anchor="middle"))
    return parts


def _text(x: float, y: float, text: str, style: str = "label", anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} class="{style}">{escape(text)}</text>'


STYLE = """\
text { font-family: system-ui, sans-serif; font-size: 12px; fill: #222 }
.title { font-size: 16px; font-weight: 600 } .quiet { fill: #666 }
.grid, .row { stroke: #e4e4e4; stroke-width: 1 } .level { stroke: #222; stroke-width: 1.5 }
.line { fill: none; stroke-width: 2.5; stroke-linejoin: round }"""


def _document(height: float, parts: Sequence[str]) -> str:
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
        f'width="{WIDTH}" height="{height:.0f}" role="img">'
    )
    ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return "\n".join([opening, f"<style>{STYLE}</style>", ground, *parts, "</svg>"]) + "\n"
