//! The rules of the workloads (`bench/workloads.py`) as circuits.
//!
//! Written as its users write them, and in its favour where there is a choice: relations are fed
//! and kept by the key they are joined on, so that nothing is indexed twice, and relations that
//! never change are joined first. A closure is kept by its end. Negation needs no join: a fact that
//! is there counts 1, one that is denied -1, and `distinct` keeps what stays above 0.

use dbsp::utils::Tup2;
use dbsp::{NestedCircuit, OrdIndexedZSet, RootCircuit, SchedulerError, Stream};
use peer::Fact;

use crate::relations::{Bases, Relation, Views};

type Pairs = Relation<u32, u32>;
type Nested = Stream<NestedCircuit, OrdIndexedZSet<u32, u32>>;
type Build = fn(&RootCircuit, &mut Bases, &mut Views) -> Result<(), SchedulerError>;

pub fn by_name(name: &str) -> Option<Build> {
    Some(match name {
        "closure" => closure,
        "same_generation" => same_generation,
        "points_to" => points_to,
        "negation" => negation,
        "inventory" => inventory,
        "group_by" => group_by,
        "permissions" => permissions,
        _ => return None,
    })
}

fn by_first(fact: &Fact) -> (u32, u32) {
    (fact[0], fact[1])
}

fn by_second(fact: &Fact) -> (u32, u32) {
    (fact[1], fact[0])
}

fn forth(key: &u32, value: &u32) -> [u32; 2] {
    [*key, *value]
}

fn back(key: &u32, value: &u32) -> [u32; 2] {
    [*value, *key]
}

fn swapped(relation: &Pairs) -> Pairs {
    relation.map_index(|(key, value)| (*value, *key))
}

/// The pairs that lead from the beginning of `first` over any number of `more`, by their end.
///
/// `first` is by its end, `more` by its beginning.
fn closed(circuit: &RootCircuit, first: &Pairs, more: &Pairs) -> Result<Pairs, SchedulerError> {
    circuit.recursive(|inner, found: Nested| {
        let (first, more) = (first.delta0(inner), more.delta0(inner));
        Ok(found.join_index(&more, |_y, x, z| Some((*z, *x))).plus(&first))
    })
}

fn without(held: &Pairs, denied: &Pairs) -> Pairs {
    held.minus(denied).distinct()
}

/// path(X, Y) :- edge(X, Y).
/// path(X, Z) :- path(X, Y), edge(Y, Z).
fn closure(
    circuit: &RootCircuit,
    bases: &mut Bases,
    views: &mut Views,
) -> Result<(), SchedulerError> {
    let edge = bases.relation(circuit, "edge", by_first);
    views.watch("path", &closed(circuit, &swapped(&edge), &edge)?, back);
    Ok(())
}

/// sg(X, Y) :- parent(P, X), parent(P, Y).
/// sg(X, Y) :- parent(A, X), sg(A, B), parent(B, Y).
fn same_generation(
    circuit: &RootCircuit,
    bases: &mut Bases,
    views: &mut Views,
) -> Result<(), SchedulerError> {
    let parent = bases.relation(circuit, "parent", by_first);
    let siblings = parent.join_index(&parent, |_p, x, y| Some((*x, *y)));
    let sg = circuit.recursive(|inner, found: Nested| {
        let parent = parent.delta0(inner);
        Ok(found
            .join_index(&parent, |_a, b, x| Some((*b, *x)))
            .join_index(&parent, |_b, x, y| Some((*x, *y)))
            .plus(&siblings.delta0(inner)))
    })?;
    views.watch("sg", &sg, forth);
    Ok(())
}

/// pt(V, O) :- alloc(V, O).
/// pt(V, O) :- assign(V, W), pt(W, O).
/// pt(V, O) :- load(V, P), pt(P, Q), pt(Q, O).
/// pt(Q, O) :- store(P, V), pt(P, Q), pt(V, O).
fn points_to(
    circuit: &RootCircuit,
    bases: &mut Bases,
    views: &mut Views,
) -> Result<(), SchedulerError> {
    let alloc = bases.relation(circuit, "alloc", by_first);
    let assign = bases.relation(circuit, "assign", by_second);
    let load = bases.relation(circuit, "load", by_second);
    let store = bases.relation(circuit, "store", by_first);
    let pt = circuit.recursive(|inner, pt: Nested| {
        let assigned = pt.join_index(&assign.delta0(inner), |_w, o, v| Some((*v, *o)));
        let loaded = pt
            .join_index(&load.delta0(inner), |_p, q, v| Some((*q, *v)))
            .join_index(&pt, |_q, v, o| Some((*v, *o)));
        let stored = pt
            .join_index(&store.delta0(inner), |_p, q, v| Some((*v, *q)))
            .join_index(&pt, |_v, q, o| Some((*q, *o)));
        Ok(alloc.delta0(inner).sum([&assigned, &loaded, &stored]))
    })?;
    views.watch("pt", &pt, forth);
    Ok(())
}

