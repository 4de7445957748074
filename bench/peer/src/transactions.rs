//! Facts and transactions as text, read into memory.
//!
//!     relations edge node        their names; changes say their numbers, from 0
//!     phase
//!     load                       a transaction, by its kind; and what it changes:
//!     + 0 17 4
//!     phase
//!     insert
//!     + 0 5 17
//!
//! Values are whole numbers below 2^32, at most three in a fact.

use std::fs::File;
use std::io::{BufRead, BufReader, Error, ErrorKind, Result};

pub type Fact = [u32; 3];

/// One fact that is inserted (+1) or deleted (-1).
pub struct Change {
    pub relation: usize,
    pub fact: Fact,
    pub diff: i64,
}

/// What is changed at once, and what kind of change it is.
pub struct Transaction {
    pub kind: String,
    pub changes: Vec<Change>,
}

/// The names of the relations, and the transactions of each phase.
pub struct Plan {
    pub relations: Vec<String>,
    pub phases: Vec<Vec<Transaction>>,
}

impl Plan {
    pub fn read(path: &str) -> Result<Plan> {
        let mut plan = Plan { relations: Vec::new(), phases: Vec::new() };
        for line in BufReader::with_capacity(1 << 20, File::open(path)?).lines() {
            let line = line?;
            plan.add(&line).ok_or_else(|| Error::new(ErrorKind::InvalidData, line))?;
        }
        Ok(plan)
    }

    /// Parse one more line; `None` if it makes no sense.
    fn add(&mut self, line: &str) -> Option<()> {
        let mut words = line.split(' ');
        match words.next()? {
            "relations" => self.relations = words.map(str::to_owned).collect(),
            "phase" => self.phases.push(Vec::new()),
            sign @ ("+" | "-") => {
                let relation = words.next()?.parse().ok()?;
                let mut fact = Fact::default();
                for (number, word) in words.enumerate() {
                    *fact.get_mut(number)? = word.parse().ok()?;
                }
                let diff = if sign == "+" { 1 } else { -1 };
                let changes = &mut self.phases.last_mut()?.last_mut()?.changes;
                changes.push(Change { relation, fact, diff });
            }
            kind => {
                let transaction = Transaction { kind: kind.to_owned(), changes: Vec::new() };
                self.phases.last_mut()?.push(transaction);
            }
        }
        Some(())
    }
}
