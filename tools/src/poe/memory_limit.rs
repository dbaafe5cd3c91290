//! Whether the kernel has ended tasks because their control group, which is that of `poe`, had
//! no memory left.

use openlapi::base::control_group;

/// How many such ends are known.
pub(super) struct MemoryLimit {
    known: u64,
}

impl MemoryLimit {
    /// Begins to look: ends from now on are of interest.
    pub(super) fn watch() -> Self {
        Self { known: ends() }
    }

    /// The limit that was met, in words, if there was one end more than known.
    pub(super) fn met(&mut self) -> Option<String> {
        if ends() <= self.known {
            return None;
        }
        self.known += 1;
        Some(match control_group::memory() {
            Some(limit) => {
                format!("the memory limit of its control group was met: {limit} bytes (memory.max)")
            }
            None => "the kernel had no memory left for its control group".to_owned(),
        })
    }
}

/// How many processes of the group the kernel has ended so far.
fn ends() -> u64 {
    control_group::ended_for_memory().unwrap_or_default()
}
