//! How two tasks that have parted come together again, as those see it who bring it about (`job`) and those who need it
//! (`transport`): each passes the other some bytes and descriptors.

use super::frame::Task;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// What another task offers.
#[derive(Debug)]
pub struct Offer {
    /// Which task.
    pub task: Task,
    /// Its process, as this machine's kernel knows it.
    pub pid: i32,
    /// The bytes it sends.
    pub blob: Vec<u8>,
    /// Copies of the descriptors it sends, closed on exec.
    pub fds: Vec<OwnedFd>,
}

/// How far a task in LAPI_Init has come that looks whether its job runs already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// No lobby is open.
    Nowhere,
    /// It has called at one, and waits to be let back.
    Called,
    /// It is back.
    Back,
}

/// What has happened.
#[derive(Debug)]
pub enum Event {
    /// A task calls here, and waits for [`Reunion::answer`].
    Called(Offer),
    /// A task has answered our call.
    Answered(Offer),
    /// Our call has come to nothing: the task has closed its lobby, has died, or calls here itself.
    HungUp(Task),
}

/// Where a task waits for others, and calls at them. Nothing here blocks.
pub trait Reunion: Send {
    /// Begins to listen, if it does not yet. `false`: the process that had this task's place before still holds the name;
    /// to be tried again.
    fn open(&mut self) -> io::Result<bool>;

    /// Whether a call at `task` waits for its answer.
    fn has_called(&self, task: Task) -> bool;

    /// Goes to the lobby of `task`; `false` when that is not open. [`Self::call`] must follow at once.
    fn reach(&mut self, task: Task) -> io::Result<bool>;

    /// Calls at the lobby that was reached, and offers this. `false` when it has closed.
    fn call(&mut self, task: Task, blob: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<bool>;

    /// Answers the call of `task`, which is thereby over. `false` when it has hung up.
    fn answer(&mut self, task: Task, blob: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<bool>;

    /// Wants nothing of `task` any more.
    fn forget(&mut self, task: Task);

    /// Listens no more, and hangs up everywhere.
    fn shut(&mut self);

    /// What has happened, if anything has.
    fn poll(&mut self) -> io::Result<Option<Event>>;
}
