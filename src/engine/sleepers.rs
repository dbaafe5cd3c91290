//! Who sleeps in a context, where, and after how long.

/// How long a thread polls before it sleeps, in polls.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Polls in a tight loop.
    pub spin: u32,
    /// Polls after which the processor is given away.
    pub yields: u32,
    /// How many threads of this task may poll at once: with more of them they take the processors from each other, and
    /// from those who make what they wait for. Then all have little patience.
    pub pollers: u32,
}

/// Polls in a tight loop where there are more threads than processors.
const LITTLE: u32 = 40;

impl Patience {
    /// Sleeps at once.
    pub const NONE: Self = Self { spin: 0, yields: 0, pollers: 1 };

    /// Of a task in a job of `tasks` on so many processors. `spin` if the program's environment gives it.
    pub fn new(tasks: u32, processors: u32, spin: Option<u32>) -> Self {
        let crowded = tasks > processors;
        Self {
            spin: spin.unwrap_or(if crowded { LITTLE } else { 20_000 }),
            yields: if crowded { 60 } else { 100 },
            pollers: if spin.is_some() { u32::MAX } else { (processors / tasks.max(1)).max(1) },
        }
    }

    /// How often a thread polls in a tight loop when so many wait.
    #[inline]
    pub fn spins(&self, waiting: u32) -> u32 {
        if waiting <= self.pollers { self.spin } else { self.spin.min(LITTLE) }
    }
}

/// Who waits in a context. Guarded by the lock.
#[derive(Default)]
pub struct Sleepers {
    /// Threads in [`super::wait::wait_until`].
    pub waiting: u32,
    /// Threads in LAPI_Msgpoll.
    pub polling: u32,
    /// One of them sleeps on the transport's descriptor.
    pub on_descriptor: bool,
    /// How many sleep in the [`crate::base::waiting_room`].
    pub in_room: u32,
    /// The notifier has armed the transport.
    pub notifier_armed: bool,
}
