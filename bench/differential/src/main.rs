//! The workloads of the benchmark on differential-dataflow: one worker, everything in memory.

mod programs;
mod relations;

use peer::{Arguments, Change, Peer, Total};
use timely::worker::Worker;

use relations::{Bases, Views};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let Arguments { build, plan, seconds_max } = Arguments::read(programs::by_name);
    timely::execute_directly(move |worker| {
        let (bases, views) = worker.dataflow(|scope| {
            let (mut bases, mut views) = (Bases::new(plan.relations), Views::default());
            build(scope, &mut bases, &mut views);
            (bases, views)
        });
        peer::measure(Run { worker, bases, views, time: 0 }, &plan.phases, seconds_max);
    });
}

/// A dataflow that is being fed.
struct Run<'a> {
    worker: &'a mut Worker,
    bases: Bases,
    views: Views,
    time: u32,
}

impl Peer for Run<'_> {
    fn update(&mut self, change: &Change) {
        self.bases.update(change);
    }

    /// Go on in time, and wait until the probe says that every view has caught up.
    fn commit(&mut self) {
        self.time += 1;
        self.bases.advance_to(self.time);
        let (views, time) = (&self.views, self.time);
        self.worker.step_while(|| views.are_behind(time));
    }

    fn totals(&self) -> Vec<(&'static str, Total)> {
        self.views.totals()
    }
}
