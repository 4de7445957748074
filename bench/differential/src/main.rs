//! The workloads of the benchmark on differential-dataflow: one worker, everything in memory.
//!
//!     differential PROGRAM FILE SECONDS_MAX
//!
//! The file has the facts to load and the transactions (see `transactions.rs`); it is read before
//! any time counts. A transaction is timed from the first change that is fed until the probe says
//! that every view has caught up; this is written, a line each:
//!
//!     time insert 3600.25                   kind, and microseconds
//!     view path 460234 1234567890123        name, number of facts, and checksum in the end
//!
//! Each phase has some seconds. When they are used up, what is left of it is fed at once and not
//! timed, so that the next phase finds the facts it expects.

mod programs;
mod relations;
mod transactions;

use std::process::exit;
use std::time::{Duration, Instant};

use timely::worker::Worker;

use relations::{Bases, Views};
use transactions::{Transaction, read_plan};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [program, file, seconds_max] = given.as_slice() else {
        fail("usage: differential PROGRAM FILE SECONDS_MAX");
    };
    let Some(build) = programs::by_name(program) else {
        fail(&format!("no program `{program}`"));
    };
    let Ok(seconds_max) = seconds_max.parse() else {
        fail("SECONDS_MAX is a number");
    };
    let plan = read_plan(file).unwrap_or_else(|error| fail(&format!("{file}: {error}")));
    timely::execute_directly(move |worker| {
        let (bases, views) = worker.dataflow(|scope| {
            let (mut bases, mut views) = (Bases::new(plan.relations), Views::default());
            build(scope, &mut bases, &mut views);
            (bases, views)
        });
        Run { worker, bases, views, time: 0 }
            .all(&plan.phases, Duration::from_secs_f64(seconds_max));
    });
}

fn fail(message: &str) -> ! {
    eprintln!("{message}");
    exit(2);
}

/// A dataflow that is being fed.
struct Run<'a> {
    worker: &'a mut Worker,
    bases: Bases,
    views: Views,
    time: u32,
}

impl Run<'_> {
    fn all(mut self, phases: &[Vec<Transaction>], seconds_max: Duration) {
        for phase in phases {
            self.phase(phase, seconds_max);
        }
        for (name, total) in self.views.totals() {
            println!("view {name} {} {}", total.count, total.checksum);
        }
    }

    /// Transactions one by one as long as there is time, then the others at once.
    fn phase(&mut self, transactions: &[Transaction], seconds_max: Duration) {
        let mut used = Duration::ZERO;
        let mut left = transactions.iter();
        while used <= seconds_max {
            let Some(next) = left.next() else { return };
            let taken = self.commit(std::slice::from_ref(next));
            println!("time {} {:.3}", next.kind, taken.as_secs_f64() * 1e6);
            used += taken;
        }
        self.commit(left.as_slice());
    }

    /// Feed the changes, go on in time, and wait for all views.
    fn commit(&mut self, transactions: &[Transaction]) -> Duration {
        let started = Instant::now();
        for change in transactions.iter().flat_map(|each| &each.changes) {
            self.bases.update(change.relation, &change.fact, change.diff);
        }
        self.time += 1;
        self.bases.advance_to(self.time);
        let (views, time) = (&self.views, self.time);
        self.worker.step_while(|| views.are_behind(time));
        started.elapsed()
    }
}
