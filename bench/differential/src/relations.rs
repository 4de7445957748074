//! Base relations that are fed, and views that are watched: what all programs have in common.
//!
//! Times are transactions, numbered; so they are totally ordered. A view is watched by adding up:
//! how many facts it has, and a checksum that does not depend on their order. Both are linear in
//! the multiplicities, so what leaves a loop needs no consolidation, which is in its favour.

use std::cell::RefCell;
use std::rc::Rc;

use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::{Data, VecCollection};
use timely::dataflow::{ProbeHandle, Scope};

use crate::transactions::Fact;

pub type Time = u32;
pub type Relation<'scope, D> = VecCollection<'scope, Time, D, isize>;

const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15; // 2^64 divided by the golden ratio

/// A fact as programs like it: a key, or a key and a value.
pub trait Row: Data {
    fn of(fact: &Fact) -> Self;
    fn hash(&self) -> u64;
}

impl Row for u32 {
    fn of(fact: &Fact) -> Self {
        fact[0]
    }
    fn hash(&self) -> u64 {
        mixed(0, *self)
    }
}

impl Row for (u32, u32) {
    fn of(fact: &Fact) -> Self {
        (fact[0], fact[1])
    }
    fn hash(&self) -> u64 {
        mixed(mixed(0, self.0), self.1)
    }
}

impl Row for ((u32, u32), u32) {
    fn of(fact: &Fact) -> Self {
        ((fact[0], fact[1]), fact[2])
    }
    fn hash(&self) -> u64 {
        mixed(self.0.hash(), self.1)
    }
}

/// The hash of one more column; `bench/differential.py` does the same.
fn mixed(before: u64, value: u32) -> u64 {
    let product = (before ^ u64::from(value)).wrapping_add(1).wrapping_mul(SPREAD);
    product ^ (product >> 32)
}

trait Feed {
    fn update(&mut self, fact: &Fact, diff: isize);
    fn advance_to(&mut self, time: Time);
}

impl<D: Row> Feed for InputSession<Time, D, isize> {
    fn update(&mut self, fact: &Fact, diff: isize) {
        InputSession::update(self, D::of(fact), diff);
    }
    fn advance_to(&mut self, time: Time) {
        InputSession::advance_to(self, time);
        self.flush();
    }
}

/// The base relations of a program, by the numbers that the changes say.
pub struct Bases {
    names: Vec<String>,
    feeds: Vec<Option<Box<dyn Feed>>>,
}

impl Bases {
    pub fn new(names: Vec<String>) -> Self {
        let feeds = names.iter().map(|_| None).collect();
        Bases { names, feeds }
    }

    pub fn relation<'scope, D: Row>(
        &mut self,
        scope: Scope<'scope, Time>,
        name: &str,
    ) -> Relation<'scope, D> {
        let number = self.names.iter().position(|each| each == name);
        let number = number.unwrap_or_else(|| panic!("no relation `{name}` in the file"));
        let (session, relation) = scope.new_collection();
        self.feeds[number] = Some(Box::new(session));
        relation
    }

    pub fn update(&mut self, number: usize, fact: &Fact, diff: isize) {
        let feed = self.feeds[number].as_mut();
        feed.expect("a relation of the program").update(fact, diff);
    }

    pub fn advance_to(&mut self, time: Time) {
        for feed in self.feeds.iter_mut().flatten() {
            feed.advance_to(time);
        }
    }
}

/// What a view holds.
#[derive(Clone, Copy, Default)]
pub struct Total {
    pub count: isize,
    pub checksum: u64,
}

/// The views of a program, and how far they have come.
#[derive(Default)]
pub struct Views {
    probe: ProbeHandle<Time>,
    totals: Vec<(&'static str, Rc<RefCell<Total>>)>,
}

impl Views {
    pub fn watch<D: Row>(&mut self, name: &'static str, view: Relation<'_, D>) {
        let total = Rc::new(RefCell::new(Total::default()));
        self.totals.push((name, Rc::clone(&total)));
        view.inspect_batch(move |_, updates| {
            let mut total = total.borrow_mut();
            for (row, _, diff) in updates {
                total.count += diff;
                let weighed = row.hash().wrapping_mul(*diff as u64);
                total.checksum = total.checksum.wrapping_add(weighed);
            }
        })
        .probe_with(&self.probe);
    }

    pub fn are_behind(&self, time: Time) -> bool {
        self.probe.less_than(&time)
    }

    pub fn totals(&self) -> impl Iterator<Item = (&'static str, Total)> {
        self.totals.iter().map(|(name, total)| (*name, *total.borrow()))
    }
}
