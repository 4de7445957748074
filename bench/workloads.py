"""Seeded workloads, the same for every engine: rules, base facts, and transactions by phase.

    w1_dag w1_grid w1_chain w1_scc    transitive closure of four families of graphs
    w2    same generation             w5    inventory: a join of five relations and a comparison
    w3    points-to analysis          w6    a join, grouped, counted and summed
    w4    negation over closure       w7    permissions of nested groups on nested folders

Phases, in this order, every batch one transaction:

    ins       a fact that is new, and stays
    delrei    pairs: a fact is deleted, then put back; so each deletion meets the whole structure
    batch     one batch: 1 % of the facts deleted and as many new ones inserted
    upd       a value is replaced                    move    a row of a dimension is replaced

Integers only, so that no engine pays for interning text. Nothing is global: the same arguments give
the same workload. A scale multiplies the sizes; 1 is the size at which peers have been measured.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

Fact = tuple[int, ...]
Change = tuple[str, str, Fact]
Batch = list[Change]
Base = dict[str, list[Fact]]
Phases = dict[str, list[Batch]]

CHANGES = 200
ATTEMPTS_MAX = 100_000


@dataclass(frozen=True)
class Workload:
    """Rules and base facts, and the transactions to apply; a change is `(op, relation, fact)`."""

    name: str
    rules: str
    base: Mapping[str, list[Fact]]
    outputs: tuple[str, ...]
    phases: Mapping[str, list[Batch]]

    @property
    def program(self) -> str:
        """The rules with declarations of the base relations."""
        declared = "".join(
            f"base {name}({', '.join(f'c{i}: int' for i in range(len(facts[0])))}).\n"
            for name, facts in self.base.items()
        )
        return declared + self.rules

    @property
    def size(self) -> int:
        """How many base facts there are."""
        return sum(map(len, self.base.values()))


def workload(name: str, scale: float = 1.0, changes: int = CHANGES) -> Workload:
    """A workload by its name; `changes` is how many transactions of each kind it has."""
    return WORKLOADS[name](scale, changes)


class NothingFreshError(ValueError):
    """A workload is so small that it has no room for new facts."""


def _fresh(draw: Callable[[], Fact | None], taken: set[Fact]) -> Fact:
    """Draw until there is a fact that is not taken; None stands for a draw that failed."""
    for _ in range(ATTEMPTS_MAX):
        fact = draw()
        if fact is not None and fact not in taken:
            return fact
    raise NothingFreshError(f"no fact that is new in {ATTEMPTS_MAX} attempts: too small a scale")


def _scaled(number: int, scale: float, least: int = 1) -> int:
    return max(least, int(number * scale))


def _removed(relation: str, facts: Iterable[Fact]) -> Batch:
    return [("-", relation, fact) for fact in facts]


def _inserted(relation: str, facts: Iterable[Fact]) -> Batch:
    return [("+", relation, fact) for fact in facts]


def _and_back(relation: str, facts: Iterable[Fact]) -> list[Batch]:
    """Each fact deleted, and put back."""
    return [batch for f in facts for batch in (_removed(relation, [f]), _inserted(relation, [f]))]


# --- w1: transitive closure -----------------------------------------------------------------------

CLOSURE = """\
path(X, Y) :- edge(X, Y).
path(X, Z) :- path(X, Y), edge(Y, Z)."""

GRID_WIDTH = 60


def acyclic_graph(nodes: int = 5000, edges: int = 20_500, seed: int = 1) -> list[Fact]:
    """Random edges from lower to higher nodes."""
    draw = random.Random(seed)
    found: set[Fact] = set()
    while len(found) < edges:
        a, b = draw.randrange(nodes), draw.randrange(nodes)
        if a != b:
            found.add((min(a, b), max(a, b)))
    return sorted(found)


def grid_graph(width: int = GRID_WIDTH, height: int = 60) -> list[Fact]:
    """Edges to the right and downwards."""
    edges: list[Fact] = []
    for row in range(height):
        for column in range(width):
            node = row * width + column
            if column + 1 < width:
                edges.append((node, node + 1))
            if row + 1 < height:
                edges.append((node, node + width))
    return edges


def chain_graph(nodes: int = 1000) -> list[Fact]:
    return [(node, node + 1) for node in range(nodes - 1)]


def scale_free_graph(
    nodes: int = 1500, links: int = 2, reversed_share: float = 0.105, seed: int = 3
) -> list[Fact]:
    """Preferential attachment, some edges reversed: one big component and a periphery."""
    draw = random.Random(seed)
    found: set[Fact] = set()
    urn = [0]
    for node in range(1, nodes):
        for _ in range(links):
            target = draw.choice(urn)
            if target != node:
                is_reversed = draw.random() < reversed_share
                found.add((target, node) if is_reversed else (node, target))
                urn.append(target)
        urn.append(node)
    return sorted(found)


def closure(kind: str, scale: float = 1.0, changes: int = CHANGES) -> Workload:
    """Transitive closure of one of the four families of graphs: dag, grid, chain, scc."""
    if kind == "dag":
        nodes = _scaled(5000, scale, 20)
        edges = acyclic_graph(nodes, _scaled(20_500, scale, 40))
    elif kind == "grid":
        height = _scaled(60, scale, 3)
        nodes = GRID_WIDTH * height
        edges = grid_graph(GRID_WIDTH, height)
    elif kind == "chain":
        nodes = _scaled(1000, scale, 10)
        edges = chain_graph(nodes)
    elif kind == "scc":
        nodes = _scaled(1500, scale, 10)
        edges = scale_free_graph(nodes)
    else:
        raise ValueError(kind)
    phases = graph_changes(edges, nodes, kind, 11, changes)
    return Workload(f"w1_{kind}", CLOSURE, {"edge": edges}, ("path",), phases)


def graph_changes(
    edges: list[Fact], nodes: int, kind: str, seed: int, changes: int = CHANGES
) -> Phases:
    """New edges that leave the graph in its family; deletions of any edge.

    Leaves of a chain hang on any of its nodes, whatever the scale, so that there is work to do.
    """
    draw = random.Random(seed)
    current = set(edges)

    def edge() -> Fact | None:
        if kind == "grid":  # a diagonal, which keeps it acyclic
            a = draw.randrange(nodes)
            b = a + GRID_WIDTH + 1
            if a % GRID_WIDTH == GRID_WIDTH - 1 or b >= nodes:
                return None
        elif kind == "chain":  # a new leaf: as many new paths as its position says
            a, b = draw.randrange(nodes), nodes + draw.randrange(10**6)
        else:
            a, b = draw.randrange(nodes), draw.randrange(nodes)
            if kind == "dag":
                a, b = min(a, b), max(a, b)
        return (a, b) if a != b else None

    return _single_changes(draw, "edge", edges, current, edge, changes)


def _single_changes(
    draw: random.Random,
    relation: str,
    base: list[Fact],
    current: set[Fact],
    make: Callable[[], Fact | None],
    changes: int,
) -> Phases:
    """Insertions, deletions with reinsertion, and a batch, all of one relation."""

    def fresh() -> Fact:
        fact = _fresh(make, current)
        current.add(fact)
        return fact

    inserts = [_inserted(relation, [fresh()]) for _ in range(changes)]
    pool = sorted(current)
    there_and_back = _and_back(relation, draw.sample(pool, min(changes, len(pool))))
    count = max(1, len(base) // 100)
    batch = _removed(relation, draw.sample(sorted(current), count))
    batch += _inserted(relation, [fresh() for _ in range(count)])
    return {"ins": inserts, "delrei": there_and_back, "batch": [batch]}


# --- w2: same generation --------------------------------------------------------------------------

SAME_GENERATION = """\
sg(X, Y) :- parent(P, X), parent(P, Y).
sg(X, Y) :- parent(A, X), sg(A, B), parent(B, Y)."""


def same_generation(
    scale: float = 1.0, changes: int = CHANGES, depth: int = 8, seed: int = 5
) -> Workload:
    """A forest in layers where 6 % have a second parent, so that derivations overlap."""
    draw = random.Random(seed)
    nodes = _scaled(2000, scale, 20)
    layers = [[0, 1, 2]]
    following = 3
    parents: set[Fact] = set()
    for _ in range(depth):
        size = min(int(len(layers[-1]) * 2.1) + 1, nodes - following)
        if size <= 0:
            break
        layer = list(range(following, following + size))
        following += size
        for child in layer:
            parents.add((draw.choice(layers[-1]), child))
            if draw.random() < 0.06:
                parents.add((draw.choice(layers[-1]), child))
        layers.append(layer)

    def parent() -> Fact:
        level = draw.randrange(len(layers) // 2, len(layers) - 1)
        return draw.choice(layers[level]), draw.choice(layers[level + 1])

    base = sorted(parents)
    phases = _single_changes(draw, "parent", base, set(parents), parent, changes)
    return Workload("w2", SAME_GENERATION, {"parent": base}, ("sg",), phases)


# --- w3: points-to analysis -----------------------------------------------------------------------

POINTS_TO = """\
pt(V, O) :- alloc(V, O).
pt(V, O) :- assign(V, W), pt(W, O).
pt(V, O) :- load(V, P), pt(P, Q), pt(Q, O).
pt(Q, O) :- store(P, V), pt(P, Q), pt(V, O)."""


def points_to(scale: float = 1.0, changes: int = CHANGES, seed: int = 7) -> Workload:
    """Andersen's analysis; objects are themselves variables, numbered after the others."""
    draw = random.Random(seed)
    variables, objects = _scaled(4000, scale, 20), _scaled(800, scale, 4)
    alloc: set[Fact] = {
        (draw.randrange(variables), variables + draw.randrange(objects))
        for _ in range(int(variables * 0.5))
    }

    def skewed() -> int:
        return min(int(variables * draw.random() ** 1.6), variables - 1)

    def pairs(count: int) -> list[Fact]:
        found: set[Fact] = set()
        while len(found) < count:
            found.add((draw.randrange(variables), draw.randrange(variables)))
        return sorted(found)

    assign: set[Fact] = set()
    while len(assign) < _scaled(3500, scale):
        a, b = draw.randrange(variables), skewed()
        if a != b and abs(a - b) < variables // 6:
            assign.add((a, b))
    load = pairs(_scaled(100, scale))
    store = pairs(_scaled(100, scale))
    base: Base = {"alloc": sorted(alloc), "assign": sorted(assign), "load": load, "store": store}
    phases = _single_changes(
        draw,
        "assign",
        base["assign"],
        set(assign),
        lambda: (draw.randrange(variables), draw.randrange(variables)),
        changes,
    )
    return Workload("w3", POINTS_TO, base, ("pt",), phases)


