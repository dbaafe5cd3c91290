//! The descriptors of a thread that listens: what it waits for, and what wakes it.

use crate::base::descriptor::Descriptor;
use rustix::event::epoll;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::Duration;

/// The number of the event descriptor that wakes the thread; all others have other numbers.
pub(super) const WAKE: u64 = 0;

/// A thread whose descriptor the program has closed looks this often whether it is to end.
const BLIND: Duration = Duration::from_millis(10);

pub(super) struct Descriptors {
    /// What the thread waits with: descriptors are added to it, by number.
    pub(super) poll: Arc<Descriptor>,
    wake: Descriptor,
}

impl Descriptors {
    pub(super) fn new() -> rustix::io::Result<Self> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wake = Descriptor::event()?;
        epoll::add(&poll, &wake, epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN)?;
        Ok(Self { poll: Arc::new(Descriptor::new(poll)), wake })
    }

    /// Wakes the thread, unless the program has closed the descriptor.
    pub(super) fn wake(&self) {
        self.wake.signal();
    }

    /// Waits until something has happened, for this long at most. Returns the numbers of the
    /// descriptors that are ready, but for the one that wakes the thread.
    pub(super) fn wait(&self, at_most: Duration) -> Vec<u64> {
        let timeout = at_most.try_into().ok();
        let mut space = [MaybeUninit::<epoll::Event>::uninit(); 64];
        let waited = self.poll.get().map(|poll| epoll::wait(poll, &mut space, timeout.as_ref()));
        let mut ready: Vec<u64> = match waited {
            Some(Ok((ready, _))) => ready.iter().map(|event| event.data.u64()).collect(),
            Some(Err(rustix::io::Errno::INTR)) => Vec::new(),
            Some(Err(_)) | None => {
                // The program has closed the descriptor: no task can connect any more.
                std::thread::sleep(BLIND);
                Vec::new()
            }
        };
        if ready.contains(&WAKE) {
            self.wake.drain();
        }
        ready.retain(|number| *number != WAKE);
        ready
    }
}
