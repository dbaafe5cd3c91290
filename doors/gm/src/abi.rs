//! The numbers of gm.h.

use std::ffi::{c_uint, c_void};

/// A result of GM: the numbers of gm_status_t.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs, reason = "the names say what they are; gm(7) has a sentence for each")]
pub enum Status {
    Success = 0,
    Failure = 1,
    InputBufferTooSmall = 2,
    OutputBufferTooSmall = 3,
    TryAgain = 4,
    Busy = 5,
    MemoryFault = 6,
    Interrupted = 7,
    InvalidParameter = 8,
    OutOfMemory = 9,
    InvalidCommand = 10,
    PermissionDenied = 11,
    InternalError = 12,
    Unattached = 13,
    UnsupportedDevice = 14,
    SendTimedOut = 15,
    SendRejected = 16,
    SendTargetPortClosed = 17,
    SendTargetNodeUnreachable = 18,
    SendDropped = 19,
    SendPortClosed = 20,
    NodeIdNotYetSet = 21,
    StillShuttingDown = 22,
    CloneBusy = 23,
    NoSuchDevice = 24,
    Aborted = 25,
    IncompatibleLibAndDriver = 26,
    UntranslatedSystemError = 27,
    AccessDenied = 28,
    TimedOut = 35,
    InvalidPortNumber = 42,
}

impl Status {
    /// The statuses that a peer may send, by their numbers.
    pub fn of_peer(code: u8) -> Self {
        match code {
            6 => Self::MemoryFault,
            8 => Self::InvalidParameter,
            17 => Self::SendTargetPortClosed,
            _ => Self::SendRejected,
        }
    }
}

/// `type` of an event: nothing has come.
pub const NO_RECV: u8 = 0;
/// `type` of an event: an alarm, for gm_unknown.
pub const ALARM: u8 = 2;
/// `type` of an event: a message of gm_send is delivered.
pub const SENT: u8 = 3;
/// `type` of an event: a message of low priority.
pub const RECV: u8 = 11;
/// `type` of an event: a message of high priority.
pub const HIGH_RECV: u8 = 12;
/// `type` of an event of the library's own: a callback that gm_unknown runs.
pub const CALLBACK: u8 = 128;

/// How many ports a node has.
pub const PORTS: usize = 8;
/// How many sends a port has under way at most.
pub const SEND_TOKENS: usize = 64;
/// How many receive buffers a port takes at most.
pub const RECEIVE_TOKENS: usize = 256;
/// The most sizes there are: a message of size 31 has up to 2 GiB.
pub const SIZES: u8 = 32;
/// The longest message of gm_datagram_send, in bytes.
pub const MTU: u32 = 4096;
/// The least size of a message.
pub const LEAST_SIZE: u8 = 3;

/// The longest message of a size, in bytes.
pub fn capacity(size: u8) -> u64 {
    (1_u64 << size.min(63)).saturating_sub(8)
}

/// What a program gives for the end of a send.
pub type Callback = unsafe extern "C" fn(port: *mut c_void, context: *mut c_void, status: c_uint);

/// `union gm_recv_event`, as `recv` and `sent` of gm.h have it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RecvEvent {
    /// `recv.message`, or `sent.message_list`.
    pub message: usize,
    /// `recv.buffer`.
    pub buffer: usize,
    /// `recv.length`, in bytes.
    pub length: u32,
    /// `recv.sender_node_id`.
    pub sender_node: u16,
    /// `recv.tag`.
    pub tag: u8,
    /// `recv.size`.
    pub size: u8,
    /// `recv.sender_port_id`.
    pub sender_port: u8,
    /// `type`.
    pub kind: u8,
    /// Nothing.
    pub reserved: [u8; 6],
}

const _: () = assert!(size_of::<RecvEvent>() == size_of::<usize>() * 2 + 16);

impl RecvEvent {
    /// An event without more than its type.
    pub const fn plain(kind: u8) -> Self {
        let reserved = [0; 6];
        Self {
            message: 0,
            buffer: 0,
            length: 0,
            sender_node: 0,
            tag: 0,
            size: 0,
            sender_port: 0,
            kind,
            reserved,
        }
    }
}
