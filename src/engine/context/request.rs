//! What the program asks for: its operations, checked, and its hints.

use crate::abi::compl_hndlr_p;
pub use crate::config::ShmBulk as Preference;
use crate::dgsp::Layout;
use crate::dgsp::description::describe_contiguous;
use crate::memory::bytes::{Piece, is_memory};
use crate::proto::content::{Content, Sink};
use crate::proto::outbox::SendDone;
use crate::transport::Task;
use std::sync::Arc;

/// Where the data of a put or get is, at both tasks.
#[derive(Clone, Debug)]
pub enum Places {
    /// Contiguous at both.
    Contiguous {
        /// The data's address at this task.
        local: usize,
        /// The data's address at the other task.
        remote: u64,
        /// The data's length in bytes.
        len: usize,
    },
    /// A layout at each.
    Layouts(Arc<Layouts>),
}

/// Two layouts of the same length.
#[derive(Debug)]
pub struct Layouts {
    /// At this task.
    pub local: Arc<Layout>,
    /// At the other task, with its addresses.
    pub remote: Arc<Layout>,
    /// The latter as words, see [`crate::dgsp::description`].
    pub description: Vec<u64>,
}

impl Layouts {
    /// Of memory that is contiguous at both tasks.
    pub(crate) fn contiguous(local: usize, remote: u64, len: usize) -> Self {
        let layout = |at| Arc::new(Layout::contiguous(at as *mut u8, len as u64));
        let description = describe_contiguous(remote, len as u64);
        Self { local: layout(local), remote: layout(remote as usize), description }
    }
}

impl Places {
    /// No data.
    pub const EMPTY: Self = Self::Contiguous { local: 0, remote: 0, len: 0 };

    /// Bytes in all.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::Contiguous { len, .. } => *len,
            Self::Layouts(layouts) => layouts.local.len() as usize,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of a piece, on average, where the layout with the smaller ones decides; 0 for
    /// contiguous data.
    pub(crate) fn piece(&self) -> u32 {
        match self {
            Self::Contiguous { .. } => 0,
            Self::Layouts(layouts) => layouts.local.mean_run().min(layouts.remote.mean_run()),
        }
    }

    /// The data at this task, to be sent.
    #[inline]
    pub(crate) fn local_content(&self) -> Content {
        match self {
            Self::Contiguous { local, len, .. } => {
                Content::Piece(Piece { ptr: *local as *const u8, len: *len })
            }
            Self::Layouts(layouts) => Content::Scattered(layouts.local.clone()),
        }
    }

    /// The places at this task, to receive data.
    #[inline]
    pub(crate) fn local_sink(&self) -> Sink {
        match self {
            Self::Contiguous { local, .. } => Sink::Buffer(*local),
            Self::Layouts(layouts) => Sink::Scattered(layouts.local.clone(), 0),
        }
    }

    /// Whether there can be such places at the other task, which is this task as well.
    #[inline]
    pub(crate) fn can_be_here(&self) -> bool {
        match self {
            Self::Contiguous { remote, len, .. } => is_memory(*remote, *len as u64),
            Self::Layouts(_) => true,
        }
    }

    /// The data at the other task, which is this task as well.
    #[inline]
    pub(crate) fn remote_content(&self) -> Content {
        match self {
            Self::Contiguous { remote, len, .. } => {
                Content::Piece(Piece { ptr: *remote as *const u8, len: *len })
            }
            Self::Layouts(layouts) => Content::Scattered(layouts.remote.clone()),
        }
    }

    /// The places at the other task, which is this task as well.
    #[inline]
    pub(crate) fn remote_sink(&self) -> Sink {
        match self {
            Self::Contiguous { remote, .. } => Sink::Buffer(*remote as usize),
            Self::Layouts(layouts) => Sink::Scattered(layouts.remote.clone(), 0),
        }
    }
}

