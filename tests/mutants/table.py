"""The mutants: each breaks one place of the source, and some test must notice.

A mutant is one textual replacement. `tests` are the arguments for pytest that should be enough;
none of them compares the text of rewritten rules, which every change of a rewrite would break.
"""

from __future__ import annotations

from dataclasses import dataclass

SEQUENCES = "tests/properties/test_exhaustive.py"
PROGRAMS = "tests/conformance/test_programs.py"
PAIRS = "tests/properties/test_rule_changes.py"
FILES = "tests/unit/test_database_files.py"
REOPENED = "tests/properties/test_file_database.py"
WALKS = "tests/walks/test_walks.py"
EXISTENCE = (PROGRAMS, "-k", "programs/existence-existence_tests or existence-auto-stored]")
RULES = "tests/unit/test_active_rules.py"
MACHINE_CODE = "tests/properties/test_machine_code.py"


@dataclass(frozen=True)
class Mutant:
    """What is broken, and how."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def _sequences(which: str) -> tuple[str, ...]:
    return (SEQUENCES, "-k", f"({which}) and not embedded")


_ROUND = """
            (plan.head, row)
            for number, plan in enumerate(part.plans)
            for row in self.interpreter.fire(plan, part, number)
        """

MUTANTS = (
    # --- states and propagation rules
    Mutant(
        "no effectiveness test",
        "rewrites/propagation_rules.py",
        "    if needs_test:\n",
        "    if False:\n",
        _sequences("closure and magic"),
    ),
    Mutant(
        "no effectiveness test for projections",
        "rewrites/propagation_rules.py",
        "needs_test = is_strict and not (is_alone and is_injective(rule))",
        "needs_test = is_strict and not is_alone",
        _sequences("algebra and magic"),
    ),
    Mutant(
        "no effectiveness test for unions",
        "rewrites/propagation_rules.py",
        "needs_test = is_strict and not (is_alone and is_injective(rule))",
        "needs_test = is_strict and not is_injective(rule)",
        _sequences("algebra and magic"),
    ),
    Mutant(
        "insertions propagated in the old state",
        "rewrites/propagation_rules.py",
        "yield _propagation_rule(rule, position, True, names.new_name, unchanged_name, needs_test)",
        "yield _propagation_rule(rule, position, True, unchanged_name, names.new_name, needs_test)",
        _sequences("closure and magic"),
    ),
    Mutant(
        "deletions propagated in the new state",
        "rewrites/propagation_rules.py",
        "_propagation_rule(rule, position, False, unchanged_name, names.new_name, needs_test)",
        "_propagation_rule(rule, position, False, names.new_name, names.new_name, needs_test)",
        _sequences("algebra and magic"),
    ),
    Mutant(
        "a negation with a wildcard is not asked again",
        "rewrites/states.py",
        "return (delta, in_state(literal, after))",
        "return (delta,)",
        _sequences("wildcards"),
    ),
    Mutant(
        "a negated literal changes the same way",
        "rewrites/states.py",
        "change = plus if truth == isinstance(literal, Atom) else minus",
        "change = plus if truth else minus",
        _sequences("one_way"),
    ),
    Mutant(
        "deletions stay in the new state",
        "rewrites/transition_rules.py",
        "(Atom(predicate, variables), Negation(Atom(names.minus_name(predicate), variables))),",
        "(Atom(predicate, variables),),",
        _sequences("one_way and demand"),
    ),
    Mutant(
        "the new state of a stored relation is its old one",
        "runtime/compilation.py",
        "made[names.new_name(name)] = Overlay(name, deleted, inserted)",
        "made[names.new_name(name)] = name",
        _sequences("closure and stored"),
    ),
    # --- questions and soft stratification
    Mutant(
        "the answers to questions in the lowest stratum",
        "runtime/compilation.py",
        "stratum = strata.stratum_of[names.source_predicate(rule.head.predicate)]",
        "stratum = strata.stratum_of.get(rule.head.predicate, 0)",
        _sequences("one_way and virtual"),
    ),
    Mutant(
        "the soft consequence operator never goes back",
        "engines/stepped_sequence.py",
        "                self._number = 0 if self._is_soft else self._number\n",
        "",
        _sequences("closure and virtual"),
    ),
    Mutant(
        "a partition is never soft",
        "runtime/fixpoint.py",
        "if (_read_predicates(stage, overlays) | defined) & later:",
        "if False:",
        _sequences("closure and virtual"),
    ),
    Mutant(
        "an aggregate forgets variables it ranges over",
        "rewrites/magic_sets.py",
        "if rule.is_aggregate or name in needed",
        "if name in needed",
        _sequences("aggregates and magic"),
    ),
    Mutant(
        "a view that is rederived on demand is not asked for its new state",
        "rewrites/rederive_on_demand.py",
        "for state in (names.new_name, names.kept_name)}",
        "for state in (names.kept_name,)}",
        _sequences("closure and demand"),
    ),
    # --- maintenance rules
    Mutant(
        "nothing is rederived",
        "rewrites/maintenance_rules.py",
        "        *(made for rule in rules for made in rederivation_rules(rule, component)),\n",
        "",
        _sequences("algebra or non_linear"),
    ),
    Mutant(
        "rederived from the old state",
        "rewrites/maintenance_rules.py",
        "body = (estimate, *(in_state(literal, names.new_name) for literal in literals))",
        "body = (estimate, *rule.body)",
        _sequences("closure and (rederive or demand)"),
    ),
    Mutant(
        "deletions estimated in the new state of what is below",
        "rewrites/maintenance_rules.py",
        "yield _make_rule(rule, head, (*delta, *_other_literals(rule, position, unchanged_name)))",
        "below = _rename_by_component(component, unchanged_name, names.new_name)\n"
        "        yield _make_rule(rule, head, (*delta, *_other_literals(rule, position, below)))",
        _sequences("algebra and (rederive or demand)"),
    ),
    Mutant(
        "insertions joined with the old state",
        "rewrites/maintenance_rules.py",
        "*_other_literals(rule, position, names.new_name), kept)",
        "*_other_literals(rule, position, unchanged_name), kept)",
        _sequences("algebra and (rederive or demand)"),
    ),
    Mutant(
        "only what is kept is inserted",
        "rewrites/maintenance_rules.py",
        "kept = Negation(Atom(names.kept_name(rule.head.predicate), rule.head.arguments))",
        "kept = Atom(names.kept_name(rule.head.predicate), rule.head.arguments)",
        _sequences("closure and (rederive or demand)"),
    ),
    Mutant(
        "what comes in again is reported as new",
        "rewrites/maintenance_rules.py",
        "(ins, Negation(held)), origin, leads=True)",
        "(ins,), origin, leads=True)",
        _sequences("(closure or algebra) and (rederive or demand)"),
    ),
    Mutant(
        "what is rederived is reported as gone",
        "rewrites/maintenance_rules.py",
        "(lost, Negation(ins), Negation(red))",
        "(lost, Negation(ins))",
        _sequences("closure and (rederive or demand)"),
    ),
    Mutant(
        "what returned is reported as new",
        "rewrites/maintenance_rules.py",
        "(add, Negation(lost)), origin, leads=True)",
        "(add,), origin, leads=True)",
        _sequences("closure and rederive"),
    ),
    Mutant(
        "what returned is reported as gone",
        "rewrites/maintenance_rules.py",
        "(lost, Negation(add)), origin, leads=True",
        "(lost,), origin, leads=True",
        _sequences("closure and rederive"),
    ),
    # --- deletion by rank
    Mutant(
        "a fact supports itself",
        "engines/interpreter.py",
        "stored.rank(row) < self.rank_limit",
        "stored.rank(row) <= self.rank_limit",
        _sequences("closure and rederive"),
    ),
    Mutant(
        "ranks are ignored",
        "engines/interpreter.py",
        "[row for row in rows if stored.rank(row) < self.rank_limit]",
        "rows",
        _sequences("closure and rederive"),
    ),
    Mutant(
        "suspects are examined in no order",
        "engines/interpreter.py",
        "rank, _, number, row = heapq.heappop(waiting)",
        "rank, _, number, row = waiting.pop()",
        _sequences("rederive"),
    ),
    Mutant(
        "support is looked for in the old state",
        "plan/ranked_deletion.py",
        "state = component.kept if name in members else component.new",
        "state = component.kept if name in members else str",
        _sequences("closure and rederive"),
    ),
    Mutant(
        "derived facts are appended in the wrong order",
        "engines/reference/engine.py",
        "for inserted, row in list(self.history(list(owner))):",
        "for inserted, row in reversed(list(self.history(list(owner)))):",
        _sequences("(closure or non_linear) and rederive"),
    ),
    Mutant(
        "kernels do not look at ranks when they test a row",
        "engines/embedded/kernels/matching.py",
        "if stamp & RANK < rank:",
        "if stamp >= 0:",
        (SEQUENCES, "-k", "closure and rederive and embedded"),
    ),
    Mutant(
        "kernels do not look at ranks when they walk rows",
        "engines/embedded/kernels/matching.py",
        "if stamp & RANK >= rank:",
        "if stamp < 0:",
        (SEQUENCES, "-k", "(closure or non_linear) and rederive and embedded"),
    ),
    Mutant(
        "for kernels nothing is doubtful",
        "engines/embedded/kernels/deletion.py",
        "if load64(machine, PASSED_OVER) == 1:",
        "if load64(machine, PASSED_OVER) == 2:",
        ("tests/unit/test_deletion_order.py",),
    ),
    Mutant(
        "kernels go on where nothing has been decided",
        "engines/embedded/program.py",
        "        if bound & wanted:\n            count = number",
        "        if bound & wanted and not count:\n            count = number",
        (PROGRAMS, "-k", "embedded"),
    ),
    Mutant(
        "in a wave stations that read a change are not due",
        "engines/embedded/kernels/wave.py",
        "if load64(load64(each, MADE_RELATION), LIVE) > 0:",
        "if load64(load64(each, MADE_RELATION), LIVE) > 1:",
        (SEQUENCES, "-k", "one_way and rederive and embedded"),
    ),
    Mutant(
        "a wave forgets to bring up what ran",
        "engines/embedded/kernels/wave.py",
        "move_rows(machine, station + load64(station, MOVES_AT), load64(station, MOVES))\n",
        "move_rows(machine, station + load64(station, MOVES_AT), 0)\n",
        (SEQUENCES, "-k", "closure and rederive and embedded"),
    ),
    # --- delta rules
    Mutant(
        "a projection forgets matches that come in",
        "rewrites/delta_rules.py",
        "    yield _make_delta_rule(rule, still, _minus_atom(q), _plus_atom(other), *tests)\n",
        "",
        _sequences("algebra and delta"),
    ),
    Mutant(
        "a projection forgets matches that stay",
        "rewrites/delta_rules.py",
        "    yield _make_delta_rule(rule, still, _minus_atom(q), other, "
        "Negation(_minus_atom(other)), *tests)\n",
        "",
        _sequences("algebra and delta"),
    ),
    Mutant(
        "the misprint in the rules of difference",
        "rewrites/delta_rules.py",
        "yield _make_delta_rule(rule, _minus_atom(rule.head), _plus_atom(r), q)",
        "yield _make_delta_rule(rule, _minus_atom(rule.head), _minus_atom(r), q)",
        _sequences("wildcards and delta"),
    ),
    Mutant(
        "a join forgets that both sides may change",
        "rewrites/delta_rules.py",
        "        yield _make_delta_rule(rule, head, change(q), change(r))\n",
        "",
        _sequences("algebra and delta"),
    ),
    Mutant(
        "a union forgets that both sides may go",
        "rewrites/delta_rules.py",
        "        yield _make_delta_rule(rule, _minus_atom(head), _minus_atom(q), _minus_atom(r))\n",
        "",
        _sequences("algebra and delta"),
    ),
    Mutant(
        "a join that projects is taken for one that does not",
        "rewrites/normalize.py",
        "return set(_bound_names(body)) <= in_head",
        "return True",
        _sequences("algebra and delta"),
    ),
    # --- partial differentials
    Mutant(
        "always nervous",
        "rewrites/partial_differentials.py",
        "against = (held, holds) if is_strict else (loss, gain)",
        "against = (loss, gain)",
        _sequences("algebra and differencing"),
    ),
    Mutant(
        "differentials in the wrong states",
        "rewrites/partial_differentials.py",
        "for truth, state in ((True, names.new_name), (False, unchanged_name)):",
        "for truth, state in ((True, unchanged_name), (False, names.new_name)):",
        _sequences("algebra and differencing"),
    ),
    Mutant(
        "the logical rollback forgets what was deleted",
        "runtime/compilation.py",
        "made[name] = Overlay(name, names.plus_name(name), names.minus_name(name))",
        "made[name] = Overlay(name, names.plus_name(name))",
        _sequences("algebra and differencing"),
    ),
    Mutant(
        "what was only tried stays",
        "runtime/outcome.py",
        "            self._undo_in_place()\n",
        "            pass\n",
        ("tests/properties/test_propagation.py", "-k", "differencing and reference"),
    ),
    Mutant(
        "a change goes to views that nobody wants",
        "runtime/route.py",
        "if not needed.isdisjoint(node.choice.predicates):",
        "if True:",
        ("tests/unit/test_wanted_views.py", "-k", "reference and nobody_wants"),
    ),
    Mutant(
        "a change is released before it was asked for through other views",
        "runtime/route.py",
        "last = asked if names.new_name(name) in on_demand else direct",
        "last = direct",
        ("tests/unit/test_wanted_views.py", "-k", "reference and missed"),
    ),
    Mutant(
        "expanded views keep the names of their variables",
        "rewrites/unfold.py",
        "renaming = {name: Variable(next(fresh)) for name in names",
        "renaming = {name: Variable(name) for name in names",
        _sequences("flat"),
    ),
    # --- shared prefixes of rederivations
    Mutant(
        "a way forgets what the rest of the body needs",
        "rewrites/factor_rederivation.py",
        "variable_names(rule.head, *others)",
        "variable_names(rule.head)",
        _sequences("rights"),
    ),
    Mutant(
        "a way begins from what waits for other variables",
        "rewrites/factor_rederivation.py",
        "not foreign & set(variable_names(literal))\n            and ",
        "",
        ("tests/unit/test_case_files.py", "-k", "factor_rederivation"),
    ),
    Mutant(
        "what one row derives is appended when there are several",
        "engines/embedded/kernels/rules.py",
        "(once == ONCE_A_ROW and is_single)",
        "once == ONCE_A_ROW",
        ("tests/unit/test_embedded.py", "-k", "many_ways"),
    ),
    # --- existence tests
    Mutant(
        "a group is tested for existence although the head shows it",
        "rewrites/existence_tests.py",
        "if not shown & _names_in_group(rule.body, places)",
        "if places[0] > 0 or not shown & _names_in_group(rule.body, places)",
        EXISTENCE,
    ),
    Mutant(
        "literals are connected by the last one only",
        "rewrites/existence_tests.py",
        "            used.update(*(others for others, _ in joined))\n",
        "",
        EXISTENCE,
    ),
    Mutant(
        "an aggregate counts what only has to exist as one",
        "rewrites/existence_tests.py",
        "    if rule.is_aggregate:\n        return []\n",
        "",
        EXISTENCE,
    ),
    Mutant(
        "a migration trusts a helper that tests existence",
        "rewrites/program_passes.py",
        "    if form.is_migration:\n        return made\n",
        "",
        ("tests/unit/test_existence_tests.py", "-k", "rules_change"),
    ),
    # --- split joins
    Mutant(
        "a split join forgets what the rest of the body needs",
        "rewrites/split_joins.py",
        "needed = variable_names(rule.head, *rest)",
        "needed = variable_names(rule.head)",
        _sequences("split"),
    ),
    Mutant(
        "a split join is not computed anew after a change of rules",
        "runtime/rule_changes.py",
        "view in reached or ",
        "",
        (PAIRS, "-k", "pair and auto-stored and not embedded"),
    ),
    Mutant(
        "a split join keeps its facts when its name stands for another",
        "runtime/rule_changes.py",
        " or before.get(view) != after[view]",
        "",
        (PAIRS, "-k", "pair and auto-stored and not embedded"),
    ),
    Mutant(
        "a split join is younger than what was derived from it",
        "runtime/rule_changes.py",
        "choice.members & helpers\n            or (choice",
        "(choice",
        (PAIRS, "-k", "pair and auto-stored and not embedded"),
    ),
    # --- aggregates
    Mutant(
        "a group is touched by insertions only",
        "rewrites/aggregate_changes.py",
        "for truth, state in ((True, new), (False, old)):",
        "for truth, state in ((True, new),):",
        _sequences("aggregates"),
    ),
    Mutant(
        "a group that did not change is reported as gone",
        "rewrites/aggregate_changes.py",
        "(touched_row, held, Negation(holds))",
        "(touched_row, held)",
        _sequences("aggregates"),
    ),
    Mutant(
        "group state forgets what went",
        "rewrites/fold_changes.py",
        'rest = Operation("-", (columns["H"][i], columns["L"][i]), type_)',
        'rest = columns["H"][i]',
        _sequences("aggregates"),
    ),
    Mutant(
        "an empty group stays",
        "rewrites/fold_changes.py",
        'Comparison(">", columns["N"][i], Constant(0, "int"), "int")',
        'Comparison(">=", columns["N"][i], Constant(0, "int"), "int")',
        _sequences("aggregates"),
    ),
    Mutant(
        "a sum that may have no value is continued",
        "rewrites/fold_changes.py",
        '(term.type == "exact" or term.argument in halves)',
        "True",
        (PROGRAMS, "-k", "large_sums and rederive"),
    ),
    Mutant(
        "one half of a sum is shown",
        "rewrites/group_state.py",
        "value = Operation(name, self.parts, self.part_type)",
        "value = self.parts[-1]",
        (PROGRAMS, "-k", "large_sums and rederive"),
    ),
    # --- recomputation
    Mutant(
        "recomputed facts that went are kept",
        "rewrites/recomputation.py",
        "(held, Negation(holds)), origin)",
        "(held, Negation(held)), origin)",
        _sequences("closure and recompute"),
    ),
    # --- plans and engine
    Mutant(
        "new rows are not joined with new rows",
        "plan/lower.py",
        "Window.OLD if position < delta else Window.ALL",
        "Window.OLD",
        _sequences("non_linear"),
    ),
    Mutant(
        "every pair is joined twice",
        "plan/lower.py",
        "Window.OLD if position < delta else Window.ALL",
        "Window.ALL",
        ("tests/unit/test_fixpoint.py",),
    ),
    Mutant(
        "a repeated variable may have two values",
        "engines/interpreter.py",
        "if all(row[column] == slots[slot.index] for column, slot in step.same):",
        "if True:",
        (PROGRAMS, "-k", "shapes and not embedded"),
    ),
    Mutant(
        "a rule sees what another derived in the same round",
        "engines/reference/engine.py",
        f"derived = [{_ROUND}]",
        f"derived = ({_ROUND})",
        _sequences("wildcards and virtual"),
    ),
    # --- transactions, changes, rules
    Mutant(
        "a second fact for a key is accepted",
        "runtime/checked_rows.py",
        "        if other != row:\n            raise DataError([key_taken(relation, other)])\n",
        "",
        ("tests/unit/test_transactions.py",),
    ),
    Mutant(
        "one set gives a key two facts",
        "runtime/transaction.py",
        "        check_set_once(known, many)\n",
        "",
        ("tests/unit/test_transactions.py",),
    ),
    Mutant(
        "keys are not checked again at the end",
        "runtime/transaction.py",
        "            check_taken_keys(wanted, self._relations, self._ground.find)\n",
        "            pass\n",
        ("tests/unit/test_transactions.py",),
    ),
    Mutant(
        "what changes nothing counts as a change",
        "runtime/net_change.py",
        "if found == is_there",
        "if True",
        ("tests/properties/test_propagation.py", "-k", "rederive and reference"),
    ),
    Mutant(
        "the kernels take what changes nothing for a change",
        "engines/embedded/kernels/wave.py",
        "if stored == 0 or (find_row(stored, words) >= 0) == is_there:",
        "if stored == 0 or count > 0:",
        ("tests/unit/test_transactions.py", "-k", "no_change"),
    ),
    Mutant(
        "a change that has no room in the output buffer is cut",
        "engines/embedded/kernels/wave.py",
        "                    store64(output, IS_ALL, 0)\n",
        "                    pass\n",
        ("tests/unit/test_embedded.py", "-k", "whenever"),
    ),
    Mutant(
        "rows are appended that may come twice",
        "engines/embedded/program.py",
        "{slot.index for _, slot in step.bind} <= known\n",
        "True\n",
        ("tests/unit/test_embedded.py", "-k", "comes_once"),
    ),
    Mutant(
        "the links of one key go on with those of the next",
        "engines/embedded/kernels/indexes.py",
        "            store64(links, behind - 1, linked_row(load64(links, behind - 1)))\n",
        "",
        ("tests/unit/test_embedded.py", "-k", "index or newer"),
    ),
    Mutant(
        "a walk goes on by its old link when the index was made anew",
        "engines/embedded/kernels/matching.py",
        "load64(frame, F_CAPACITY) != load64(relation, CAPACITY)",
        "load64(frame, F_CAPACITY) < 0",
        ("tests/unit/test_embedded.py", "-k", "grows"),
    ),
    Mutant(
        "machine code goes on by its old link when the index was made anew",
        "engines/embedded/llvm_walk.py",
        'w.at.cbranch(w.is_("==", capacity, w.at.load(self.capacity)), self.collect, seek)',
        'w.at.cbranch(w.is_("==", capacity, capacity), self.collect, seek)',
        ("tests/unit/test_embedded.py", "-k", "grows"),
    ),
    Mutant(
        "links are sorted oldest first",
        "engines/embedded/kernels/indexes.py",
        "        row = end - 1 - number\n",
        "        row = number\n",
        ("tests/unit/test_embedded.py", "-k", "index or newer"),
    ),
    Mutant(
        "appended rows are not indexed before something is looked up",
        "engines/embedded/kernels/rules.py",
        "    index_looked_up(code, start)\n    once",
        "    once",
        ("tests/unit/test_embedded.py", "-k", "appended"),
    ),
    Mutant(
        "what returns has its old rank",
        "engines/embedded/kernels/relation_memory.py",
        "    store64(row_address(relation, row), STAMP, stamp)\n    store64(relation, LIVE",
        "    store64(row_address(relation, row), STAMP, row)\n    store64(relation, LIVE",
        ("tests/unit/test_embedded.py", "-k", "old_place"),
    ),
    Mutant(
        "machine code finds what is dead",
        "engines/embedded/llvm_writer.py",
        "position = self.at.select(is_dead, self.number(0), found)",
        "position = found",
        (MACHINE_CODE, "-k", "w1_scc or w7"),
    ),
    Mutant(
        "machine code looks at no ranks",
        "engines/embedded/llvm_codegen.py",
        'self.at.cbranch(self.is_("<", rank, self.rank), older, younger)',
        'self.at.cbranch(self.is_(">=", rank, 0), older, younger)',
        (MACHINE_CODE, "-k", "w1_scc"),
    ),
    Mutant(
        "machine code forgets rows that are new",
        "engines/embedded/llvm_walk.py",
        "            w.go_if(has_more, self.open_plus)\n",
        "            pass\n",
        (MACHINE_CODE, "-k", "w2 or w7"),
    ),
    Mutant(
        "machine code counts other steps",
        "engines/embedded/llvm_walk.py",
        "        if self.is_match:\n            w.tick(is_checked=False)\n",
        "        if not self.is_match:\n            w.tick(is_checked=False)\n",
        (MACHINE_CODE, "-k", "w1_dag"),
    ),
    Mutant(
        "a batch of suspects is never examined again",
        "engines/embedded/kernels/deletion.py",
        "if load64(taken, T_STANDS) == 1 and rank > load64(machine, LOWEST):",
        "if load64(taken, T_STANDS) == 2:",
        ("tests/unit/test_embedded.py", "-k", "large_deletions"),
    ),
    Mutant(
        "a change followed by its undoing is two changes",
        "runtime/changes.py",
        "inserted[name] = (plus - less) | (more - minus)",
        "inserted[name] = plus | (more - minus)",
        ("tests/unit/test_changes.py",),
    ),
    Mutant(
        "the rules that come are not guarded",
        "runtime/rule_changes.py",
        "*(_guard_rule(rule, NEW) for rule in after if rule not in old_rules),",
        "*(rule for rule in after if rule not in old_rules),",
        (PAIRS, "-k", "pair and auto-stored and not embedded"),
    ),
    Mutant(
        "facts of the old program stay",
        "runtime/rule_changes.py",
        "        if row in facts.get(name, set()):\n",
        "        if False:\n",
        (PAIRS, "-k", "pair and auto-stored and not embedded"),
    ),
    # --- database files
    Mutant(
        "memory changes before the file does",
        "runtime/database.py",
        """                for participant in self._participants:
                    participant.before_change(self, outcome, exact)
                outcome.apply()