/// The closure, and:
/// one_way(X) :- path(X, Y), not path(Y, X).
/// unreachable(X, Y) :- node(X), node(Y), not path(X, Y).
fn negation(
    circuit: &RootCircuit,
    bases: &mut Bases,
    views: &mut Views,
) -> Result<(), SchedulerError> {
    let edge = bases.relation(circuit, "edge", by_first);
    let node = bases.relation(circuit, "node", |fact| ((), fact[0]));
    let path = closed(circuit, &swapped(&edge), &edge)?;
    let pairs = node.join_index(&node, |(), x, y| Some((*y, *x)));
    let one_way = without(&path, &swapped(&path)).map(|(_y, x)| *x).distinct();
    views.watch("one_way", &one_way, |x, ()| [*x]);
    views.watch("unreachable", &without(&pairs, &path), back);
    views.watch("path", &path, back);
    Ok(())
}

/// low(I) :- quantity(I, Q), consume_freq(I, F), supplies(S, I), delivery_time(I, S, D),
///           min_stock(I, M), Q < F * D + M.
fn inventory(
    circuit: &RootCircuit,
    bases: &mut Bases,
    views: &mut Views,
) -> Result<(), SchedulerError> {
    let quantity = bases.relation(circuit, "quantity", by_first);
    let consumed = bases.relation(circuit, "consume_freq", by_first);
    let least = bases.relation(circuit, "min_stock", by_first);
    let supplies = bases.relation(circuit, "supplies", |fact| (Tup2(fact[1], fact[0]), ()));
    let delivery =
        bases.relation(circuit, "delivery_time", |fact| (Tup2(fact[0], fact[1]), fact[2]));
    let enough = delivery
        .join_index(&supplies, |Tup2(i, _s), d, ()| Some((*i, *d)))
        .join_index(&consumed, |i, d, f| Some((*i, u64::from(*f) * u64::from(*d))))
        .join_index(&least, |i, needed, m| Some((*i, needed + u64::from(*m))));
    let low = quantity
        .join_flatmap(&enough, |i, q, enough| (u64::from(*q) < *enough).then_some(*i))
        .distinct();
    views.watch("low", &low, |i, ()| [*i]);
    Ok(())
}

/// by_region(R, count(), sum(A)) :- orders(O, C, A), customer(C, R).
///
/// The aggregate is linear, a pair of 1 and the amount: no group is ever walked.
fn group_by(
    circuit: &RootCircuit,
    bases: &mut Bases,
    views: &mut Views,
) -> Result<(), SchedulerError> {
    let orders = bases.relation(circuit, "orders", |fact| (fact[1], fact[2]));
    let customer = bases.relation(circuit, "customer", by_first);
    let by_region = orders
        .join_index(&customer, |_c, a, r| Some((*r, *a)))
        .aggregate_linear(|a| Tup2(1_i64, i64::from(*a)));
    views.watch("by_region", &by_region, |r, Tup2(count, sum)| [*r, *count as u32, *sum as u32]);
    Ok(())
}

/// in_group(U, G) :- member(U, G).
/// in_group(U, G) :- in_group(U, H), subgroup(H, G).
/// under(D, F) :- doc_in(D, F).
/// under(D, F) :- under(D, E), parent(E, F).
/// allow(U, D) :- in_group(U, G), grant(G, F), under(D, F).
/// denied(U, D) :- in_group(U, G), deny(G, F), under(D, F).
/// can(U, D) :- allow(U, D), not denied(U, D).
fn permissions(
    circuit: &RootCircuit,
    bases: &mut Bases,
    views: &mut Views,
) -> Result<(), SchedulerError> {
    let member = bases.relation(circuit, "member", by_second);
    let subgroup = bases.relation(circuit, "subgroup", by_first);
    let doc_in = bases.relation(circuit, "doc_in", by_second);
    let parent = bases.relation(circuit, "parent", by_first);
    let grant = bases.relation(circuit, "grant", by_first);
    let deny = bases.relation(circuit, "deny", by_first);
    let in_group = closed(circuit, &member, &subgroup)?;
    let under = closed(circuit, &doc_in, &parent)?;
    let reached = |rights: &Pairs| {
        let folders = rights.join_index(&in_group, |_g, f, u| Some((*f, *u))).distinct();
        folders.join_index(&under, |_f, u, d| Some((*u, *d))).distinct()
    };
    let (allow, denied) = (reached(&grant), reached(&deny));
    views.watch("in_group", &in_group, back);
    views.watch("under", &under, back);
    views.watch("can", &without(&allow, &denied), forth);
    views.watch("allow", &allow, forth);
    views.watch("denied", &denied, forth);
    Ok(())
}