/// A put.
#[derive(Clone, Debug)]
pub struct Put {
    /// The target.
    pub tgt: Task,
    /// The data, and where it goes.
    pub places: Places,
    /// The target's counter, or 0.
    pub tgt_cntr: u64,
    /// The completion counter, or 0.
    pub cmpl_cntr: usize,
    /// What follows when the data may be changed.
    pub done: SendDone,
    /// The program's hint.
    pub hint: Hint,
}

impl Put {
    /// This put with other data.
    pub fn with(self, places: Places) -> Self {
        let done = SendDone { bytes: places.len() as u64, ..self.done };
        Self { places, done, ..self }
    }
}

/// A put as LAPI_Put makes it: of contiguous data, and without a send completion handler.
#[derive(Clone, Copy, Debug)]
pub struct PlainPut {
    /// The target.
    pub tgt: Task,
    /// The address of the data at this task.
    pub local: usize,
    /// Where it goes at the target.
    pub remote: u64,
    /// The memory's length in bytes.
    pub len: usize,
    /// The target's counter, or 0.
    pub tgt_cntr: u64,
    /// The origin counter, or 0.
    pub org_cntr: usize,
    /// The completion counter, or 0.
    pub cmpl_cntr: usize,
}

impl PlainPut {
    /// A put as a plain one, if nothing of it is lost.
    #[inline]
    pub fn of(put: &Put) -> Option<Self> {
        let &Put {
            tgt, places: Places::Contiguous { local, remote, len }, tgt_cntr, cmpl_cntr, done, ..
        } = put
        else {
            return None;
        };
        let plain = Self { tgt, local, remote, len, tgt_cntr, org_cntr: done.org_cntr, cmpl_cntr };
        (done.handler == 0).then_some(plain)
    }
}

impl From<PlainPut> for Put {
    fn from(put: PlainPut) -> Self {
        let PlainPut { tgt, local, remote, len, tgt_cntr, org_cntr, cmpl_cntr } = put;
        Self {
            tgt,
            places: Places::Contiguous { local, remote, len },
            tgt_cntr,
            cmpl_cntr,
            done: SendDone { org_cntr, bytes: len as u64, user: true, ..SendDone::nothing(tgt) },
            hint: Hint::None,
        }
    }
}

/// By what the target of a put knows it.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    /// The message's number.
    pub id: u32,
    /// The target's counter, or 0.
    pub tgt_cntr: u64,
    /// The operation of this task that waits for its completion, or 0.
    pub cookie: u64,
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
    /// Type (upper half) and number of pieces (lower half) of the vector that the data is, when the
    /// header handler is to return a vector.
    pub shape: Option<u64>,
    /// Packets hold whole multiples of this many bytes; 0: any number.
    pub atom: usize,
    /// The target's counter, or 0.
    pub tgt_cntr: u64,
    /// The completion counter, or 0.
    pub cmpl_cntr: usize,
    /// What follows when header and data may be changed.
    pub done: SendDone,
    /// The program's hint.
    pub hint: Hint,
    /// Header and data may be changed when the call returns, however long they are.
    pub copied: bool,
}

/// An active message as LAPI_Amsend makes it: of contiguous data, and without a send
/// completion handler.
#[derive(Clone, Copy, Debug)]
pub struct PlainMessage {
    /// The target.
    pub tgt: Task,
    /// Address or index of the header handler, at the target.
    pub handler: u64,
    /// The user header.
    pub header: Piece,
    /// The data.
    pub data: Piece,
    /// The target's counter, or 0.
    pub tgt_cntr: u64,
    /// The origin counter, or 0.
    pub org_cntr: usize,
    /// The completion counter, or 0.
    pub cmpl_cntr: usize,
}

impl PlainMessage {
    /// A message as a plain one, if nothing of it is lost.
    #[inline]
    pub fn of(message: &Message) -> Option<Self> {
        let &Message { tgt, handler, header, data: Content::Piece(data), tgt_cntr, cmpl_cntr, done, .. } =
            message
        else {
            return None;
        };
        let plain = Self { tgt, handler, header, data, tgt_cntr, org_cntr: done.org_cntr, cmpl_cntr };
        (message.shape.is_none() && message.atom == 0 && done.handler == 0).then_some(plain)
    }
}

