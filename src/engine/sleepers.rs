//! Who sleeps in a context, where, and after how long.

/// How long a thread polls before it sleeps, in polls.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Polls in a tight loop.
    pub spin: u32,
    /// Polls after which the processor is given away.
    pub yields: u32,
}

impl Patience {
    /// Sleeps at once.
    pub const NONE: Self = Self { spin: 0, yields: 0 };

    /// `crowded`: there are more tasks than processors. `spin` if the program's environment gives it.
    pub fn new(crowded: bool, spin: Option<u32>) -> Self {
        Self {
            spin: spin.unwrap_or(if crowded { 40 } else { 20_000 }),
            yields: if crowded { 60 } else { 100 },
        }
    }
}

/// Who waits in a context. Guarded by the lock.
#[derive(Default)]
pub struct Sleepers {
    /// Threads in [`super::wait::wait_until`].
    pub waiting: u32,
    /// One of them sleeps on the transport's descriptor.
    pub on_descriptor: bool,
    /// How many sleep in the [`crate::base::waiting_room`].
    pub in_room: u32,
    /// The notifier has armed the transport.
    pub notifier_armed: bool,
}
