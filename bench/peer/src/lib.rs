//! Shared by the peers: the command line, the file of transactions, timing and checksums.
//!
//!     PEER PROGRAM FILE SECONDS_MAX
//!
//! The file has the facts to load and the transactions (see `transactions.rs`); it is read before
//! any time counts. A transaction is timed from its first change until every view reflects it. The
//! output is one line for each:
//!
//!     time insert 3600.25                   kind, and microseconds
//!     view path 460234 1234567890123        name, number of facts, and checksum, finally
//!
//! Each phase has `SECONDS_MAX`. When they are used up, the rest of it is one transaction that is
//! not timed, so that the next phase starts from the facts it expects.

mod totals;
mod transactions;

use std::process::exit;
use std::time::{Duration, Instant};

pub use totals::Total;
pub use transactions::{Change, Fact, Plan, Transaction};

/// A system that keeps the views of a program up to date.
pub trait Peer {
    /// Add a change to the transaction.
    fn update(&mut self, change: &Change);
    /// Apply the transaction, and wait for all views.
    fn commit(&mut self);
    fn totals(&self) -> Vec<(&'static str, Total)>;
}

/// The command line, read and understood: `B` is how a peer builds a program.
pub struct Arguments<B> {
    pub build: B,
    pub plan: Plan,
    pub seconds_max: f64,
}

impl<B> Arguments<B> {
    /// Read the command line and the file, or end the process with a message.
    pub fn read(program_by_name: impl Fn(&str) -> Option<B>) -> Self {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let [program, file, seconds_max] = words.as_slice() else {
            fail("usage: PEER PROGRAM FILE SECONDS_MAX");
        };
        let Some(build) = program_by_name(program) else {
            fail(&format!("no program `{program}`"));
        };
        let Ok(seconds_max) = seconds_max.parse() else {
            fail("SECONDS_MAX is a number");
        };
        let plan = Plan::read(file).unwrap_or_else(|error| fail(&format!("{file}: {error}")));
        Arguments { build, plan, seconds_max }
    }
}

fn fail(message: &str) -> ! {
    eprintln!("{message}");
    exit(2);
}

/// Apply all phases, and print times and totals.
pub fn measure(mut peer: impl Peer, phases: &[Vec<Transaction>], seconds_max: f64) {
    for phase in phases {
        measure_phase(&mut peer, phase, Duration::from_secs_f64(seconds_max));
    }
    for (name, total) in peer.totals() {
        println!("view {name} {} {}", total.count, total.checksum);
    }
}

/// Apply transactions one by one as long as there is time, then the others as one.
fn measure_phase(peer: &mut impl Peer, transactions: &[Transaction], seconds_max: Duration) {
    let mut used = Duration::ZERO;
    let mut left = transactions.iter();
    while used <= seconds_max {
        let Some(next) = left.next() else { return };
        let taken = apply(peer, std::slice::from_ref(next));
        println!("time {} {:.3}", next.kind, taken.as_secs_f64() * 1e6);
        used += taken;
    }
    apply(peer, left.as_slice());
}

fn apply(peer: &mut impl Peer, transactions: &[Transaction]) -> Duration {
    let started = Instant::now();
    for change in transactions.iter().flat_map(|each| &each.changes) {
        peer.update(change);
    }
    peer.commit();
    started.elapsed()
}