impl From<PlainMessage> for Message {
    fn from(message: PlainMessage) -> Self {
        let PlainMessage { tgt, handler, header, data, tgt_cntr, org_cntr, cmpl_cntr } = message;
        Self {
            tgt,
            handler,
            header,
            data: Content::Piece(data),
            shape: None,
            atom: 0,
            tgt_cntr,
            cmpl_cntr,
            done: SendDone { org_cntr, bytes: data.len as u64, user: true, ..SendDone::nothing(tgt) },
            hint: Hint::None,
            copied: false,
        }
    }
}

/// A get.
#[derive(Clone, Debug)]
pub struct Get {
    /// The target.
    pub tgt: Task,
    /// The data at the target, and where it goes.
    pub places: Places,
    /// The target's counter, or 0.
    pub tgt_cntr: u64,
    /// The origin counter, or 0.
    pub org_cntr: usize,
    /// The completion handler.
    pub handler: compl_hndlr_p,
    /// The completion handler's parameter.
    pub parameter: usize,
    /// The program's hint.
    pub hint: Hint,
}

/// A get as LAPI_Get makes it: of contiguous data, without a completion handler and a hint.
#[derive(Clone, Copy, Debug)]
pub struct PlainGet {
    /// The target.
    pub tgt: Task,
    /// The address of the data at the target.
    pub remote: u64,
    /// Where it goes at this task.
    pub local: usize,
    /// The memory's length in bytes.
    pub len: usize,
    /// The target's counter, or 0.
    pub tgt_cntr: u64,
    /// The origin counter, or 0.
    pub org_cntr: usize,
}

impl PlainGet {
    /// A get as a plain one, if nothing of it is lost.
    #[inline]
    pub fn of(get: &Get) -> Option<Self> {
        let &Get { tgt, places: Places::Contiguous { local, remote, len }, tgt_cntr, org_cntr, .. } = get
        else {
            return None;
        };
        let is_plain = get.handler.is_none() && get.hint == Hint::None;
        is_plain.then_some(Self { tgt, remote, local, len, tgt_cntr, org_cntr })
    }
}

impl From<PlainGet> for Get {
    fn from(get: PlainGet) -> Self {
        let PlainGet { tgt, remote, local, len, tgt_cntr, org_cntr } = get;
        Self {
            tgt,
            places: Places::Contiguous { local, remote, len },
            tgt_cntr,
            org_cntr,
            handler: None,
            parameter: 0,
            hint: Hint::None,
        }
    }
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

/// The program's hint for one message (LAPI_USE_BULK_XFER, LAPI_NOT_USE_BULK_XFER,
/// LAPI_NOT_STRIPE). Packets are never striped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hint {
    /// Nothing.
    #[default]
    None,
    /// One copy, if that is possible.
    Bulk,
    /// Packets.
    Packets,
    /// What goes by bulk transfer goes over one rail.
    OneRail,
    /// Bulk transfer over one rail, and one copy, if that is possible.
    BulkOneRail,
}

impl Hint {
    /// Whether bulk transfer goes over one rail.
    pub fn is_one_rail(self) -> bool {
        matches!(self, Self::OneRail | Self::BulkOneRail)
    }

    /// What the program wants apart from that.
    pub fn path(self) -> Self {
        match self {
            Self::OneRail => Self::None,
            Self::BulkOneRail => Self::Bulk,
            other => other,
        }
    }
}

/// What the choice how a long message goes depends on.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Whether long messages go by bulk transfer to peers that are reached by keys:
    /// MP_USE_BULK_XFER.
    pub by_key: bool,
    /// The least number of bytes of such a message: MP_BULK_MIN_MSG_SIZE.
    pub minimum: usize,
    /// How many parts of one message are registered at a time, at most.
    pub batch: usize,
    /// What the program's environment wants. A copy is made where that is possible.
    pub preference: Preference,
    /// There are more tasks than processors: the two sides of a stream would wait for
    /// each other's turn.
    pub crowded: bool,
}
