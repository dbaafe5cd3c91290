//! The calls of the manual, one file per family, without C's types: addresses are numbers,
//! errors are values.
//!
//! A call checks what it was given (all of it with ERROR_CHK on; always what would otherwise harm
//! the library itself), makes a request of it, and makes one call into the engine. It has no access
//! to the core of a context. Its errors are those of the man page that it names, where it names no
//! other ones.

pub mod active_message;
pub mod address;
pub mod check;
pub mod dgsp;
pub mod env;
pub mod progress;
pub mod put_get;
pub mod rdma;
pub mod recovery;
pub mod rmw;
pub mod session;
pub mod vector;

pub use crate::base::callers::{HOOK as CALLER_HOOK, Hook as CallerHook};
pub use crate::base::handler_runs::{HOOK as HANDLER_HOOK, Hook as HandlerHook};
pub use crate::base::long_calls::{HOOK as LONG_CALL_HOOK, Hook as LongCallHook};
pub use crate::engine::context::clear::Clear;
pub use crate::engine::context::events::{Events, Failure, NoEvents};
pub use crate::engine::context::lock_sharing;
pub use crate::engine::context::unhindered::ShortCall;
pub use crate::engine::context::{Context, Held, request};
pub use crate::engine::progress::{checkpoint, fence};
pub use crate::job::Link;
pub use crate::memory::bytes::Piece;
pub use crate::proto::content::Content;
pub use crate::proto::outbox::SendDone;

/// The longest user header in bytes: MAX_UHDR_SZ.
pub const MAX_UHDR: usize = 1024;
