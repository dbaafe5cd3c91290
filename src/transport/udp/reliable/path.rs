//! The way to the peer, as the sender knows it: round trip, congestion window, pace and length of
//! datagrams, and what is in flight.

use super::congestion::Congestion;
use super::length::Length;
use super::pacer::Pacer;
use super::round_trip::RoundTrip;
use super::{Nanos, OVERHEAD, Parameters};
use std::collections::VecDeque;

/// A datagram is lost when one has arrived that was sent this many later, on a network that
/// keeps the order.
const REORDERED: u64 = 3;

/// The way of one connection.
#[derive(Debug)]
pub struct Path {
    pub round_trip: RoundTrip,
    pub congestion: Congestion,
    pub pacer: Pacer,
    pub length: Length,
    /// What is in flight, by transmission: its number, and the fragment's.
    pub order: VecDeque<(u64, u64)>,
    pub in_flight: usize,
    /// The highest transmission that is known to have arrived.
    pub highest: u64,
    pub reordered: u64,
    /// When something is found lost if nothing arrives before.
    pub loss: Option<Nanos>,
    /// The timer counts from this moment.
    pub since: Nanos,
    /// Consecutive ends of the timer.
    pub ends: u32,
    /// Fragments that may be sent whatever the window says.
    pub probes: u8,
    /// The congestion window, or the pacer, has held something up since the last acknowledgement.
    pub limited: bool,
}

impl Path {
    /// Of a connection with these parameters.
    pub fn new(parameters: &Parameters) -> Self {
        let (most, datagram) = (usize::from(parameters.window), parameters.unit + OVERHEAD);
        Self {
            round_trip: RoundTrip::default(),
            congestion: Congestion::new(datagram, most),
            pacer: Pacer::new(datagram),
            length: Length::new(parameters),
            order: VecDeque::with_capacity(2 * most),
            in_flight: 0,
            highest: 0,
            reordered: REORDERED,
            loss: None,
            since: 0,
            ends: 0,
            probes: 0,
            limited: false,
        }
    }

    /// The peer has replied.
    pub fn prove(&mut self, now: Nanos) {
        (self.ends, self.probes, self.since) = (0, 0, now);
    }

    /// Nothing is to arrive any more.
    pub fn abandon(&mut self) {
        self.order.clear();
        (self.in_flight, self.loss, self.probes) = (0, None, 0);
    }

    /// Whether a datagram of this length exceeds the congestion window.
    #[inline]
    pub fn is_full(&self, len: usize) -> bool {
        self.in_flight != 0 && self.in_flight + len > self.congestion.window()
    }

    /// The pacer follows the congestion window and the round trip.
    pub fn set_pace(&mut self, now: Nanos) {
        let (window, trip) = (self.congestion.window(), self.round_trip.smoothed());
        self.pacer.set(now, window, trip, self.congestion.is_starting());
    }
}
