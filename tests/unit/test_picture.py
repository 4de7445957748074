"""Pictures of graphs: everything is in them, nothing lies on anything else."""

from __future__ import annotations

import re
from itertools import combinations
from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.cli.picture import Arc, Node, graph_svg

SVG = "{http://www.w3.org/2000/svg}"
Box = tuple[float, float, float, float]
Point = tuple[float, float]


def drawn(nodes: list[Node], arcs: list[Arc], title: str = "graph") -> ElementTree.Element:
    return ElementTree.fromstring(graph_svg(nodes, arcs, title))


def base(name: str, layer: int | None = None) -> Node:
    return Node(name, name, "base", layer)


def view(name: str, layer: int | None = None) -> Node:
    return Node(name, name, "view", layer)


def texts(svg: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in svg.iter(f"{SVG}text")]


def arcs_in(svg: ElementTree.Element) -> list[tuple[str, str, str]]:
    return [
        (path.attrib["data-source"], path.attrib["data-target"], path.attrib["class"])
        for path in svg.iter(f"{SVG}path")
        if "data-source" in path.attrib
    ]


def boxes(svg: ElementTree.Element) -> dict[str, Box]:
    """Left, top, right and bottom of every node."""
    found = {}
    for group in svg.iter(f"{SVG}g"):
        if "data-name" in group.attrib:
            rect, polygon = group.find(f".//{SVG}rect"), group.find(f".//{SVG}polygon")
            if rect is not None:
                found[group.attrib["data-name"]] = corners(rect)
            elif polygon is not None:
                numbers = [float(n) for n in re.findall(r"[-\d.]+", polygon.attrib["points"])]
                xs, ys = numbers[::2], numbers[1::2]
                found[group.attrib["data-name"]] = (min(xs), min(ys), max(xs), max(ys))
    return found


def corners(rect: ElementTree.Element) -> Box:
    x, y, width, height = (float(rect.attrib[key]) for key in ("x", "y", "width", "height"))
    return (x, y, x + width, y + height)


def labels(svg: ElementTree.Element) -> list[Box]:
    return [corners(rect) for rect in svg.iter(f"{SVG}rect") if rect.get("class") == "arc-label"]


def overlap(one: Box, two: Box) -> bool:
    return (
        min(one[2], two[2]) - max(one[0], two[0]) > 0.5
        and min(one[3], two[3]) - max(one[1], two[1]) > 0.5
    )


def along(path: str) -> list[Point]:
    """Points on a path of cubic curves."""
    numbers = [float(number) for number in re.findall(r"-?[\d.]+", path)]
    points = list(zip(numbers[::2], numbers[1::2], strict=True))
    found = []
    for start in range(0, len(points) - 1, 3):
        a, b, c, d = points[start : start + 4]
        for step in range(21):
            t = step / 20
            u = 1 - t
            weights = (u**3, 3 * u * u * t, 3 * u * t * t, t**3)
            x, y = (
                sum(w * p[axis] for w, p in zip(weights, (a, b, c, d), strict=True))
                for axis in (0, 1)
            )
            found.append((x, y))
    return found


def test_everything_is_there() -> None:
    nodes = [base("edge"), base("blocked"), view("path"), Node("g", "made", "generated", note="n")]
    arcs = [
        Arc("edge", "path", "step"),
        Arc("path", "path"),
        Arc("blocked", "path", kind="negative"),
        Arc("path", "g", "count", kind="aggregate"),
    ]
    svg = drawn(nodes, arcs, "my program")
    assert boxes(svg).keys() == {"edge", "blocked", "path", "g"}
    assert sorted(arcs_in(svg)) == [
        ("blocked", "path", "arc negative"),
        ("edge", "path", "arc positive"),
        ("path", "g", "arc aggregate"),
        ("path", "path", "arc positive"),
    ]
    assert {"my program", "edge", "made", "n", "step", "count"} <= set(texts(svg))


def test_what_is_read_lies_below() -> None:
    svg = drawn(
        [view("top"), view("middle"), base("bottom")],
        [Arc("bottom", "middle"), Arc("middle", "top"), Arc("bottom", "top")],
    )
    found = boxes(svg)
    assert found["bottom"][1] > found["middle"][3]
    assert found["middle"][1] > found["top"][3]


