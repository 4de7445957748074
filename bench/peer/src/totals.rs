//! Number of facts and checksum of a view; `bench/side_by_side.py` computes the same.
//!
//! Both are linear in the multiplicities and independent of the order of the facts, so they are
//! kept by adding up changes, consolidated or not.

const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15; // 2^64 divided by the golden ratio

#[derive(Clone, Copy, Default)]
pub struct Total {
    pub count: i64,
    pub checksum: u64,
}

impl Total {
    /// Add a fact, given by its columns, `weight` times.
    pub fn add(&mut self, columns: impl AsRef<[u32]>, weight: i64) {
        let hash = columns.as_ref().iter().fold(0, |before, value| mixed(before, *value));
        self.count += weight;
        self.checksum = self.checksum.wrapping_add(hash.wrapping_mul(weight as u64));
    }
}

/// The hash of one more column.
fn mixed(before: u64, value: u32) -> u64 {
    let product = (before ^ u64::from(value)).wrapping_add(1).wrapping_mul(SPREAD);
    product ^ (product >> 32)
}
