"""The propagation network: what a change of base relations does to views, component by component.

    edge ──▶ path ──▶ reach          a source, and two nodes
              └─────▶ one_way        a third one: not run if nobody wants it

A component is compiled once, when a change first reaches it. A transaction only binds the changes
of base relations: `edge__plus` and `edge__minus` are filled, the nodes they reach run, lowest
first, and `path__plus` and `path__minus` are the exact change of `path`. A change goes only to
nodes that are stored, on the way to one that is, or wanted by the caller: that is a `Route`.

Of a virtual view that nothing else reads, a superset of the change may be enough: *potential*
changes, for which no effectiveness is tested (`propagation_rules.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cached_property

from deltalog.analysis.columns import Relation, Relations, generated_relations, undeclared_view
from deltalog.analysis.relevance import needed_rules
from deltalog.engines.base import Engine
from deltalog.engines.extensions import is_ranked
from deltalog.language.ast import Rule
from deltalog.language.walk import atoms_of
from deltalog.rewrites import names
from deltalog.rewrites.forms import read_by
from deltalog.rewrites.states import Rename
from deltalog.rewrites.strategies import Choice
from deltalog.runtime.active_rules import ActiveRules
from deltalog.runtime.compilation import Compiler
from deltalog.runtime.constraints import ConstraintChecks
from deltalog.runtime.fixpoint import Installed, install_stages
from deltalog.runtime.model import Model
from deltalog.runtime.nodes import SIDES, Node, Source
from deltalog.runtime.protocols import Follower
from deltalog.runtime.route import Route

ROUTES_MAX = 64
"""Routes that are remembered, one for each set of views that somebody wanted."""


class Propagation:
    """The propagation network of a database: its components, lowest first.

    A transaction runs through it breadth-first from the bottom. A node none of whose influents
    changed is passed over; what only a node needed is forgotten as soon as it is done.
    """

    def __init__(self, engine: Engine, model: Model) -> None:
        self.engine = engine
        self.model = model
        self.relations = model.relations
        self.stored = model.stored
        self.views = frozenset(model.views)
        self.stored_views = self.views & self.stored
        self.is_in_place = model.is_in_place
        self.is_ranked = is_ranked(engine)
        self.compiler = Compiler(model)
        self.constraints = ConstraintChecks.of(model.checked)
        self.rules = ActiveRules.of(model.checked)
        guards = (self.constraints, self.rules)
        self.is_unguarded = self.constraints is None and self.rules is None
        self.has_immediate = any(each is not None and each.has_immediate for each in guards)
        self.watched = self._watched_relations()
        self._made: set[str] = set()
        self._readable = {name: self.relations[name] for name in self.stored}
        self._create_changes(self.relations, SIDES)
        self.stations = self._numbered_stations()
        self.nodes = tuple(x for x in self.stations[: len(model.choices)] if isinstance(x, Node))
        self.sources = {x.name: x for x in self.stations if isinstance(x, Source)}
        self._routes: dict[tuple[frozenset[str], frozenset[str]], Route] = {}
        self._narrow: dict[frozenset[str], Route] = {}
        self.whole = self.last = self.route_to(self.views)
        self.is_narrowing = engine.capabilities.drops_no_ops and not self.is_in_place

    def _watched_relations(self) -> frozenset[str]:
        """The relations whose change constraints and active rules need."""
        found: frozenset[str] = frozenset()
        if self.constraints is not None:
            found |= self.constraints.watched
        if self.rules is not None:
            found |= self.rules.watched(self.rules.inactive(self.engine))
        return found

    @cached_property
    def rule_influents(self) -> frozenset[str]:
        """The base relations whose change may reach what an active rule watches."""
        assert self.rules is not None
        watched = self.rules.watched()
        read = read_by(needed_rules(self.model.rules, watched)) | watched
        return frozenset(name for name in read if self.relations[name].kind == "base")

    def watch_active_rules(self) -> None:
        """Watch for the rules that are active now: only their influents are tracked."""
        watched = self._watched_relations()
        if watched != self.watched:
            self.watched = watched
            self._routes = {}
            self.whole = self.last = self.route_to(self.views)

    def _numbered_stations(self) -> tuple[Node | Source, ...]:
        """Nodes by their order; behind them, in any order, what is never reached by itself."""
        made: list[Node | Source] = []
        later: list[Node | Source] = []
        behind = len(self.model.choices)
        for number, choice in enumerate(self.model.choices):
            recomputing = None
            if choice.is_auto and self.can_recompute(choice):
                instead = replace(choice, strategy="recompute", reason="a large part has changed")
                recomputing = Node(behind + len(later), instead, self)
                later.append(recomputing)
            potential = None if choice.members & self.stored else choice.potential
            estimating = None
            if potential is not None:
                estimating = Node(behind + len(later), potential, self)
                later.append(estimating)
            made.append(Node(number, choice, self, recomputing, estimating))
        for name, relation in self.relations.items():
            if relation.kind == "base":
                later.append(Source(behind + len(later), name))
        return (*made, *later)

    def route_to(self, views: frozenset[str], potential: frozenset[str] = frozenset()) -> Route:
        """The part of the network that serves these views and what is stored.

        Of those that are `potential`, a superset of the change is enough.
        """
        wanted = views, potential
        if wanted not in self._routes:
            if len(self._routes) >= ROUTES_MAX:
                whole = self.views, frozenset[str]()
                del self._routes[next(each for each in self._routes if each != whole)]
            self._routes[wanted] = Route(self, views, potential)
        return self._routes[wanted]

    def followed_route(
        self, views: frozenset[str], is_recorded: bool, follower: Follower | None
    ) -> Route:
        """The part that serves a caller and who follows commits; stored views are recorded."""
        wanted = views | self.stored_views if is_recorded else views
        if follower is None:
            return self.route_to(wanted)
        return self.route_to(wanted | self.views & follower.views, follower.potential - views)

    def reached_from(self, changed: frozenset[str]) -> set[str]:
        """The relations that a change of some base relations may reach, these included."""
        found = set(changed)
        for node in self.nodes:
            if not found.isdisjoint(node.influents):
                found.update(node.choice.predicates)
        return found

    def narrow_route(self, views: frozenset[str]) -> Route:
        """The part that serves these views alone, for a change that is not going to be made."""
        if views not in self._narrow:
            if len(self._narrow) >= ROUTES_MAX:
                del self._narrow[next(iter(self._narrow))]
            self._narrow[views] = Route(self, views, is_narrow=True)
        return self._narrow[views]

    # --- relations

    def _create_changes(self, predicates: Iterable[str], changes: Iterable[Rename]) -> None:
        """Relations that outlive a node: changes, and what a maintained view is brought up with."""
        made = {change(name): self.relations[name] for name in predicates for change in changes}
        self._readable.update(made)
        self._create_relations(made)

    def _create_relations(self, relations: Relations) -> None:
        """Empty relations that exist until the network is dropped."""
        self._made.update(relations)
        for name, relation in relations.items():
            self.engine.create(name, tuple(type_ or "int" for type_ in relation.types))

    def install(self, node: Node) -> Installed:
        """Lower and prepare a node, and create the relations that it fills."""
        if node.choice.is_maintained:
            self._create_changes(
                node.choice.predicates, (names.overdeleted_name, names.returned_name)
            )
        self._create_relations(node.relations)
        overlays = node.compiled.overlays
        fanout = node.samples.fanout(overlays) if node.samples else None
        return install_stages(
            self.engine, node.stages, overlays, node.recomputing is not None, fanout
        )

    def local_relations(self, node: Node) -> Relations:
        """The relations that only this node needs, with their columns."""
        rules = node.compiled.form.rules
        known = self._known_relations(rules, node)
        local = dict(generated_relations(rules, known))
        for rule in rules:
            for atom, _ in atoms_of(rule.body):
                if atom.predicate not in local and atom.predicate not in known:
                    local[atom.predicate] = undeclared_view(atom, "virtual")
        if node.compiled.ranked is not None:
            own = (names.suspect_name, names.doubtful_name)
            local |= {each(n): self.relations[n] for each in own for n in node.choice.predicates}
        return local

    def _known_relations(self, rules: Collection[Rule], node: Node) -> dict[str, Relation]:
        """Relations that exist before a node and that its rules use, also through overlays."""
        known = {
            change(name): self.relations[name]
            for name in (node.choice.predicates if node.choice.is_maintained else ())
            for change in (names.overdeleted_name, names.returned_name)
        }
        for name in read_by(rules) | {rule.head.predicate for rule in rules}:
            overlay = node.compiled.overlays.get(name, name)
            stored = overlay if isinstance(overlay, str) else overlay.stored
            if stored in self._readable:
                known[name] = self._readable[stored]
        return known

    def can_recompute(self, choice: Choice) -> bool:
        return not choice.is_aggregate and self.stored.issuperset(choice.predicates)

    def drop(self) -> None:
        """Take everything off the engine that was put there for propagation."""
        for name in self._made:
            self.engine.drop(name)

    # --- the last run

    @property
    def ran(self) -> list[Node]:
        """The nodes of the last run; of one that was aborted, the node that ran instead."""
        found = [
            x for number in self.last.wave.ran() if isinstance(x := self.stations[number], Node)
        ]
        return list({node.choice.predicates: node for node in found}.values())

    @property
    def flows(self) -> dict[tuple[str, str], tuple[int, int]]:
        """How many facts were inserted and deleted along every arc in the last run."""
        found = {}
        for number in self.last.wave.ran():
            node = self.stations[number]
            if isinstance(node, Node):
                sizes = iter(self.last.wave.flows(number))
                for name, flow in zip(node.influents, zip(sizes, sizes, strict=True), strict=True):
                    found.update({(name, view): flow for view in node.choice.predicates})
        return found
