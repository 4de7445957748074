//! The workloads of the benchmark on DBSP: one worker, everything in memory.
//!
//! The circuit runs in a thread of its own, and so do the threads that merge its batches; a
//! transaction is handed over to it and waited for. There is no other way to run one: traces need
//! a runtime.

mod programs;
mod relations;

use dbsp::mimalloc::MiMalloc;
use dbsp::{DBSPHandle, Runtime};
use peer::{Arguments, Change, Peer, Total};

use relations::{Bases, Views};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const WORKERS: usize = 1;

fn main() {
    let Arguments { build, plan, seconds_max } = Arguments::read(programs::by_name);
    let relations = plan.relations;
    let (circuit, (bases, views)) = Runtime::init_circuit(WORKERS, move |circuit| {
        let (mut bases, mut views) = (Bases::new(relations), Views::default());
        build(circuit, &mut bases, &mut views)?;
        Ok((bases, views))
    })
    .expect("a circuit");
    peer::measure(Run { circuit, bases, views }, &plan.phases, seconds_max);
}

/// A circuit with its inputs and views.
struct Run {
    circuit: DBSPHandle,
    bases: Bases,
    views: Views,
}

impl Peer for Run {
    fn update(&mut self, change: &Change) {
        self.bases.update(change);
    }

    fn commit(&mut self) {
        self.bases.flush();
        self.circuit.transaction().expect("a transaction");
    }

    fn totals(&self) -> Vec<(&'static str, Total)> {
        self.views.totals()
    }
}
