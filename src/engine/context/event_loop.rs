//! The program's own event loop, which sleeps on the transport's descriptor outside of calls. What
//! it does is in [`crate::engine::progress::event_loop`].

use crate::engine::context::Core;
use crate::transport::Want;

/// Who has armed the transport and is in no call: the descriptor wakes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArmedBy {
    /// No thread, or one that sleeps in a call.
    #[default]
    NoThread,
    /// The notifier.
    Notifier,
    /// The program's event loop.
    EventLoop,
}

/// What the program's event loop does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventLoop {
    /// There is none: the program has never armed.
    #[default]
    Absent,
    /// Awake, and nothing has changed since its last look.
    Awake,
    /// Awake, and must look before it sleeps.
    Due,
    /// Asleep. The transport is armed for it, unless a thread that waits in a call looks for
    /// messages meanwhile.
    Asleep,
    /// Called while it slept: the descriptor is readable until it looks.
    Called,
}

impl EventLoop {
    /// Whether it has armed, and has not looked since.
    #[inline]
    pub fn sleeps(self) -> bool {
        matches!(self, Self::Asleep | Self::Called)
    }
}

impl Core {
    /// Arms the transport. Returns `false`, with nothing armed, when a packet or a report through a
    /// door has come. Costs one look for each door that awaits reports.
    pub fn arm(&mut self) -> bool {
        let armed = self.transport.arm();
        // A report that comes after this look finds the transport armed, and wakes.
        let reported = armed && self.awaits_reports() && self.has_report();
        if reported {
            self.disarm();
        }
        armed && !reported
    }

    /// Disarms the transport, which empties the descriptor. A loop that was called by it may not
    /// have run yet, and is called again.
    pub fn disarm(&mut self) {
        self.transport.disarm();
        if self.waiters.event_loop() == EventLoop::Called {
            self.transport.want(Want::Wake);
        }
    }

    /// Something has changed: the loop is woken if it sleeps, and otherwise looks before it does.
    pub fn call_event_loop(&mut self) {
        match self.waiters.event_loop() {
            EventLoop::Awake => self.waiters.set_event_loop(EventLoop::Due),
            EventLoop::Asleep => {
                if self.waiters.armed == ArmedBy::EventLoop {
                    self.waiters.armed = ArmedBy::NoThread;
                    self.transport.disarm();
                }
                self.waiters.set_event_loop(EventLoop::Called);
                self.transport.want(Want::Wake);
            }
            EventLoop::Absent | EventLoop::Due | EventLoop::Called => {}
        }
    }
}
