//! Base relations that are fed, and views that are watched: what all programs have in common.
//!
//! A view is watched inside the circuit by adding up its changes (`peer::Total`).

use std::sync::{Arc, Mutex};

use dbsp::dynamic::DowncastTrait;
use dbsp::trace::{BatchReader, Cursor};
use dbsp::typed_batch::IndexedZSetReader;
use dbsp::utils::Tup2;
use dbsp::{DBData, IndexedZSetHandle, OrdIndexedZSet, RootCircuit, Stream, ZWeight};
use peer::{Change, Fact, Total};

pub type Relation<K, V> = Stream<RootCircuit, OrdIndexedZSet<K, V>>;

trait Feed: Send {
    fn update(&mut self, fact: &Fact, weight: ZWeight);
    fn flush(&mut self);
}

/// An input of the circuit, and the changes it gets with the next transaction.
struct Input<K, V> {
    handle: IndexedZSetHandle<K, V>,
    split: fn(&Fact) -> (K, V),
    waiting: Vec<Tup2<K, Tup2<V, ZWeight>>>,
}

impl<K: DBData, V: DBData> Feed for Input<K, V> {
    fn update(&mut self, fact: &Fact, weight: ZWeight) {
        let (key, value) = (self.split)(fact);
        self.waiting.push(Tup2(key, Tup2(value, weight)));
    }

    fn flush(&mut self) {
        if !self.waiting.is_empty() {
            self.handle.append(&mut self.waiting);
        }
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

    /// A base relation, its facts split into key and value.
    pub fn relation<K: DBData, V: DBData>(
        &mut self,
        circuit: &RootCircuit,
        name: &str,
        split: fn(&Fact) -> (K, V),
    ) -> Relation<K, V> {
        let number = self.names.iter().position(|each| each == name);
        let number = number.unwrap_or_else(|| panic!("no relation `{name}` in the file"));
        let (relation, handle) = circuit.add_input_indexed_zset();
        self.feeds[number] = Some(Box::new(Input { handle, split, waiting: Vec::new() }));
        relation
    }

    pub fn update(&mut self, change: &Change) {
        let feed = self.feeds[change.relation].as_mut();
        feed.expect("a relation of the program").update(&change.fact, change.diff);
    }

    pub fn flush(&mut self) {
        for feed in self.feeds.iter_mut().flatten() {
            feed.flush();
        }
    }
}

/// The views of a program.
#[derive(Default)]
pub struct Views {
    totals: Vec<(&'static str, Arc<Mutex<Total>>)>,
}

impl Views {
    /// Add up a view, given how its facts are put together from key and value.
    pub fn watch<B: IndexedZSetReader + Clone, const N: usize>(
        &mut self,
        name: &'static str,
        view: &Stream<RootCircuit, B>,
        columns: fn(&B::Key, &B::Val) -> [u32; N],
    ) {
        let total = Arc::new(Mutex::new(Total::default()));
        self.totals.push((name, Arc::clone(&total)));
        view.inspect(move |changes| {
            let mut total = total.lock().expect("no other thread has panicked");
            let mut cursor = changes.inner().cursor();
            while cursor.key_valid() {
                while cursor.val_valid() {
                    let weight = **cursor.weight();
                    // SAFETY: the batch was built with these types of keys and values.
                    let (key, value) =
                        unsafe { (cursor.key().downcast(), cursor.val().downcast()) };
                    total.add(columns(key, value), weight);
                    cursor.step_val();
                }
                cursor.step_key();
            }
        });
    }

    pub fn totals(&self) -> Vec<(&'static str, Total)> {
        let copied = |total: &Mutex<Total>| *total.lock().expect("no other thread has panicked");
        self.totals.iter().map(|(name, total)| (*name, copied(total))).collect()
    }
}
