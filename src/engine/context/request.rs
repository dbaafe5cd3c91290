//! What the program asks for: its operations, checked, and its wishes.

use crate::abi::compl_hndlr_p;
use crate::base::bytes::Piece;
use crate::dgsp::Layout;
use crate::proto::content::Content;
use crate::proto::outbox::SendDone;
use crate::transport::Task;
use std::sync::Arc;

/// A put.
#[derive(Clone, Copy, Debug)]
pub struct Put {
    /// The target.
    pub tgt: Task,
    /// Where the data goes, at the target.
    pub addr: u64,
    /// The data.
    pub data: Piece,
    /// The target's counter, or 0.
    pub tgt_cntr: u64,
    /// The completion counter, or 0.
    pub cmpl_cntr: usize,
    /// What follows when the data may be changed.
    pub done: SendDone,
    /// What the program wishes.
    pub hint: Hint,
}

/// An active message.
#[derive(Clone, Debug)]
pub struct Message {
    /// The target.
    pub tgt: Task,
    /// Address or index of the header handler, at the target.
    pub handler: u64,
    /// The user header, at most MAX_UHDR_SZ bytes.
    pub header: Piece,
    /// The data.
    pub data: Content,
    /// Type (upper half) and number of pieces (lower half) of the vector that the data is, when the header handler is to
    /// answer with a vector.
    pub shape: Option<u64>,
    /// Packets hold whole multiples of so many bytes; 0: any number.
    pub atom: usize,
    /// The target's counter, or 0.
    pub tgt_cntr: u64,
    /// The completion counter, or 0.
    pub cmpl_cntr: usize,
    /// What follows when header and data may be changed.
    pub done: SendDone,
    /// What the program wishes.
    pub hint: Hint,
    /// Header and data may be changed when the call returns, however long they are.
    pub copied: bool,
}

/// A get.
#[derive(Clone, Copy, Debug)]
pub struct Get {
    /// The target.
    pub tgt: Task,
    /// Where the data is, at the target.
    pub addr: u64,
    /// Where it goes.
    pub buffer: usize,
    /// Its length in bytes.
    pub len: u64,
    /// The target's counter, or 0.
    pub tgt_cntr: u64,
    /// The origin counter, or 0.
    pub org_cntr: usize,
    /// The completion handler.
    pub handler: compl_hndlr_p,
    /// Its parameter.
    pub parameter: usize,
    /// What the program wishes.
    pub hint: Hint,
}

/// A read-modify-write.
#[derive(Clone, Copy, Debug)]
pub struct Rmw {
    /// The target.
    pub tgt: Task,
    /// The operation, checked.
    pub op: u16,
    /// 64 bits, not 32.
    pub wide: bool,
    /// The variable, at the target.
    pub var: u64,
    /// The value, or what to compare with.
    pub value: u64,
    /// What to swap in.
    pub swap: u64,
    /// Where the previous value goes, or 0.
    pub previous: usize,
    /// What follows when it is there.
    pub done: SendDone,
}

/// A put or get between two vectors.
pub struct Vectored {
    /// The target.
    pub tgt: Task,
    /// The vector here.
    pub origin: Arc<Layout>,
    /// The vector there: addresses of the target.
    pub target: Arc<Layout>,
    /// The same as words, see [`crate::dgsp::description`].
    pub description: Vec<u64>,
    /// The target's counter, or 0.
    pub tgt_cntr: u64,
    /// What the program wishes.
    pub hint: Hint,
}

impl Vectored {
    /// Bytes in all.
    pub(crate) fn len(&self) -> usize {
        self.origin.len() as usize
    }

    /// Bytes of a piece, on average, where the vector with the smaller ones decides.
    pub(crate) fn piece(&self) -> usize {
        let runs = self.origin.run_count().max(self.target.run_count()).max(1);
        (self.len() as u64 / runs) as usize
    }
}

/// What follows a get between two vectors.
#[derive(Clone, Copy)]
pub struct GetDone {
    /// The origin counter, or 0.
    pub org_cntr: usize,
    /// The completion handler.
    pub handler: compl_hndlr_p,
    /// Its parameter.
    pub parameter: usize,
}

/// What the program wishes for one message (LAPI_USE_BULK_XFER, LAPI_NOT_USE_BULK_XFER).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hint {
    /// Nothing.
    #[default]
    None,
    /// One copy, if that is possible.
    Bulk,
    /// Packets.
    Packets,
}

/// How long messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    /// As seems best for each.
    Auto,
    /// Always in packets.
    Packets,
    /// Always in one copy, where that is possible.
    Attach,
}

/// What the choice depends on.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// What the program's environment wants.
    pub preference: Preference,
    /// There are more tasks than processors: the two sides of a stream would wait for each other's turn.
    pub crowded: bool,
}
