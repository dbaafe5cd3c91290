//! Where a connection's port is, and what the connection does.

/// Which of the node's tasks has the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// No task was asked.
    Unknown,
    /// The tasks of the node were asked, and this many have not answered.
    Asked {
        /// How many.
        left: u32,
        /// One of the others had it, and has closed it.
        closed: bool,
    },
    /// This task.
    At(u32),
}

/// What the connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Sends what there is.
    Sends,
    /// The message that comes next was not taken.
    Waits {
        /// For lack of a port, not of a buffer.
        not_open: bool,
    },
    /// A message has failed, and those before it have not yet ended.
    Fails,
    /// A message has failed, and the program has not yet said what follows.
    Stands,
}
