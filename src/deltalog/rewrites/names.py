"""The names of predicates made by rewrites: the only place where they are formed.

    path__bf             path, asked with its first argument bound
    path__bf__magic      the bindings it is asked with
    path__bf__1_2        the second supplementary predicate of its first rule
    payroll__all3        the bindings that the aggregate of the third rule ranges over

They always contain a double underscore, which the parser refuses in user names: they can neither
clash nor be mistaken. What comes before the first query piece names what a rule was made for.
"""

from __future__ import annotations

import re

from deltalog.language.ast import Variable

ANSWER = "answer__"
GIVEN = "given__"
"""The bindings that a query is asked with, where there are many of them."""
_REQUEST_PLUS = "__request_plus"
_REQUEST_MINUS = "__request_minus"
_EXISTENCE = re.compile(r"__exists[0-9]+$")
_QUERY_PIECE = re.compile(r"[bf]+|0|[0-9]+_[0-9]+")


def bindings_name(predicate: str, rule: int) -> str:
    """All bindings that the aggregate of a rule ranges over."""
    return f"{predicate}__all{rule}"


def adorned_name(predicate: str, adornment: str) -> str:
    return f"{predicate}__{adornment or '0'}"


def magic_name(adorned_predicate: str) -> str:
    return f"{adorned_predicate}__magic"


def lookup_name(adorned_predicate: str) -> str:
    """The keys with which rules look up a stored relation."""
    return f"{adorned_predicate}__lookup"


def supplementary_name(adorned_predicate: str, rule: int, position: int) -> str:
    return f"{adorned_predicate}__{rule}_{position}"


# --- requests, states and changes of a predicate -------------------------------------------------


def plus_name(predicate: str) -> str:
    """Facts that a transaction really inserts into it."""
    return f"{predicate}__plus"


def minus_name(predicate: str) -> str:
    """Facts that a transaction really deletes from it."""
    return f"{predicate}__minus"


def request_plus_name(predicate: str) -> str:
    """Facts that are requested to hold."""
    return f"{predicate}{_REQUEST_PLUS}"


def request_minus_name(predicate: str) -> str:
    """Facts that are requested not to hold."""
    return f"{predicate}{_REQUEST_MINUS}"


def as_request(predicate: str) -> tuple[str, bool] | None:
    """The predicate that a request is for, and whether its fact shall hold; None of others."""
    return _split_sign(predicate, _REQUEST_PLUS, _REQUEST_MINUS)


def as_change(predicate: str) -> tuple[str, bool] | None:
    """The predicate that a change is of, and whether its fact is inserted; None of others."""
    return None if as_request(predicate) else _split_sign(predicate, plus_name(""), minus_name(""))


def as_new(predicate: str) -> str | None:
    """The predicate whose new state this is; None of others."""
    return predicate.removesuffix(new_name("")) if predicate.endswith(new_name("")) else None


def _split_sign(predicate: str, positive: str, negative: str) -> tuple[str, bool] | None:
    for ending in (positive, negative):
        if predicate.endswith(ending):
            return predicate.removesuffix(ending), ending == positive
    return None


def new_name(predicate: str) -> str:
    """Its state after the transaction."""
    return f"{predicate}__new"


def old_name(predicate: str) -> str:
    """Its state before the transaction, where the store has been updated in place."""
    return f"{predicate}__old"


def overdeleted_name(predicate: str) -> str:
    """Facts that lost a derivation: a first estimate of the deletions."""
    return f"{predicate}__overdeleted"


def kept_name(predicate: str) -> str:
    """Its old state without the estimated deletions."""
    return f"{predicate}__kept"


def rederived_name(predicate: str) -> str:
    """Estimated deletions that have another derivation."""
    return f"{predicate}__red"


def prefix_keys_name(predicate: str, rule: int) -> str:
    """The values from which the rederivation by a rule begins, each once."""
    return f"{predicate}__prefix_keys{rule}"


def shared_prefix_name(predicate: str, rule: int) -> str:
    """The shared prefix of a rederivation: rows that are found from these keys."""
    return f"{predicate}__prefix{rule}"


def inserted_name(predicate: str) -> str:
    """Facts that gained a derivation and are not kept anyway."""
    return f"{predicate}__ins"


def returned_name(predicate: str) -> str:
    """Facts that join the kept ones to form the new state: rederived and inserted ones."""
    return f"{predicate}__add"


def doubtful_name(predicate: str) -> str:
    """Facts that a ranked deletion took away although facts of higher rank may derive them."""
    return f"{predicate}__doubtful"


