//! How much may be in flight: CUBIC as RFC 9438 describes it, in bytes, so that a connection gets
//! what one of TCP gets on the same link.

use super::{Nanos, SECOND};

/// The window is this many datagrams at first,
const INITIAL: usize = 10;
/// and never less than this.
const LEAST: usize = 2;
/// What is left of the window after a loss.
const BETA: f64 = 0.7;
/// How steep the curve is, in datagrams and seconds.
const C: f64 = 0.4;
/// By how much the Reno region grows in a round trip, so that it has Reno's mean with this beta.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// The congestion window of one connection.
#[derive(Clone, Debug)]
pub struct Congestion {
    /// Bytes of a full datagram.
    datagram: usize,
    /// The largest window, in bytes: what the receiver ever has room for.
    most: usize,
    window: f64,
    threshold: f64,
    /// The window before the last loss, and when the curve started.
    before: f64,
    start: Option<Nanos>,
    /// When the curve reaches the window before, after its start, in seconds.
    inflection: f64,
    /// The window that Reno would have.
    reno: f64,
    /// What was sent before this moment belongs to the last loss.
    recovery: Option<Nanos>,
}

impl Congestion {
    /// For datagrams of up to `datagram` bytes, of which `most` are in flight at most.
    pub fn new(datagram: usize, most: usize) -> Self {
        Self {
            datagram,
            most: datagram * most,
            window: (datagram * INITIAL) as f64,
            threshold: f64::INFINITY,
            before: 0.0,
            start: None,
            inflection: 0.0,
            reno: 0.0,
            recovery: None,
        }
    }

    /// Bytes that may be in flight.
    #[inline]
    pub fn window(&self) -> usize {
        self.window as usize
    }

    /// Whether the window is growing fast because no loss has shown its limit.
    #[inline]
    pub fn is_starting(&self) -> bool {
        self.window < self.threshold
    }

    /// Bytes were acknowledged that were sent at `sent` while the window was what
    /// limited the sender.
    pub fn note_arrival(&mut self, now: Nanos, bytes: usize, sent: Nanos, round_trip: Nanos) {
        if self.recovery.is_some_and(|since| sent <= since) {
            return;
        }
        if self.is_starting() {
            self.window += bytes as f64;
        } else {
            self.follow_curve(now, bytes as f64, round_trip);
        }
        self.window = self.window.min(self.most as f64);
    }

    fn follow_curve(&mut self, now: Nanos, bytes: f64, round_trip: Nanos) {
        let datagram = self.datagram as f64;
        if self.start.is_none() {
            // After a collapse the curve starts where slow start has ended.
            self.before = self.before.max(self.window);
            self.inflection = ((self.before - self.window) / datagram / C).cbrt();
            self.reno = self.window;
        }
        let start = *self.start.get_or_insert(now);
        let seconds = (now.saturating_sub(start) + round_trip) as f64 / SECOND as f64;
        let curve = (C * (seconds - self.inflection).powi(3)).mul_add(datagram, self.before);
        let alpha = if self.reno < self.before { ALPHA } else { 1.0 };
        self.reno += alpha * datagram * bytes / self.window;
        // Per round trip at most one half more.
        let target = curve.clamp(self.window, 1.5 * self.window);
        self.window += (target - self.window) * bytes / self.window;
        self.window = self.window.max(self.reno.min(self.most as f64));
    }

    /// A datagram that was sent at `sent` is lost.
    pub fn note_loss(&mut self, now: Nanos, sent: Nanos) {
        if self.recovery.is_some_and(|since| sent <= since) {
            return;
        }
        self.recovery = Some(now);
        // A window that has not reached the one before makes room for others.
        let gives_way = self.window < self.before;
        self.before = if gives_way { self.window * (1.0 + BETA) / 2.0 } else { self.window };
        self.window = (self.window * BETA).max(self.least());
        self.threshold = self.window;
        self.start = None;
    }

    /// Nothing arrives any more: the window starts again.
    pub fn collapse(&mut self, now: Nanos) {
        self.note_loss(now, now);
        self.window = self.least();
    }

    fn least(&self) -> f64 {
        (self.datagram * LEAST) as f64
    }
}

#[cfg(test)]
#[path = "congestion_tests.rs"]
mod tests;
