//! Whether the kernel has ended tasks because their control group, which is that of `poe`, had
//! no memory left.

use openlapi::base::control_group::{self, EndsForMemory};

/// How many such ends are known. What is to be said of one is known before it: `poe` is in the
/// group that has no memory left, too.
pub(super) struct MemoryLimit {
    ends: EndsForMemory,
    known: u64,
    /// In bytes, when the job began.
    limit: Option<u64>,
}

impl MemoryLimit {
    /// Begins to look, where the kernel counts them: ends from now on are of interest.
    pub(super) fn watch() -> Option<Self> {
        let ends = EndsForMemory::open()?;
        Some(Self { known: ends.count()?, ends, limit: control_group::memory() })
    }

    /// The limit that was met, in words, if there was one end more than known.
    pub(super) fn met(&mut self) -> Option<String> {
        if self.ends.count()? <= self.known {
            return None;
        }
        self.known += 1;
        Some(match control_group::memory().or(self.limit) {
            Some(limit) => {
                format!("the memory limit of its control group was met: {limit} bytes (memory.max)")
            }
            None => "the kernel had no memory left for its control group".to_owned(),
        })
    }
}
