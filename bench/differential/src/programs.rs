//! The rules of the workloads (`bench/workloads.py`) as dataflows.
//!
//! Written as its users write them: arrangements are shared, loops start from nothing and end in
//! `distinct`, outside of loops times are totally ordered and the operators for that are taken,
//! and relations that never change are joined first. Negation needs no join: a fact that is there
//! counts 1, one that is denied -1, and what stays above 0 holds.

use differential_dataflow::hashable::Hashable;
use differential_dataflow::operators::iterate::Variable;
use differential_dataflow::operators::{CountTotal, ThresholdTotal};
use differential_dataflow::{ExchangeData, VecCollection};
use timely::dataflow::Scope;
use timely::order::Product;

use crate::relations::{Bases, Relation, Time, Views};

type Pair = (u32, u32);
type Inner = Product<Time, u32>;
type Build = for<'scope> fn(Scope<'scope, Time>, &mut Bases, &mut Views);

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

/// The least relation that holds what `step` derives from it.
fn fixpoint<'scope>(
    outer: Scope<'scope, Time>,
    step: impl for<'inner> FnOnce(
        Scope<'inner, Inner>,
        VecCollection<'inner, Inner, Pair, isize>,
    ) -> VecCollection<'inner, Inner, Pair, isize>,
) -> Relation<'scope, Pair> {
    outer.iterative::<u32, _, _>(|scope| {
        let (variable, found) = Variable::new(scope, Product::new(Default::default(), 1));
        let derived = step(scope, found).distinct();
        variable.set(derived.clone());
        derived.leave(outer)
    })
}

/// What comes along from `first` by as many of `more` as one likes.
fn closed<'scope>(
    scope: Scope<'scope, Time>,
    first: Relation<'scope, Pair>,
    more: Relation<'scope, Pair>,
) -> Relation<'scope, Pair> {
    let more = more.arrange_by_key();
    fixpoint(scope, |inner, found| {
        found
            .map(|(x, y)| (y, x))
            .join_core(more.enter(inner), |_y, x, z| Some((*x, *z)))
            .concat(first.enter(inner))
    })
}

/// What is there more than 0 times, once: `distinct` for times that are totally ordered.
///
/// Not `distinct_total`: in version 0.25.1 it never takes back a fact whose count comes to 0.
fn once<'scope, D>(counted: Relation<'scope, D>) -> Relation<'scope, D>
where
    D: ExchangeData + Hashable,
{
    counted.threshold_total(|_, count| isize::from(*count > 0))
}

fn without<'scope>(
    held: Relation<'scope, Pair>,
    denied: Relation<'scope, Pair>,
) -> Relation<'scope, Pair> {
    once(held.concat(denied.negate()))
}

/// path(X, Y) :- edge(X, Y).
/// path(X, Z) :- path(X, Y), edge(Y, Z).
fn closure<'scope>(scope: Scope<'scope, Time>, bases: &mut Bases, views: &mut Views) {
    let edge = bases.relation(scope, "edge");
    views.watch("path", closed(scope, edge.clone(), edge));
}

/// sg(X, Y) :- parent(P, X), parent(P, Y).
/// sg(X, Y) :- parent(A, X), sg(A, B), parent(B, Y).
fn same_generation<'scope>(scope: Scope<'scope, Time>, bases: &mut Bases, views: &mut Views) {
    let parent = bases.relation::<Pair>(scope, "parent").arrange_by_key();
    let siblings = parent.clone().join_core(parent.clone(), |_p, x, y| Some((*x, *y)));
    let found = fixpoint(scope, |inner, found| {
        let parent = parent.enter(inner);
        found
            .join_core(parent.clone(), |_a, b, x| Some((*b, *x)))
            .join_core(parent, |_b, x, y| Some((*x, *y)))
            .concat(siblings.enter(inner))
    });
    views.watch("sg", found);
}

/// pt(V, O) :- alloc(V, O).
/// pt(V, O) :- assign(V, W), pt(W, O).
/// pt(V, O) :- load(V, P), pt(P, Q), pt(Q, O).
/// pt(Q, O) :- store(P, V), pt(P, Q), pt(V, O).
fn points_to<'scope>(scope: Scope<'scope, Time>, bases: &mut Bases, views: &mut Views) {
    let swapped = |(v, w): Pair| (w, v);
    let alloc = bases.relation::<Pair>(scope, "alloc");
    let assign = bases.relation(scope, "assign").map(swapped).arrange_by_key();
    let load = bases.relation(scope, "load").map(swapped).arrange_by_key();
    let store = bases.relation::<Pair>(scope, "store").arrange_by_key();
    let found = fixpoint(scope, |inner, found| {
        let pt = found.arrange_by_key();
        let assigned = pt.clone().join_core(assign.enter(inner), |_w, o, v| Some((*v, *o)));
        let loaded = pt
            .clone()
            .join_core(load.enter(inner), |_p, q, v| Some((*q, *v)))
            .join_core(pt.clone(), |_q, v, o| Some((*v, *o)));
        let stored = pt
            .clone()
            .join_core(store.enter(inner), |_p, q, v| Some((*v, *q)))
            .join_core(pt, |_v, q, o| Some((*q, *o)));
        alloc.enter(inner).concatenate([assigned, loaded, stored])
    });
    views.watch("pt", found);
}

