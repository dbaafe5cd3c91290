//! Who watches whose process, and to which tasks a death is reported: for a transport between
//! hosts. [`ring`] decides it; the transport carries the notices, and looks at the process of the
//! task that is watched ([`Watched`]) when it is served, which a thread that waits, polls or serves
//! does several times in a second.

mod group_notices;
pub(in crate::transport) mod ring;
#[cfg(test)]
mod simulation;

use crate::base::process::{Handle, Process};
use crate::transport::Task;

/// The process of the task that this one watches.
#[derive(Default)]
pub(in crate::transport) struct Watched(Option<(Task, Handle)>);

/// What a look at the watched process has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::transport) enum Look {
    Runs,
    /// The process runs, and was not watched before.
    Begun,
    Ended,
}

impl Watched {
    /// Looks at the process of `task`, which was `process` when it was last heard of.
    pub(in crate::transport) fn look(&mut self, task: Task, process: Process) -> Look {
        match &mut self.0 {
            Some((watched, handle)) if *watched == task => {
                if handle.has_ended() {
                    self.0 = None;
                    return Look::Ended;
                }
                Look::Runs
            }
            _ => match Handle::open(process) {
                Some(handle) => {
                    self.0 = Some((task, handle));
                    Look::Begun
                }
                None => Look::Ended,
            },
        }
    }

    /// Another process is the task now.
    pub(in crate::transport) fn forget(&mut self, task: Task) {
        self.0.take_if(|(watched, _)| *watched == task);
    }
}
