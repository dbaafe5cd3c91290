//! What of its port a connection changes.

use crate::nodes::Nodes;
use crate::protocol::messages::Messages;
use crate::protocol::types::{Event, Output};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::atomic::AtomicU32;

/// What a connection works with.
pub struct Around<'a> {
    pub messages: &'a mut Messages,
    pub events: &'a mut VecDeque<Event>,
    pub outputs: &'a mut VecDeque<Output>,
    pub nodes: &'a Nodes,
    /// The number of the port.
    pub port: u8,
    /// Now, in microseconds.
    pub now: u64,
    /// How long a message waits at most.
    pub patience: u64,
    /// When which connection is to be ticked.
    pub timers: &'a mut BinaryHeap<Reverse<(u64, u32)>>,
    /// The last epoch that a connection of the process has had.
    pub epochs: &'a AtomicU32,
    /// The port is being closed: nothing is sent any more.
    pub closing: bool,
    /// The connections of which something has ended whose memory the network still uses.
    pub lagging: &'a mut VecDeque<u32>,
    /// [`crate::protocol::Settings::counts_all`].
    pub counts_all: bool,
}
