"""Update propagation: a strategy per component, one program for all of them, run per transaction.

Installed once, when a change first reaches it: a component's rules are rewritten by its strategy,
what they ask of virtual views is answered by Magic Sets rules, everything is partitioned (softly,
where questions make that necessary) and prepared on the engine. A transaction only binds the
changes of the base relations: `edge__plus` and `edge__minus` are filled, the parts run, and
`path__plus` and `path__minus` are the exact change of `path`.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple, cast

from deltalog.analysis.columns import Relation, Relations, generated_relations, undeclared_view
from deltalog.analysis.stratification import Stratification, stratification
from deltalog.engines.base import NO_ROWS, Copied, Engine, GivenUpError, RankedEngine, Station
from deltalog.language.ast import Atom, Negation, Row, Rule
from deltalog.language.walk import atoms
from deltalog.plan.lower import Overlays
from deltalog.plan.nodes import Overlay
from deltalog.plan.ranked_deletion import RankedComponent
from deltalog.rewrites import names
from deltalog.rewrites.aggregate_changes import aggregate_changes
from deltalog.rewrites.delta_rules import delta_rules
from deltalog.rewrites.group_state import fold_changes, is_foldable
from deltalog.rewrites.look_once import look_once
from deltalog.rewrites.magic_sets import asked_rules
from deltalog.rewrites.maintenance_rules import maintenance_rules
from deltalog.rewrites.partial_differentials import partial_differentials
from deltalog.rewrites.propagation_rules import propagation_rules
from deltalog.rewrites.recomputation import recomputation
from deltalog.rewrites.rederive_on_demand import (
    OnDemand,
    new_state_on_demand,
    rederive_on_demand,
)
from deltalog.rewrites.states import Rename, renamed, rule_in_state, unchanged
from deltalog.runtime.changes import NO_CHANGE, ChangeSet
from deltalog.runtime.fanout import Samples
from deltalog.runtime.fixpoint import (
    Installed,
    Stage,
    Statistics,
    Watch,
    install,
    run,
    tell,
)
from deltalog.runtime.limits import Limits, Meter
from deltalog.runtime.model import Model
from deltalog.runtime.strategies import Choice


@dataclass(frozen=True)
class NodeProgram:
    """The rules for one component before questions are rewritten, and how to read states.

    `own` are the predicates driven by changes; `askable` defines what may be asked. States made of
    answers (`path__new` of a view rederived on demand) are in `asked_instead` with what must be
    asked (`path`); `silent` are the predicates whose rules turn answers into them.
    """

    rules: tuple[Rule, ...]
    own: tuple[str, ...]
    overlays: Overlays
    ranked: RankedComponent | None = None
    asked_instead: Mapping[str, str] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()


@dataclass
class Building:
    """Components are added from the bottom up; each offers its states to those above.

    The program of a component reads only what those below it offer, so it can be made at any time
    after it was added.
    """

    relations: Relations
    stored: Set[str]
    is_in_place: bool = False
    has_ranks: bool = True
    askable: dict[str, list[Rule]] = field(default_factory=dict)
    overlays: dict[str, Overlay | str] = field(default_factory=dict)
    answered: dict[str, OnDemand] = field(default_factory=dict)
    _asked_for: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.stored:
            if self.relations[name].kind != "base":
                continue
            if self.is_in_place:  # the stored state is the new one, the old one a logical rollback
                self.overlays[name] = Overlay(name, names.plus(name), names.minus(name))
                self.overlays[names.new(name)] = name
            else:
                self._overlay_new(name)

    def add(self, choice: Choice) -> None:
        """Offer both states of a component: stored, read through an overlay, or asked for."""
        if self._is_stored(choice):
            for name in choice.predicates:
                self._overlay_new(name)
            return
        self._ask(choice.rules)
        if choice.strategy != "demand" or choice.is_aggregate:
            self._ask(_transitions(choice.rules))
            return
        for name in choice.predicates:
            new = names.new(name)
            self.answered[new] = new_state_on_demand(name, self.relations[name].arity)
            self._asked_for[new] = name

    def program(self, choice: Choice, samples: Samples | None = None) -> NodeProgram:
        """The program of a component that was added, rewritten by its strategy."""
        if choice.strategy == "recompute":
            apart = _apart(choice)
            return self._program(renamed(rule, apart) for rule in recomputation(choice.rules))
        if choice.is_aggregate:
            (rule,) = choice.rules
            changes = fold_changes if self._is_folded(choice) else aggregate_changes
            return self._program(changes(rule, unchanged, names.new))
        if choice.strategy in ("rederive", "demand"):
            return self._maintained(choice, samples)
        if choice.strategy == "delta":
            return self._program(delta_rules(choice.rules))
        return self._propagated(choice)

    def _is_stored(self, choice: Choice) -> bool:
        return all(name in self.stored for name in choice.predicates)

    def _is_folded(self, choice: Choice) -> bool:
        return self._is_stored(choice) and is_foldable(choice.rules[0])

    def _overlay_new(self, name: str) -> None:
        """The new state of a stored relation whose change is complete."""
        self.overlays[names.new(name)] = Overlay(name, names.minus(name), names.plus(name))

    def _ask(self, rules: Iterable[Rule]) -> None:
        for rule in rules:
            self.askable.setdefault(rule.head.predicate, []).append(rule)

    def _program(
        self,
        own: Iterable[Rule],
        askable: Iterable[Rule] = (),
        overlays: Overlays = MappingProxyType({}),
        ranked: RankedComponent | None = None,
        on_demand: OnDemand | None = None,
    ) -> NodeProgram:
        """The rules of a component, with what they can ask and the states they read.

        `overlays` are states that it sees in its own way while they change.
        """
        own, library = tuple(own), tuple(askable)
        states = [on_demand] if on_demand else []
        changing = on_demand.asked_instead if on_demand else {}
        driven = [*own, *(rule for each in states for rule in each.rules)]
        asked = self._reached(_read_by((*driven, *library)))
        used = _read_by((*driven, *library, *asked))
        for name, each in self.answered.items():
            if name in used and name not in changing:
                states.append(each)
                asked += [r for r in self._reached(_read_by(each.rules)) if r not in asked]
                driven += each.rules
        used = _read_by((*driven, *library, *asked))
        if ranked is not None:  # it reads the states of what lies below, and its own
            used |= {state(name) for name in _read_by(ranked.rules) for state in _STATES}
        read = {n: overlays.get(n) or self.overlays.get(n) for n in used}
        return NodeProgram(
            (*driven, *library, *asked),
            tuple(dict.fromkeys(rule.head.predicate for rule in driven)),
            {name: overlay for name, overlay in read.items() if overlay is not None},
            ranked,
            {k: v for each in states for k, v in each.asked_instead.items()},
            frozenset(name for each in states for name in each.silent),
        )

    def _reached(self, roots: Iterable[str]) -> list[Rule]:
        """The rules that questions from these predicates can lead to."""
        found: dict[str, None] = {}
        waiting = list(roots)
        while waiting:
            name = waiting.pop()
            name = self._asked_for.get(name, name)
            if name not in found and name in self.askable:
                found[name] = None
                waiting += _read_by(self.askable[name])
        return [rule for name in found for rule in self.askable[name]]

    def _propagated(self, choice: Choice) -> NodeProgram:
        """Propagation rules or differentials; a stored component asks for its own new state."""
        if choice.strategy == "differencing":
            own = partial_differentials(choice.rules, choice.is_strict)
        else:
            own = propagation_rules(choice.rules)
        if not self._is_stored(choice):
            return self._program(own)
        apart = _apart(choice)
        transitions = (renamed(rule, apart) for rule in _transitions(choice.rules))
        return self._program((renamed(rule, apart) for rule in own), transitions)

    def _maintained(self, choice: Choice, samples: Samples | None) -> NodeProgram:
        """Maintenance rules; the new state is the kept facts and those that came back or in."""
        if not self._is_stored(choice):
            return self._program((), on_demand=rederive_on_demand(choice.rules, choice.members))
        overlays: dict[str, Overlay] = {}
        for name in choice.predicates:
            gone, back = names.deleted(name), names.returned(name)
            overlays[names.new(name)] = Overlay(name, gone, back)
            overlays[names.kept(name)] = Overlay(name, gone)
        is_ranked = self._is_ranked(choice)
        rules = maintenance_rules(choice.rules, choice.members, is_ranked)
        if samples and choice.strategy == "rederive" and not choice.is_recursive:
            rules = look_once(rules, choice.predicates, samples.fanout(self.overlays))
        ranked = _ranked(choice) if is_ranked else None
        return self._program(rules, overlays=overlays, ranked=ranked)

    def _is_ranked(self, choice: Choice) -> bool:
        """Ranks help recursion, and need everything the component reads to be at hand."""
        return (
            choice.is_recursive
            and self.has_ranks
            and choice.strategy == "rederive"
            and all(names.new(name) in self.overlays for name in _read_by(choice.rules))
        )


_STATES: tuple[Rename, ...] = (unchanged, names.new, names.kept)
_SIDES: tuple[Rename, ...] = (names.plus, names.minus)


def _read_by(rules: Iterable[Rule]) -> set[str]:
    return {atom.predicate for rule in rules for atom, _ in atoms(rule.body)}


def _transitions(rules: Iterable[Rule]) -> list[Rule]:
    return [rule_in_state(rule, names.new, "transition_rules") for rule in rules]


def _apart(choice: Choice) -> dict[str, str]:
    """While it is being computed, the new state of a component has a name of its own."""
    return {names.new(name): names.derivable(name) for name in choice.predicates}


def _ranked(choice: Choice) -> RankedComponent:
    return RankedComponent(
        choice.rules,
        choice.predicates,
        names.suspect,
        names.deleted,
        names.doubtful,
        names.kept,
        names.new,
    )


# --- from a program to stages -------------------------------------------------------------------


def stages(program: NodeProgram, stored: Set[str]) -> tuple[Stage, ...]:
    """The rules with their questions rewritten, in the order in which they run."""
    strata = _strata(program)
    defined = {rule.head.predicate for rule in program.rules}
    read = {*stored, *program.overlays, *program.own, *(_read_by(program.rules) - defined)}
    rewritten = asked_rules(
        program.rules,
        program.own,
        read - set(program.asked_instead),
        is_adorned=not program.asked_instead,
        asked_instead=program.asked_instead,
        silent=program.silent,
        rewrite="magic_updates",
    )
    by_stratum: dict[int, list[Stage]] = {}
    if program.ranked is not None:
        stratum = strata.stratum_of[names.deleted(program.ranked.predicates[0])]
        by_stratum[stratum] = [program.ranked]
    rules: dict[int, list[Rule]] = {}
    for rule in rewritten:
        stratum = strata.stratum_of[names.source(rule.head.predicate)]
        rules.setdefault(stratum, []).append(rule)
    for stratum, part in rules.items():
        by_stratum.setdefault(stratum, []).append(tuple(part))
    return tuple(stage for number in sorted(by_stratum) for stage in by_stratum[number])


def _strata(program: NodeProgram) -> Stratification:
    """A stratification of the program before questions are rewritten, overlays seen as rules."""
    made: list[Rule] = []
    for name, overlay in program.overlays.items():
        if isinstance(overlay, str):
            continue  # another name for what is stored
        made.append(Rule(Atom(name), (Negation(Atom(overlay.minus)),)))
        if overlay.plus is not None:
            made.append(Rule(Atom(name), (Atom(overlay.plus),)))
    if program.ranked is not None:
        made += _as_rules(program.ranked)
    found = stratification((*program.rules, *made))
    assert found.is_stratified, f"not stratified: {found.cycles}"
    return found


def _as_rules(component: RankedComponent) -> list[Rule]:
    """What a ranked deletion needs to be complete, written as rules."""
    made = (component.deleted, component.doubtful)
    heads = [Atom(each(name)) for each in made for name in component.predicates]
    needed = {component.suspect(name) for name in component.predicates}
    below = _read_by(component.rules) - set(component.predicates)
    needed |= {component.new(name) for name in below}
    body = tuple(Negation(Atom(name)) for name in sorted(needed))
    return [Rule(head, (*body, *heads)) for head in heads]


# --- installed and run --------------------------------------------------------------------------


MUCH_MIN = 500
MUCH_SHARE = 0.5
"""A change of this share of what a component reads is recomputed under `auto` (see bench/)."""
LOST_MIN = 50
LOST_SHARE = 0.1
"""The same for what takes derivations from a recursive component: each may take many facts."""


@dataclass(frozen=True, eq=False)
class Node:
    """A component: the changes it reads, and what is made of it when one first reaches it.

    `relations` are those that only this node needs, `local` are their names.
    """

    choice: Choice
    influents: tuple[str, ...]
    network: Propagation = field(repr=False)

    @cached_property
    def program(self) -> NodeProgram:
        return self.network.building.program(self.choice, self.samples)

    @cached_property
    def samples(self) -> Samples | None:
        """What tells how many rows a lookup finds, where it costs little to know."""
        return Samples(self.network.engine) if self.network.engine.has_samples else None

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        return stages(self.program, self.network.stored)

    @cached_property
    def relations(self) -> Relations:
        return self.network.local_relations(self)

    @cached_property
    def local(self) -> frozenset[str]:
        return frozenset(self.relations)

    @cached_property
    def installed(self) -> Installed:
        return self.network.install(self)

    @cached_property
    def losses(self) -> frozenset[str]:
        """The changes that take derivations away: deletions, or insertions where it is negated."""
        read = (found for rule in self.choice.rules for found in atoms(rule.body))
        return frozenset(
            names.minus(atom.predicate) if is_positive else names.plus(atom.predicate)
            for atom, is_positive in read
            if atom.predicate in self.influents
        )

    @cached_property
    def recomputed(self) -> frozenset[str]:
        """Its new state, which replaces the stored one as a whole."""
        is_fresh = self.choice.strategy == "recompute"
        return frozenset(map(names.derivable, self.choice.predicates if is_fresh else ()))

    @cached_property
    def is_maintained(self) -> bool:
        """Whether it is brought up with what was deleted and what returned."""
        return self.choice.strategy in ("rederive", "demand") and self.choice.is_recursive

    @cached_property
    def is_net(self) -> bool:
        """Whether it is brought up with exactly what it shows."""
        return not self.is_maintained and not self.recomputed

    @cached_property
    def is_plain(self) -> bool:
        """Whether it is one view that is shown and stored, and brought up with what it shows."""
        stored = [stored for stored, _, _ in self.moves]
        return self.is_net and len(stored) == 1 and stored == [name for name, *_ in self.changed]

    @cached_property
    def forgotten(self) -> tuple[str, ...]:
        """What is of no use once the node has run."""
        return tuple(self.local - self.recomputed)

    @cached_property
    def outlasting(self) -> tuple[str, ...]:
        """What is of use until the transaction is over."""
        sides = [names.plus, names.minus]
        sides += [names.deleted, names.returned] if self.is_maintained else []
        made = (side(name) for name in self.choice.predicates for side in sides)
        return (*made, *self.recomputed)

    @cached_property
    def changed(self) -> tuple[tuple[str, str, str], ...]:
        """The views it shows to others, with their changes: (view, what comes, what goes)."""
        shown = (name for name in self.choice.predicates if name in self.network.views)
        return tuple((name, names.plus(name), names.minus(name)) for name in shown)

    @cached_property
    def moves(self) -> tuple[tuple[str, str, str], ...]:
        """How stored predicates are brought up: (stored, gone, come); nothing of a fresh one."""
        gone, come = names.minus, names.plus
        if self.recomputed:
            gone, come = names.derivable, names.derivable
        elif self.is_maintained:
            gone, come = names.deleted, names.returned
        stored = (name for name in self.choice.predicates if name in self.network.stored)
        return tuple((name, gone(name), come(name)) for name in stored)


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
        self.is_in_place = model.is_in_place
        self.is_ranked = isinstance(engine, RankedEngine)
        self._made: set[str] = set()
        self._readable = {name: self.relations[name] for name in self.stored}
        self._create_changes(self.relations, (names.plus, names.minus))
        self.building = Building(
            model.relations,
            model.stored,
            is_in_place=self.is_in_place,
            has_ranks=not model.options.is_migration,
        )
        for choice in model.choices:
            self.building.add(choice)
        self.nodes = tuple(map(self._node, model.choices))
        self._fresh: dict[int, Node] = {}
        self._last_read = self._last_readers()
        self._readers: dict[str, list[int]] = {}
        for position, node in enumerate(self.nodes):
            for name in node.influents:
                self._readers.setdefault(name, []).append(position)
        self._sources = self._place_sources()

    def _place_sources(self) -> dict[str, int]:
        """Base relations as stations behind the nodes: there a transaction binds its changes."""
        base = [name for name in self.relations if self.relations[name].kind == "base"]
        numbers = {name: 2 * len(self.nodes) + i for i, name in enumerate(base)}
        self._source_names = {number: name for name, number in numbers.items()}
        self.wave = self.engine.wave(2 * len(self.nodes) + len(base))
        self.is_narrowing = self.wave.is_narrowing and not self.is_in_place
        self._placed: dict[int, Node] = {}
        self._is_plain = not self.is_in_place
        for name, number in numbers.items():
            sides = names.plus(name), names.minus(name)
            readers = self._readers.get(name, ())
            made = tuple((side, reader) for side in sides for reader in readers)
            moves = () if self.is_in_place else ((name, sides[1], sides[0]),)
            shown = ((name, *sides),)
            self.wave.place(number, Station(made=made, moves=moves, outlasting=sides, shown=shown))
        return numbers

    def _node(self, choice: Choice) -> Node:
        return Node(choice, tuple(sorted(_read_by(choice.rules) - choice.members)), self)

    def _last_readers(self) -> dict[int, tuple[str, ...]]:
        """Per node, the changes of virtual helpers that nobody reads after it.

        Who asks for the state of a virtual view reads the changes of what that is made of.
        """
        last: dict[str, int] = {}
        for position, node in reversed(tuple(enumerate(self.nodes))):
            virtual = (name for name in node.choice.predicates if name not in self.stored)
            used = max([position, *(last.get(name, 0) for name in virtual)])
            for name in node.influents:
                last[name] = max(used, last.get(name, 0))
        readers: dict[int, tuple[str, ...]] = {}
        for name, position in last.items():
            if names.is_generated(name) and name not in self.stored:
                known = readers.get(position, ())
                readers[position] = (*known, names.plus(name), names.minus(name))
        return readers

    def _create_changes(self, predicates: Iterable[str], changes: Iterable[Rename]) -> None:
        """Relations that outlive a node: changes, and what a maintained view is brought up with."""
        made = {change(name): self.relations[name] for name in predicates for change in changes}
        self._readable.update(made)
        self.create(made)

    def create(self, relations: Relations) -> None:
        """Empty relations that exist until the network is dropped."""
        self._made.update(relations)
        for name, relation in relations.items():
            self.engine.create(name, tuple(type_ or "int" for type_ in relation.types))

    def install(self, node: Node) -> Installed:
        """Lower and prepare a node, and create what it fills."""
        choice = node.choice
        if node.is_maintained:
            self._create_changes(choice.predicates, (names.deleted, names.returned))
        self.create(node.relations)
        is_impatient = choice.is_auto and self._can_recompute(choice)
        overlays = node.program.overlays
        fanout = node.samples.fanout(overlays) if node.samples else None
        return install(self.engine, node.stages, overlays, is_impatient, fanout)

    def local_relations(self, node: Node) -> Relations:
        """The relations that only this node needs, with their columns."""
        rules = [rule for stage in node.stages if isinstance(stage, tuple) for rule in stage]
        known = self._known(rules, node)
        local = dict(generated_relations(rules, known))
        for rule in rules:
            for atom, _ in atoms(rule.body):
                if atom.predicate not in local and atom.predicate not in known:
                    local[atom.predicate] = undeclared_view(atom, "virtual")
        if node.program.ranked is not None:
            own = (names.suspect, names.doubtful)
            local |= {each(n): self.relations[n] for each in own for n in node.choice.predicates}
        return local

    def _known(self, rules: Iterable[Rule], node: Node) -> dict[str, Relation]:
        """What a node's rules use that exists before it, and states read through overlays."""
        known = {
            change(name): self.relations[name]
            for name in (node.choice.predicates if node.is_maintained else ())
            for change in (names.deleted, names.returned)
        }
        for name in _read_by(rules) | {rule.head.predicate for rule in rules}:
            overlay = node.program.overlays.get(name, name)
            stored = overlay if isinstance(overlay, str) else overlay.stored
            if stored in self._readable:
                known[name] = self._readable[stored]
        return known

    def run(self, base: ChangeSet, limits: Limits, watch: Watch | None = None) -> Statistics:
        """Bind the changes of base relations and derive those of views."""
        total, meter = Statistics(), Meter(limits, self.engine.fact_bytes)
        come, gone, sources, bind = *base.sides, self._sources, self.wave.bind
        for name, rows in come.items():
            bind(sources[name], rows, gone.get(name, NO_ROWS))
        for name, rows in gone.items():
            if name not in come:
                bind(sources[name], NO_ROWS, rows)
        while True:
            ended = self.wave.run(*meter.rest)
            tell(ended, meter, watch, total)
            if ended.asked >= 0:
                self._run_node(ended.asked, ended.is_given_up, meter, watch, total)
            elif ended.is_done:
                return total

    def _run_node(
        self,
        position: int,
        is_given_up: bool,
        meter: Meter,
        watch: Watch | None,
        total: Statistics,
    ) -> None:
        """Run a node that the engine does not run by itself, or not before we had a look."""
        node = self.nodes[position]
        can_recompute = node.choice.is_auto and self._can_recompute(node.choice)
        if is_given_up:
            self._forget(node)
        elif not (can_recompute and self._is_much(node)):
            try:
                self._run_placed(position, node, meter, watch, total)
            except GivenUpError:
                self._forget(node)
            else:
                return
        fresh = self._recomputing(position)
        self._run_placed(position + len(self.nodes), fresh, meter, watch, total)

    def _run_placed(
        self, number: int, node: Node, meter: Meter, watch: Watch | None, total: Statistics
    ) -> None:
        if number not in self._placed:
            self._place(number, node)
        self.wave.enter(number)
        try:
            run(self.engine, node.installed, meter.limits, "semi_naive", watch, meter, total)
        except BaseException:
            self.engine.clear_all(node.forgotten)
            raise
        finally:
            node.installed.rewind()
        self.wave.leave(number)

    def _forget(self, node: Node) -> None:
        """Take back what a node did before it was given up."""
        self.engine.clear_all((*node.forgotten, *node.outlasting))
        node.installed.rewind()

    def _place(self, number: int, node: Node) -> None:
        """Tell the engine about a node that is reached for the first time."""
        position = number % len(self.nodes)
        sides = [side(name) for name in node.influents for side in _SIDES]
        made = [
            (side(name), reader)
            for name in node.choice.predicates
            for reader in self._readers.get(name, ())
            if reader != position
            for side in _SIDES
        ]
        station = Station(
            node.installed.whole,
            min(MUCH_MIN, LOST_MIN) if node.choice.is_auto else sys.maxsize,
            tuple(sides),
            (*node.forgotten, *self._last_read.get(position, ())),
            tuple(made),
            node.choice.predicates if node.recomputed else (),
            node.moves,
            node.outlasting,
            node.changed,
        )
        self.wave.place(number, station)
        self._placed[number] = node
        self._is_plain = self._is_plain and node.is_plain

    @property
    def ran(self) -> list[Node]:
        """The nodes of the last run; of one that was given up, what it became."""
        nodes = [self._placed[number] for number in self.wave.ran() if number in self._placed]
        return list({node.choice.predicates: node for node in nodes}.values())

    @property
    def flows(self) -> dict[tuple[str, str], tuple[int, int]]:
        """How many facts came and went along every arc in the last run."""
        found = {}
        for number in self.wave.ran():
            if node := self._placed.get(number):
                sizes = iter(self.wave.flows(number))
                for name, flow in zip(node.influents, zip(sizes, sizes, strict=True), strict=True):
                    found.update({(name, view): flow for view in node.choice.predicates})
        return found

    def _can_recompute(self, choice: Choice) -> bool:
        return not choice.is_aggregate and self.stored.issuperset(choice.predicates)

    def _recomputing(self, position: int) -> Node:
        """The same component recomputed, installed when it is first needed."""
        if position not in self._fresh:
            choice = self.nodes[position].choice
            fresh = replace(choice, strategy="recompute", reason="much has changed")
            self._fresh[position] = self._node(fresh)
        return self._fresh[position]

    def _is_much(self, node: Node) -> bool:
        """Whether so much of what a component reads has changed that starting afresh is cheaper."""
        sides = (side(name) for name in node.influents for side in _SIDES)
        changed = sum(map(self.engine.size, sides))
        if changed < min(MUCH_MIN, LOST_MIN):
            return False
        held = sum(self.engine.size(name) for name in node.influents if name in self.stored)
        if changed >= MUCH_MIN and changed >= MUCH_SHARE * held:
            return True
        if not node.choice.is_recursive or not self.stored.issuperset(node.influents):
            return False
        lost = sum(self.engine.size(name) for name in node.losses)
        return lost >= LOST_MIN and lost >= LOST_SHARE * held

    def written(self, base: ChangeSet, change: ChangeSet, clock: int) -> Iterable[Written]:
        """What `end` will do to stored relations, if it is applied now.

        Every row that is added gets the next rank, from the engine's clock on, in the order of
        `Engine.move`. `base` is what was run, `change` what `changes` answered: rows copied for it
        are not copied again.
        """
        made = self._appended(base, change, clock) if self._is_plain else None
        return self._moved(base, change, clock) if made is None else made

    def _appended(self, base: ChangeSet, change: ChangeSet, clock: int) -> list[Written] | None:
        """The same if rows only come, to relations that get what they show, and are in order."""
        inserted, deleted = change.sides
        if deleted:
            return None
        bound, _ = base.sides
        made: list[Written] = []
        for name, come in inserted.items():  # sources first, then as stations ran
            if isinstance(come, Copied):
                rows: Collection[Row] = list(come.read())
            elif come is bound.get(name):
                rows = come
            else:
                return None
            end = clock + len(rows)
            made.append((name, (), range(clock, end), rows, True))
            clock = end
        return made

    def _moved(self, base: ChangeSet, change: ChangeSet, clock: int) -> Iterator[Written]:
        engine = cast("RankedEngine", self.engine)
        inserted, deleted = change.sides
        for number in self.wave.ran():
            node = self._placed.get(number)
            if node is not None:
                for stored, gone, ranks, rows in self._arriving(node, change, clock):
                    clock += len(rows)
                    if node.recomputed:
                        yield stored, None, ranks, rows, False
                    elif engine.size(gone):
                        going = engine.ranks(stored, tuple(engine.rows(gone)))
                        yield stored, going, ranks, rows, node.is_net
                    elif rows:
                        yield stored, (), ranks, rows, node.is_net
            elif not self.is_in_place:  # a base relation, its rows in the order they were bound
                name = self._source_names[number]
                bound: Collection[Row] = base.inserted[name]
                if inserted.get(name, NO_ROWS) is not bound:  # some of them were there already
                    bound = list(engine.rows(names.plus(name)))
                left = engine.ranks(name, change.deleted[name]) if name in deleted else ()
                yield name, left, range(clock, clock + len(bound)), bound, True
                clock += len(bound)

    def _arriving(
        self, node: Node, change: ChangeSet, clock: int
    ) -> Sequence[tuple[str, str, Sequence[int], list[Row]]]:
        """For each stored relation what holds the rows that go, and ranks and rows that come."""
        if len(node.moves) == 1:
            ((stored, gone, come),) = node.moves
            copied = change.sides[0].get(stored) if node.is_net else None
            rows = list(copied.read() if isinstance(copied, Copied) else self.engine.rows(come))
            return ((stored, gone, range(clock, clock + len(rows)), rows),)
        found: dict[str, tuple[list[int], list[Row]]] = {
            come: ([], []) for _, _, come in node.moves
        }
        for rank, (name, row) in enumerate(self.engine.history(tuple(found)), clock):
            ranks, rows = found[name]
            ranks.append(rank)
            rows.append(row)
        return [(stored, gone, *found[come]) for stored, gone, come in node.moves]

    def moving(self) -> Iterator[Moving]:
        """What `end` will do to stored views, if it is applied now; where ranks are kept, in them.

        Base relations are not among them: their change is what the run began from.
        """
        for node in self.ran:
            for stored, gone, come in node.moves:
                yield Moving(stored, None if node.recomputed else gone, come)

    def drop(self) -> None:
        """Take everything off the engine that was put there for propagation."""
        for name in self._made:
            self.engine.drop(name)


