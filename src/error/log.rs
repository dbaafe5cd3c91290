//! Where the messages of a session go.

use std::fmt::{Arguments, Debug, Formatter, Result};
use std::sync::Arc;

/// Takes the messages of a session, one line each, without its end. The one that opens the session
/// decides where they go, and what is written before them.
#[derive(Clone)]
pub struct Log(Arc<dyn Fn(Arguments<'_>) + Send + Sync>);

impl Log {
    /// Messages go to this function, in any thread, with or without the lock of the session.
    pub fn new(write: impl Fn(Arguments<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(write))
    }

    /// The messages are not read.
    pub fn none() -> Self {
        Self::new(|_| {})
    }

    /// Writes one message.
    pub fn line(&self, line: Arguments<'_>) {
        (self.0)(line);
    }
}

impl Debug for Log {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("Log(..)")
    }
}