# --- w4: negation over recursion ------------------------------------------------------------------

NEGATION = f"""{CLOSURE}
one_way(X) :- path(X, Y), not path(Y, X).
unreachable(X, Y) :- node(X), node(Y), not path(X, Y)."""


def negation(scale: float = 1.0, changes: int = CHANGES, seed: int = 9) -> Workload:
    """What cannot be reached, and who can be left but not come back to."""
    draw = random.Random(seed)
    nodes, edges = _scaled(700, scale, 10), _scaled(1050, scale, 15)
    found: set[Fact] = set()
    while len(found) < edges:
        a, b = draw.randrange(nodes), draw.randrange(nodes)
        if a != b:
            found.add((a, b))
    base: Base = {"edge": sorted(found), "node": [(node,) for node in range(nodes)]}
    phases = graph_changes(base["edge"], nodes, "any", 13, changes)
    return Workload("w4", NEGATION, base, ("path", "one_way", "unreachable"), phases)


# --- w5: inventory --------------------------------------------------------------------------------

INVENTORY = """\
low(I) :- quantity(I, Q), consume_freq(I, F), supplies(S, I), delivery_time(I, S, D),
          min_stock(I, M), Q < F * D + M."""


def inventory(
    items_at_full_scale: int, scale: float = 1.0, changes: int = CHANGES, seed: int = 15
) -> Workload:
    """Items to reorder (Risch & Sköld 1999); a transaction replaces the quantity of one item."""
    draw = random.Random(seed)
    items = _scaled(items_at_full_scale, scale)
    suppliers = max(1, items // 20)
    base: Base = {
        name: [] for name in ("quantity", "consume_freq", "min_stock", "supplies", "delivery_time")
    }
    for item in range(items):
        supplier = draw.randrange(suppliers)
        frequency, days, least = draw.randint(1, 20), draw.randint(1, 10), draw.randint(0, 100)
        quantity = draw.randint(0, 2 * (frequency * days + least) + 10)
        base["quantity"].append((item, quantity))
        base["consume_freq"].append((item, frequency))
        base["min_stock"].append((item, least))
        base["supplies"].append((supplier, item))
        base["delivery_time"].append((item, supplier, days))
    held = {fact[0]: fact[1] for fact in base["quantity"]}
    updates: list[Batch] = []
    for _ in range(changes):
        item, quantity = draw.randrange(items), draw.randint(0, 400)
        if quantity == held[item]:
            quantity += 1
        updates.append([("-", "quantity", (item, held[item])), ("+", "quantity", (item, quantity))])
        held[item] = quantity
    return Workload(
        f"w5_{_named(items_at_full_scale)}", INVENTORY, base, ("low",), {"upd": updates}
    )


def _named(number: int) -> str:
    """
    >>> _named(10), _named(100_000), _named(1_000_000)
    ('10', '100k', '1m')
    """
    for unit, letter in ((1_000_000, "m"), (1_000, "k")):
        if number % unit == 0:
            return f"{number // unit}{letter}"
    return str(number)


# --- w6: a join, grouped --------------------------------------------------------------------------

GROUP_BY = "by_region(R, count(), sum(A)) :- orders(O, C, A), customer(C, R)."


def group_by(
    name: str,
    rows_at_full_scale: int,
    customers_at_full_scale: int,
    scale: float = 1.0,
    changes: int = CHANGES,
    seed: int = 17,
) -> Workload:
    """Orders by region; `move` takes a customer with all orders to another region."""
    draw = random.Random(seed)
    real = draw.random
    rows, customers = (
        _scaled(rows_at_full_scale, scale, 10),
        _scaled(customers_at_full_scale, scale, 4),
    )
    regions = _scaled(1000, scale, 2)
    customer: list[Fact] = [(c, draw.randrange(regions)) for c in range(customers)]
    orders: list[Fact] = [(o, int(real() * customers), int(real() * 1000)) for o in range(rows)]

    def order(number: int) -> Fact:
        return rows + number, draw.randrange(customers), draw.randrange(1000)

    def some(count: int) -> list[Fact]:
        return [orders[o] for o in draw.sample(range(rows), min(count, rows))]

    inserts = [_inserted("orders", [order(number)]) for number in range(changes)]
    there_and_back = _and_back("orders", some(changes))
    batch = _removed("orders", some(500))
    batch += _inserted("orders", [order(changes + number) for number in range(500)])
    moves = [
        [("-", "customer", customer[c]), ("+", "customer", (c, (customer[c][1] + 1) % regions))]
        for c in draw.sample(range(customers), min(50, changes, customers))
    ]
    phases = {"ins": inserts, "delrei": there_and_back, "batch": [batch], "move": moves}
    return Workload(
        name, GROUP_BY, {"orders": orders, "customer": customer}, ("by_region",), phases
    )


# --- w7: permissions ------------------------------------------------------------------------------

PERMISSIONS = """\
in_group(U, G) :- member(U, G).
in_group(U, G) :- in_group(U, H), subgroup(H, G).
under(D, F) :- doc_in(D, F).
under(D, F) :- under(D, E), parent(E, F).
allow(U, D) :- in_group(U, G), grant(G, F), under(D, F).
denied(U, D) :- in_group(U, G), deny(G, F), under(D, F).
can(U, D) :- allow(U, D), not denied(U, D)."""

CHANGED = ("member",) * 6 + ("doc_in",) * 4 + ("grant",) * 3 + ("deny",) * 3 + ("subgroup",) * 2


def permissions(scale: float = 1.0, changes: int = CHANGES, seed: int = 19) -> Workload:
    """Users in nested groups, documents in nested folders, grants and denials between them.

    Numbers run on: users, then groups, then folders, then documents.
    """
    draw = random.Random(seed)
    users, groups = _scaled(1500, scale, 4), _scaled(200, scale, 5)
    folders, documents = _scaled(600, scale, 5), _scaled(4000, scale, 10)
    first_folder = users + groups
    first_document = first_folder + folders

    def membership() -> Fact:
        return draw.randrange(users), users + draw.randrange(groups)

    def rights() -> Fact:
        deep = folders // 20  # not at the very top, where a grant would cover everything
        return users + draw.randrange(groups), first_folder + draw.randrange(deep, folders)

    def filed() -> Fact:
        return first_document + draw.randrange(documents), first_folder + draw.randrange(folders)

    def nesting() -> Fact:
        a, b = draw.sample(range(groups), 2)
        return users + max(a, b), users + min(a, b)

    member = {membership() for _ in range(users * 2)}
    subgroup: set[Fact] = set()  # nearly a tree, and never a cycle
    for group in range(1, groups):
        subgroup.add((users + group, users + draw.randrange(max(0, group - 30), group)))
        if draw.random() < 0.1:
            subgroup.add((users + group, users + draw.randrange(0, group)))
    parent: set[Fact] = {
        (first_folder + f, first_folder + draw.randrange(max(0, f // 3), f))
        for f in range(1, folders)
    }
    doc_in: set[Fact] = {
        (first_document + d, first_folder + draw.randrange(folders)) for d in range(documents)
    }
    grant = {rights() for _ in range(_scaled(160, scale, 2))}
    deny = {rights() for _ in range(_scaled(40, scale, 2))}
    found = {
        "member": member,
        "subgroup": subgroup,
        "parent": parent,
        "doc_in": doc_in,
        "grant": grant,
        "deny": deny,
    }
    base = {name: sorted(facts) for name, facts in found.items()}
    make: dict[str, Callable[[], Fact]] = {
        "member": membership,
        "grant": rights,
        "deny": rights,
        "doc_in": filed,
        "subgroup": nesting,
    }
    phases = _mixed_changes(draw, base, make, changes)
    return Workload(
        "w7", PERMISSIONS, base, ("can", "allow", "denied", "in_group", "under"), phases
    )


def _mixed_changes(
    draw: random.Random,
    base: Mapping[str, list[Fact]],
    make: Mapping[str, Callable[[], Fact]],
    changes: int,
) -> Phases:
    """Changes of several relations, some more often than others."""
    current = {name: set(facts) for name, facts in base.items()}

    def fresh(relation: str) -> Fact:
        fact = _fresh(make[relation], current[relation])
        current[relation].add(fact)
        return fact

    inserts: list[Batch] = []
    for _ in range(changes):
        relation = draw.choice(CHANGED)
        inserts.append(_inserted(relation, [fresh(relation)]))
    there_and_back: list[Batch] = []
    for _ in range(changes):
        relation = draw.choice(CHANGED)
        there_and_back += _and_back(relation, [draw.choice(sorted(current[relation]))])
    batch: Batch = []
    for relation in dict.fromkeys(CHANGED):
        count = max(1, len(base[relation]) // 100)
        batch += _removed(relation, draw.sample(sorted(current[relation]), count))
        batch += _inserted(relation, [fresh(relation) for _ in range(count)])
    return {"ins": inserts, "delrei": there_and_back, "batch": [batch]}


WORKLOADS: Mapping[str, Callable[[float, int], Workload]] = {
    **{f"w1_{kind}": partial(closure, kind) for kind in ("scc", "dag", "chain", "grid")},
    "w2": same_generation,
    "w3": points_to,
    "w4": negation,
    **{
        f"w5_{_named(items)}": partial(inventory, items)
        for items in (10, 1_000, 100_000, 1_000_000)
    },
    "w6": partial(group_by, "w6", 5_000_000, 100_000),
    "w6_500k": partial(group_by, "w6_500k", 500_000, 10_000),
    "w7": permissions,
}