Written = tuple[str, Sequence[int] | None, Sequence[int], Collection[Row], bool]
"""What a commit does to one stored relation, as a plain tuple, since every commit makes some.

The relation, the ranks of rows that go (None if all of them do), the ranks and the rows that come,
and whether these are exactly what the relation gains.
"""


class Moving(NamedTuple):
    """What a commit does to one stored view: relations that hold what goes and what comes.

    If `gone` is None everything goes. What goes and comes again comes with another rank.
    """

    stored: str
    gone: str | None
    come: str


class Propagated:
    """A change of base relations, propagated while it is entered, and not yet applied.

        with Propagated(propagation, base, limits, watch) as outcome:
            change = outcome.changes()
            outcome.apply()

    What is not applied inside has never happened.
    """

    def __init__(
        self,
        propagation: Propagation,
        base: ChangeSet,
        limits: Limits,
        watch: Watch | None,
        is_kept: bool = False,
    ) -> None:
        """With `is_kept` somebody will ask at once what changes, and what is `written`."""
        self._propagation = propagation
        self._base = base
        self._limits = limits
        self._watch = watch
        self._is_kept = is_kept
        self._is_open = True
        self._deleted_ranks: dict[str, list[int]] = {}
        self.statistics = _NOTHING_DONE

    def __enter__(self) -> Propagated:
        if self._propagation.is_in_place:
            self._update_in_place()
        try:
            self.statistics = self._propagation.run(self._base, self._limits, self._watch)
        except BaseException:
            self._end(is_applied=False)
            raise
        return self

    def _update_in_place(self) -> None:
        """Bring base relations to their new state; remember the ranks of what is deleted."""
        engine, deleted = self._propagation.engine, self._base.deleted
        if self._propagation.is_ranked:
            ranks = cast("RankedEngine", engine).ranks
            self._deleted_ranks = {name: ranks(name, deleted[name]) for name in deleted}
        _write(engine, self._base)

    def _undo_in_place(self) -> None:
        """Bring base relations back to their old state, each row with the rank it had.

        A file knows rows by their ranks: with another rank a later deletion would miss the row.
        """
        engine, deleted = self._propagation.engine, self._base.deleted
        _write(engine, ChangeSet({}, self._base.inserted))
        if not self._propagation.is_ranked:
            _write(engine, ChangeSet(deleted))
            return
        for name, ranks in self._deleted_ranks.items():
            ranked = zip(ranks, deleted[name], strict=True)
            cast("RankedEngine", engine).load(name, sorted((rank, *row) for rank, row in ranked))

    def written(self, change: ChangeSet, clock: int) -> Iterable[Written]:
        """What `apply` will do to every stored relation, for whoever keeps a copy of them.

        `change` is what `changes` answered, `clock` is the engine's.
        """
        found = self._propagation.written(self._base, change, clock)
        return chain(found, self._written_in_place()) if self._propagation.is_in_place else found

    def _written_in_place(self) -> Iterator[Written]:
        """Base relations that have changed already."""
        deleted, inserted = self._base.deleted, self._base.inserted
        for name in self._base.relations:
            rows = tuple(inserted[name])
            ranks = cast("RankedEngine", self._propagation.engine).ranks(name, rows)
            going = self._deleted_ranks[name] if name in deleted else ()
            yield name, going, ranks, rows, True

    def changes(self) -> ChangeSet:
        """The exact change of base relations and views."""
        declared = self._propagation.relations
        if self._is_kept:
            return ChangeSet.exact(*self._propagation.wave.changes(), declared)
        told = self._propagation.wave.told()
        return NO_CHANGE if told is None else ChangeSet.told(told, declared)

    def moving(self) -> Iterator[Moving]:
        """What `apply` will do to stored views, for whoever keeps a copy of them."""
        return self._propagation.moving()

    def apply(self) -> None:
        """Make the new state the stored one."""
        self._end(is_applied=True)

    def __exit__(self, *_: object) -> None:
        if self._is_open:
            self._end(is_applied=False)

    def _end(self, is_applied: bool) -> None:
        """Forget the run; if it is applied, stored relations have their new state.

        What comes is appended in the order of derivation, which keeps ranks well-founded.
        """
        propagation = self._propagation
        self._is_open = False
        propagation.wave.end(is_applied)
        if propagation.is_in_place and not is_applied:
            self._undo_in_place()
        propagation.engine.settle()


_NOTHING_DONE = Statistics()


def _write(engine: Engine, change: ChangeSet) -> None:
    inserted, deleted = change.sides
    for name, rows in deleted.items():
        engine.delete(name, rows)
    for name, rows in inserted.items():
        engine.insert(name, rows)