""",
        """                outcome.apply()
                for participant in self._participants:
                    participant.before_change(self, outcome, exact)
""",
        (FILES, "-k", "full_disk or other_options"),
    ),
    Mutant(
        "ranks begin one too late",
        "runtime/outcome.py",
        "made.append(StoredChange(name, *sides, True, (), range(clock, end), rows))",
        "made.append(StoredChange(name, *sides, True, (), range(clock + 1, end + 1), rows))",
        ("tests/unit/test_database_files.py", "-k", "ranks_of_rows"),
    ),
    Mutant(
        "ranks of base facts begin one too late",
        "runtime/outcome.py",
        "ranks = range(clock, clock + len(bound))",
        "ranks = range(clock + 1, clock + 1 + len(bound))",
        (REOPENED, "-k", "auto-True-reference"),
    ),
    Mutant(
        "a reader does not hold the log",
        "store/readers.py",
        "min(_last_unwanted(connection, retention, last), *readers.values(), last - 1)",
        "min(_last_unwanted(connection, retention, last), last - 1)",
        (FILES, "-k", "holds_the_log"),
    ),
    Mutant(
        "a part of a commit is offered as all of it",
        "store/log.py",
        "is_whole = oldest & ((1 << PARTS) - 1) == 0",
        "is_whole = True",
        (FILES, "-k", "half_a_dropped"),
    ),
    Mutant(
        "the end of a file is not looked at",
        "store/damage.py",
        "return accepted <= 0 and path.stat()",
        "return False and path.stat()",
        (FILES, "-k", "cut_off"),
    ),
    Mutant(
        "a damaged log is its end",
        "store/damage.py",
        "return any(commits) and next(commits, None) is not None",
        "return False",
        ("tests/cli/test_database_commands.py", "-k", "recover"),
    ),
    # --- what walks found
    Mutant(
        "an index built late lacks rows that may return",
        "engines/embedded/kernels/indexes.py",
        """        expect_bucket(relation, index, row + AHEAD, end)
        link_index(relation, index, row)