def test_layers_lie_above_each_other_whatever_the_arcs() -> None:
    nodes = [view("a", 1), view("b", 1), view("c", 2), base("d", 0), view("free")]
    svg = drawn(nodes, [Arc("a", "b"), Arc("c", "a"), Arc("b", "free"), Arc("free", "c")])
    found = boxes(svg)
    assert found["d"][1] > found["a"][3]
    assert found["a"][1] > found["b"][3]
    assert found["b"][1] > found["c"][3]
    assert found["free"][1] > found["c"][3]
    assert {"layer 0", "layer 1", "layer 2"} <= set(texts(svg))


def test_no_layers_are_named_when_there_is_one() -> None:
    assert not any("layer" in text for text in texts(drawn([view("a", 3), view("b", 3)], [])))


def test_cycles_and_loops() -> None:
    names = ["a", "b", "c"]
    arcs = [
        Arc("a", "b"),
        Arc("b", "c"),
        Arc("c", "a", "back"),
        Arc("a", "a", "self"),
        Arc("a", "a", "not", kind="negative"),
        Arc("b", "a"),
        Arc("a", "b", kind="aggregate"),
    ]
    svg = drawn([view(name) for name in names], arcs)
    assert len(arcs_in(svg)) == len(arcs)
    assert {"back", "self", "not"} <= set(texts(svg))


def test_names_are_escaped() -> None:
    name = "<&\"'>\x00\ud800\n\uffff"
    svg = drawn([Node(name, name, "view", note=name)], [Arc(name, name, name)], name)
    assert len(boxes(svg)) == 1
    assert any("<&\"'>" in text for text in texts(svg))


def test_the_legend_has_only_what_occurs() -> None:
    assert "aggregate" not in graph_svg([base("a"), base("b")], [Arc("a", "b")], "graph")
    words = texts(drawn([base("a"), view("b")], [Arc("a", "b", kind="negative")]))
    assert {"base", "view", "negative"} <= set(words)
    assert not {"generated", "positive", "aggregate"} & set(words)


def test_an_empty_graph() -> None:
    assert "there is nothing to draw" in texts(drawn([], [], "empty"))


def test_long_labels_are_cut_and_kept_for_the_pointer() -> None:
    label = "very_long_" * 20
    svg = drawn([Node(label, label, "view")], [])
    assert label not in texts(svg)
    assert label in [element.text for element in svg.iter(f"{SVG}title")]


def test_the_same_graph_gives_the_same_picture() -> None:
    nodes = [view(name) for name in "abcdef"]
    arcs = [Arc(one, two) for one, two in combinations("abcdef", 2)]
    assert graph_svg(nodes, arcs, "graph") == graph_svg(nodes, arcs, "graph")


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Node], list[Arc]]:
    size = draw(st.integers(1, 14))
    kinds = st.sampled_from(["base", "view", "generated"])
    layers = draw(st.sampled_from([st.none(), st.integers(0, 3), st.none() | st.integers(0, 2)]))
    words = st.sampled_from(["", "", "note", "a rather long note"])
    nodes = [
        Node(f"n{number}", "n" * draw(st.integers(1, 20)), draw(kinds), draw(layers), draw(words))
        for number in range(size)
    ]
    names = st.sampled_from([node.name for node in nodes])
    labels_ = draw(st.sampled_from([st.just(""), words]))
    arc_kinds = st.sampled_from(["positive", "negative", "aggregate"])
    arcs = draw(st.lists(st.builds(Arc, names, names, labels_, arc_kinds), max_size=2 * size))
    return nodes, arcs


@given(graph=graphs())
@settings(derandomize=True, deadline=None, max_examples=100)
def test_nothing_lies_on_anything_else(graph: tuple[list[Node], list[Arc]]) -> None:
    nodes, arcs = graph
    svg = drawn(nodes, arcs)
    found = boxes(svg)
    width, height = float(svg.attrib["width"]), float(svg.attrib["height"])
    everything = [*found.values(), *labels(svg)]
    assert not [pair for pair in combinations(everything, 2) if overlap(*pair)]
    assert all(b[0] >= 0 and b[1] >= 0 and b[2] <= width and b[3] <= height for b in everything)
    for path in svg.iter(f"{SVG}path"):
        if "data-source" in path.attrib:
            ends = {path.attrib["data-source"], path.attrib["data-target"]}
            others = [box for name, box in found.items() if name not in ends]
            assert not [
                (point, box)
                for point in along(path.attrib["d"])
                for box in others
                if box[0] < point[0] < box[2] and box[1] < point[1] < box[3]
            ]
