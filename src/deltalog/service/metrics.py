"""Figures of the service, as Prometheus reads them: counters, histograms and gauges.

Labels are routes, methods and results, never names of views or values: a figure is no fact.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from time import monotonic

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the histogram of times, in seconds."""
Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counted in the one thread of the event loop, so nothing is locked."""

    def __init__(self) -> None:
        self.started = monotonic()
        self._counters: dict[tuple[str, Labels], float] = {}
        self._times: dict[tuple[str, Labels], list[float]] = {}
        self._gauges: dict[str, Callable[[], float]] = {}
        self._help: dict[str, str] = {}

    def describe(self, name: str, text: str) -> None:
        """Describe a figure; `/metrics` shows the text above it."""
        self._help[name] = text

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        key = name, tuple(sorted(labels.items()))
        self._counters[key] = self._counters.get(key, 0) + amount

    def observe(self, name: str, seconds: float, /, **labels: str) -> None:
        """Add a time to a histogram."""
        key = name, tuple(sorted(labels.items()))
        held = self._times.setdefault(key, [0.0] * (len(BUCKETS) + 2))
        held[bisect_left(BUCKETS, seconds)] += 1
        held[-1] += seconds

    def gauge(self, name: str, read: Callable[[], float], text: str) -> None:
        """A figure that is asked when somebody reads the metrics."""
        self._gauges[name] = read
        self.describe(name, text)

    def total(self, name: str) -> float:
        """A counter over all its labels."""
        return sum(value for (each, _), value in self._counters.items() if each == name)

    def quantile(self, name: str, share: float) -> float | None:
        """The bucket's bound below which this share of all times lies; None without any."""
        counts = [0.0] * (len(BUCKETS) + 1)
        for (each, _), held in self._times.items():
            if each == name:
                counts = [a + b for a, b in zip(counts, held[:-1], strict=True)]
        wanted, seen = share * sum(counts), 0.0
        for bound, amount in zip((*BUCKETS, float("inf")), counts, strict=True):
            seen += amount
            if amount and seen >= wanted:
                return bound
        return None

    def text(self) -> str:
        """Everything, in the text format of Prometheus."""
        return "\n".join([*self._metric_lines(), ""])

    def _metric_lines(self) -> Iterator[str]:
        for name in sorted({name for name, _ in self._counters}):
            yield from self._head_lines(name, "counter")
            for (each, labels), value in sorted(self._counters.items()):
                if each == name:
                    yield f"{name}{_labels_text(labels)} {_number_text(value)}"
        for name in sorted({name for name, _ in self._times}):
            yield from self._head_lines(name, "histogram")
            for (each, labels), held in sorted(self._times.items()):
                if each == name:
                    yield from _histogram_lines(name, labels, held)
        for name, read in sorted(self._gauges.items()):
            yield from self._head_lines(name, "gauge")
            yield f"{name} {_number_text(read())}"

    def _head_lines(self, name: str, kind: str) -> Iterator[str]:
        if name in self._help:
            yield f"# HELP {name} {self._help[name]}"
        yield f"# TYPE {name} {kind}"


def _histogram_lines(name: str, labels: Labels, held: list[float]) -> Iterator[str]:
    seen = 0.0
    for bound, amount in zip((*BUCKETS, None), held[:-1], strict=True):
        seen += amount
        shown = "+Inf" if bound is None else f"{bound:g}"
        yield f"{name}_bucket{_labels_text((*labels, ('le', shown)))} {_number_text(seen)}"
    yield f"{name}_sum{_labels_text(labels)} {_number_text(held[-1])}"
    yield f"{name}_count{_labels_text(labels)} {_number_text(seen)}"


def _number_text(value: float) -> str:
    """All its digits: a counter that is rounded seems to stand still."""
    return str(int(value)) if value == int(value) else repr(value)


def _labels_text(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped_value(value)}"' for name, value in labels) + "}"


def _escaped_value(value: str) -> str:
    for plain, written in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n")):
        value = value.replace(plain, written)
    return value


def describe_metrics(metrics: Metrics, texts: Mapping[str, str]) -> Metrics:
    for name, text in texts.items():
        metrics.describe(name, text)
    return metrics