""",
        """        expect_bucket(relation, index, row + AHEAD, end)
        if load64(row_address(relation, row), STAMP) >= 0:
            link_index(relation, index, row)
""",
        (WALKS, "-k", "once and dead and embedded"),
    ),
    Mutant(
        "a what-if in place gives rows other ranks",
        "runtime/outcome.py",
        "            self._undo_in_place()\n",
        "            _write_change(propagation.engine, -self._base)\n",
        (WALKS, "-k", "once and what-if and reference"),
    ),
    Mutant(
        "a negated influent is nervous",
        "rewrites/strategies.py",
        "        if not is_positive or choice.is_aggregate or",
        "        if choice.is_aggregate or",
        (WALKS, "-k", "once and cancels and reference"),
    ),
    Mutant(
        "an interrupt stops a change of rules half-way",
        "runtime/program_change.py",
        "rebuild_views(database.engine, new, stale, UNLIMITED, _only_reporting(database.watch))",
        "rebuild_views(database.engine, new, stale, UNLIMITED, database.watch)",
        (WALKS, "-k", "once and interrupt and reference"),
    ),
    Mutant(
        "facts of the program come back when rules change",
        "runtime/program_change.py",
        "replace(new, core=replace(new.core, facts=()))",
        "new",
        (WALKS, "-k", "once and deleted and reference"),
    ),
    Mutant(
        "ranks that no strategy kept are trusted",
        "rewrites/strategies.py",
        "        return self.is_recursive and not self.is_maintained",
        "        return False",
        (WALKS, "-k", "once and ranks and reference"),
    ),
    Mutant(
        "what was true, fell and rose again is not triggered",
        "runtime/check_phase.py",
        "names = before.keys() | deltas.keys()",
        "names = deltas.keys()",
        (RULES, "-k", "rose_again"),
    ),
    Mutant(
        "all variables of a condition are its instance",
        "rewrites/condition_rules.py",
        "    if rule.is_nervous:",
        "    if True:",
        (RULES, "-k", "projected"),
    ),
    Mutant(
        "rules are executed in the order of the program",
        "runtime/active_rules.py",
        "key=lambda each: -each.rule.priority",
        "key=lambda each: 0",
        (RULES, "-k", "priority"),
    ),
    Mutant(
        "constraints of views that nobody wants are not checked",
        "runtime/route.py",
        "views if is_narrow else views | network.watched",
        "views",
        ("tests/unit/test_constraints.py", "-k", "wanted"),
    ),
    Mutant(
        "the last row that may be in a file is not looked for",
        "pipeline/row_groups.py",
        "bisect_right(rows, most",
        "bisect_left(rows, most",
        ("tests/unit/test_copy_on_write.py",),
    ),
    Mutant(
        "a group is not read for its last value",
        "pipeline/row_groups.py",
        "bool(values[at] <= bounds[1])",
        "bool(values[at] < bounds[1])",
        ("tests/unit/test_row_groups.py",),
    ),
    Mutant(
        "rows with another rank are lost where their file is written anew",
        "pipeline/copy_on_write.py",
        "for row in found if row in updated",
        "for row in found if row not in updated",
        ("tests/unit/test_copy_on_write.py",),
    ),
)