/// The closure, and:
/// one_way(X) :- path(X, Y), not path(Y, X).
/// unreachable(X, Y) :- node(X), node(Y), not path(X, Y).
fn negation<'scope>(scope: Scope<'scope, Time>, bases: &mut Bases, views: &mut Views) {
    let edge = bases.relation::<Pair>(scope, "edge");
    let path = closed(scope, edge.clone(), edge).consolidate();
    let node = bases.relation::<u32>(scope, "node").map(|x| ((), x)).arrange_by_key();
    let pairs = node.clone().join_core(node, |(), x, y| Some((*x, *y)));
    let back = path.clone().map(|(x, y)| (y, x));
    let one_way = without(path.clone(), back).map(|(x, _y)| x);
    views.watch("one_way", once(one_way));
    views.watch("unreachable", without(pairs, path.clone()));
    views.watch("path", path);
}

/// low(I) :- quantity(I, Q), consume_freq(I, F), supplies(S, I), delivery_time(I, S, D),
///           min_stock(I, M), Q < F * D + M.
fn inventory<'scope>(scope: Scope<'scope, Time>, bases: &mut Bases, views: &mut Views) {
    let quantity = bases.relation::<Pair>(scope, "quantity").arrange_by_key();
    let consumed = bases.relation::<Pair>(scope, "consume_freq").arrange_by_key();
    let least = bases.relation::<Pair>(scope, "min_stock").arrange_by_key();
    let supplies = bases.relation(scope, "supplies").map(|(s, i): Pair| (i, s)).arrange_by_self();
    let delivery = bases.relation::<(Pair, u32)>(scope, "delivery_time").arrange_by_key();
    let enough = delivery
        .join_core(supplies, |(i, _s), d, ()| Some((*i, *d)))
        .join_core(consumed, |i, d, f| Some((*i, u64::from(*f) * u64::from(*d))))
        .join_core(least, |i, needed, m| Some((*i, needed + u64::from(*m))))
        .arrange_by_key();
    let low = quantity.join_core(enough, |i, q, enough| (u64::from(*q) < *enough).then_some(*i));
    views.watch("low", once(low));
}

/// by_region(R, count(), sum(A)) :- orders(O, C, A), customer(C, R).
///
/// An order is counted by its multiplicity, a pair of 1 and its amount: no group is ever walked.
fn group_by<'scope>(scope: Scope<'scope, Time>, bases: &mut Bases, views: &mut Views) {
    let orders = bases.relation::<(Pair, u32)>(scope, "orders").map(|((_o, c), a)| (c, a));
    let customer = bases.relation::<Pair>(scope, "customer").arrange_by_key();
    let by_region = orders
        .join_core(customer, |_c, a, r| Some((*r, *a)))
        .explode(|(r, a)| Some((r, (1_isize, a as isize))))
        .count_total()
        .map(|(r, (count, sum))| ((r, count as u32), sum as u32));
    views.watch("by_region", by_region);
}

/// in_group(U, G) :- member(U, G).
/// in_group(U, G) :- in_group(U, H), subgroup(H, G).
/// under(D, F) :- doc_in(D, F).
/// under(D, F) :- under(D, E), parent(E, F).
/// allow(U, D) :- in_group(U, G), grant(G, F), under(D, F).
/// denied(U, D) :- in_group(U, G), deny(G, F), under(D, F).
/// can(U, D) :- allow(U, D), not denied(U, D).
fn permissions<'scope>(scope: Scope<'scope, Time>, bases: &mut Bases, views: &mut Views) {
    let mut base = |name| bases.relation::<Pair>(scope, name);
    let in_group = closed(scope, base("member"), base("subgroup")).consolidate();
    let under = closed(scope, base("doc_in"), base("parent")).consolidate();
    views.watch("in_group", in_group.clone());
    views.watch("under", under.clone());
    let in_group = in_group.map(|(u, g)| (g, u)).arrange_by_key();
    let under = under.map(|(d, f)| (f, d)).arrange_by_key();
    let reached = |rights: Relation<'scope, Pair>| {
        let folders = rights.join_core(in_group.clone(), |_g, f, u| Some((*f, *u)));
        once(once(folders).join_core(under.clone(), |_f, u, d| Some((*u, *d))))
    };
    let (allow, denied) = (reached(base("grant")), reached(base("deny")));
    views.watch("can", without(allow.clone(), denied.clone()));
    views.watch("allow", allow);
    views.watch("denied", denied);
}
