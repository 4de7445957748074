//! Base relations that are fed, and views that are watched: what all programs have in common.
//!
//! Times are transactions, numbered; so they are totally ordered. A view is watched by adding up
//! its changes (`peer::Total`), so what leaves a loop needs no consolidation, which is in its
//! favour.

use std::cell::RefCell;
use std::rc::Rc;

use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::{Data, VecCollection};
use timely::dataflow::{ProbeHandle, Scope};

use peer::{Change, Fact, Total};

pub type Time = u32;
pub type Relation<'scope, D> = VecCollection<'scope, Time, D, isize>;

/// A fact as programs like it: a key, or a key and a value.
pub trait Row: Data {
    fn of(fact: &Fact) -> Self;
    type Columns: AsRef<[u32]>;
    fn columns(&self) -> Self::Columns;
}

impl Row for u32 {
    type Columns = [u32; 1];
    fn of(fact: &Fact) -> Self {
        fact[0]
    }
    fn columns(&self) -> [u32; 1] {
        [*self]
    }
}

impl Row for (u32, u32) {
    type Columns = [u32; 2];
    fn of(fact: &Fact) -> Self {
        (fact[0], fact[1])
    }
    fn columns(&self) -> [u32; 2] {
        [self.0, self.1]
    }
}

impl Row for ((u32, u32), u32) {
    type Columns = [u32; 3];
    fn of(fact: &Fact) -> Self {
        ((fact[0], fact[1]), fact[2])
    }
    fn columns(&self) -> [u32; 3] {
        [self.0.0, self.0.1, self.1]
    }
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

/// The base relations of a program, by the numbers that changes refer to.
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

    pub fn update(&mut self, change: &Change) {
        let feed = self.feeds[change.relation].as_mut();
        feed.expect("a relation of the program").update(&change.fact, change.diff as isize);
    }

    pub fn advance_to(&mut self, time: Time) {
        for feed in self.feeds.iter_mut().flatten() {
            feed.advance_to(time);
        }
    }
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
                total.add(row.columns(), *diff as i64);
            }
        })
        .probe_with(&self.probe);
    }

    pub fn are_behind(&self, time: Time) -> bool {
        self.probe.less_than(&time)
    }

    pub fn totals(&self) -> Vec<(&'static str, Total)> {
        self.totals.iter().map(|(name, total)| (*name, *total.borrow())).collect()
    }
}
