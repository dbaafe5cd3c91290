//! What a port has under way: a table of fixed length, whose places stand in the queues of the
//! connections.

use super::types::{Request, Target, Then};
use crate::abi::{SEND_TOKENS, Status};
use crate::wire::Kind;
use std::sync::atomic::{AtomicI32, Ordering};

/// A message under way.
#[derive(Debug)]
pub struct Message {
    /// What the program has asked for.
    pub request: Request,
    /// Whether the target has said that it is delivered.
    pub delivered: bool,
    /// How it ends otherwise.
    pub status: Option<Status>,
    /// Since when it has waited at the target; `None`: it does not.
    pub waits_since: Option<u64>,
    /// The data of this get is arriving.
    pub arriving: bool,
    /// How often it was given to the network.
    posted: i32,
    /// Raised each time that the network does not need the memory any more.
    free: AtomicI32,
    /// Tells the messages apart that have used this place.
    pub life: u32,
}

impl Message {
    /// Whether it is a get of that many bytes whose data has not come.
    pub fn awaits(&self, length: u64) -> bool {
        let is_get = self.request.kind == Kind::Get && self.request.length == length;
        is_get && !self.delivered && !self.arriving && self.status.is_none()
    }
}

/// All messages of a port.
#[derive(Debug)]
pub struct Messages {
    places: Box<[Message]>,
    free: Vec<u32>,
}

impl Messages {
    /// None.
    pub fn new() -> Self {
        let target = Target { node: 0, port: 0, priority: 0 };
        let then = Then { callback: 0, context: 0 };
        let (kind, size) = (Kind::Send, 0);
        let request = Request { kind, target, size, address: 0, length: 0, remote: 0, then };
        let place = |_| Message {
            request,
            delivered: false,
            status: None,
            waits_since: None,
            arriving: false,
            posted: 0,
            free: AtomicI32::new(0),
            life: 0,
        };
        let count = SEND_TOKENS as u32;
        Self { places: (0..count).map(place).collect(), free: (0..count).rev().collect() }
    }

    /// A place for a message; `None`: the port has no more.
    pub fn add(&mut self, request: Request) -> Option<u32> {
        let at = self.free.pop()?;
        let place = &mut self.places[at as usize];
        (place.request, place.delivered, place.status, place.waits_since) = (request, false, None, None);
        (place.posted, place.free) = (0, AtomicI32::new(0));
        place.arriving = false;
        place.life = place.life.wrapping_add(1);
        Some(at)
    }

    /// The message has ended.
    pub fn remove(&mut self, at: u32) {
        self.free.push(at);
    }

    /// A message.
    pub fn at(&mut self, at: u32) -> &mut Message {
        &mut self.places[at as usize]
    }

    /// The message at this place, if it is in this life; for numbers that a peer has sent.
    pub fn known(&mut self, at: u32, life: u32) -> Option<&mut Message> {
        let is_free = self.free.contains(&at);
        self.places.get_mut(at as usize).filter(|place| !is_free && place.life == life)
    }

    /// The message is given to the network once more. Returns the address of the counter that says
    /// when its memory is free.
    pub fn post(&mut self, at: u32) -> usize {
        let place = &mut self.places[at as usize];
        place.posted += 1;
        place.free.as_ptr().expose_provenance()
    }

    /// Whether the network uses the message's memory.
    pub fn is_in_use(&self, at: u32) -> bool {
        let place = &self.places[at as usize];
        place.arriving || place.free.load(Ordering::Acquire) < place.posted
    }

    /// The task is gone from which data for this message was arriving.
    pub fn arrives_no_more(&mut self, at: u32) {
        self.places[at as usize].arriving = false;
    }

    /// The network does not use the message's memory any more, and counts no more.
    pub fn release(&mut self, at: u32) {
        let place = &mut self.places[at as usize];
        (place.posted, place.free) = (0, AtomicI32::new(0));
    }

    /// Whether the network uses the memory of any message.
    pub fn are_in_use(&self) -> bool {
        (0..self.places.len() as u32).any(|at| !self.free.contains(&at) && self.is_in_use(at))
    }
}