def suspect_name(predicate: str) -> str:
    """Facts that lost a derivation to a change below their component."""
    return f"{predicate}__suspect"


def derivable_name(predicate: str) -> str:
    """Its new state while its change is still being computed: asked, never read through one."""
    return f"{predicate}__derivable"


def total_name(predicate: str, rule: int) -> str:
    """An aggregate that shares its head with other rules."""
    return f"{predicate}__total{rule}"


def touched_name(predicate: str) -> str:
    """Groups of an aggregate with an inserted or deleted binding."""
    return f"{predicate}__touched"


def current_name(predicate: str) -> str:
    """The rows that touched groups have after the transaction."""
    return f"{predicate}__now"


def asked_name(predicate: str, reader: str = "") -> str:
    """The same predicate in a query, kept apart from one of that name in update propagation.

    What is there for longer than a query is kept apart from that of another `reader`, too.
    """
    return f"{predicate}__asked_{reader}" if reader else f"{predicate}__asked"


def auxiliary_name(predicate: str, number: int) -> str:
    """An intermediate result of a rule in algebra format."""
    return f"{predicate}__a{number}"


def join_name(predicate: str, number: int) -> str:
    """A join of two atoms in a rule for it, over the variables that are still needed."""
    return f"{predicate}__join{number}"


def existence_name(predicate: str, number: int) -> str:
    """Whether a part of the body of a rule for it, which shares no variable with it, holds."""
    return f"{predicate}__exists{number}"


def still_matched_name(predicate: str) -> str:
    """Facts of a projection that keep a match although they lost one."""
    return f"{predicate}__still"


def differential_name(predicate: str, rule: int, literal: int) -> str:
    """The change caused by one influent literal of a rule."""
    return f"{predicate}__by{rule}_{literal}"


def inserted_candidates_name(predicate: str) -> str:
    """Insertions that the differentials found, not yet tested."""
    return f"{predicate}__inserted"


def deleted_candidates_name(predicate: str) -> str:
    """Deletions that the differentials found, not yet tested."""
    return f"{predicate}__deleted"


def choice_name(number: int) -> str:
    """The bindings for which one of the heads of a disjunctive rule must hold."""
    return f"choice__{number + 1}"


def key_denial_name(predicate: str) -> str:
    """Facts of a view that share their key with another fact of it."""
    return f"{predicate}__key"


def condition_name(rule: str) -> str:
    """Instances for which the condition of an active rule holds."""
    return f"{rule}__condition"


def triggered_name(rule: str) -> str:
    """Instances, or events, for which an active rule is executed."""
    return f"{rule}__triggered"


def row_variables(arity: int) -> tuple[Variable, ...]:
    """Distinct variables for the columns of a relation."""
    return tuple(Variable(f"X{i + 1}") for i in range(arity))


def groups_name(predicate: str) -> str:
    """The group state of an aggregate view."""
    return f"{predicate}__groups"


def ends_name(predicate: str) -> str:
    """Smallest and largest values of the groups of an aggregate view."""
    return f"{predicate}__ends"


def inserted_bindings_name(predicate: str) -> str:
    """Bindings of an aggregate that are inserted."""
    return f"{predicate}__inserted"


def deleted_bindings_name(predicate: str) -> str:
    """Bindings of an aggregate that are deleted."""
    return f"{predicate}__deleted"


def inserted_totals_name(predicate: str) -> str:
    """Totals of the inserted bindings, per group."""
    return f"{predicate}__inserted_totals"


def deleted_totals_name(predicate: str) -> str:
    """Totals of the deleted bindings, per group."""
    return f"{predicate}__deleted_totals"


def or_zero_name(predicate: str) -> str:
    """The same for every touched group, zero where there is nothing."""
    return f"{predicate}__zero"


def is_existence(predicate: str) -> bool:
    """Whether it was named by `existence_name`."""
    return _EXISTENCE.search(predicate) is not None


def is_generated(predicate: str) -> bool:
    return "__" in predicate


def source_predicate(predicate: str) -> str:
    """The predicate that an adorned, magic or supplementary one was made for.

    >>> source_predicate("path__new__bf__magic"), source_predicate("answer____1_1")
    ('path__new', 'answer__')
    """
    pieces = predicate.split("__")
    for position, piece in enumerate(pieces[1:], start=1):
        if _QUERY_PIECE.fullmatch(piece):
            return "__".join(pieces[:position])
    return predicate
