//! Sleeping until something happens.

use std::os::fd::BorrowedFd;

/// Lets one thread of a task sleep until something happens.
pub trait Wakeup {
    /// Gets ready to sleep: `true` when the caller may now sleep on [`Self::event_fd`], `false`
    /// when something has arrived meanwhile (then nothing is armed). Reports through doors do not
    /// count: the caller knows which doors await some, and looks at these once it is armed.
    fn arm(&mut self) -> bool;

    /// Ends what [`Self::arm`] began, and empties the event descriptor.
    fn disarm(&mut self);

    /// The descriptor that becomes readable: the same one as long as the transport lives.
    fn event_fd(&self) -> BorrowedFd<'_>;
}
