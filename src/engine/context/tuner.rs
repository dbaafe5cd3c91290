//! Which way is faster for long messages, learnt from those that were sent.
//!
//! A stream of packets keeps both processors busy, a copy across address spaces only one; which of them wins depends on
//! the length, on how near the two processors are to each other at the moment (on virtual machines that changes by
//! itself), and on what else they do. So nothing is assumed: each way is tried for each class of lengths, the better one
//! is used from then on, and the other is tried again now and then.

/// Lengths are distinguished by powers of four, from the tuner's unit on; the last class has no end.
const CLASSES: usize = 7;
/// The number of messages at the beginning that go by turns.
const FIRST: u32 = 12;
/// One message in this many goes the other way, to see whether that has become better.
const TRY_AGAIN: u32 = 64;
/// How far one sample can be off before it is cut: the program may have computed in between.
const OUTLIER: u64 = 4;
/// Fixed-point unit of a cost: ticks for 2^16 bytes.
const UNIT: u32 = 16;

/// The way of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A stream of packets.
    Packets,
    /// A copy across address spaces.
    Attach,
}

#[derive(Clone, Copy, Default)]
struct Class {
    /// Cost of a stream and of a copy; 0 when there is no sample yet.
    costs: [u64; 2],
    messages: u32,
}

/// What was learnt. Contiguous data is distinguished by its length, scattered data by that of its pieces.
pub struct Tuner {
    contiguous: Learnt,
    scattered: Learnt,
}

impl Default for Tuner {
    fn default() -> Self {
        Self { contiguous: Learnt::new(14), scattered: Learnt::new(6) }
    }
}

impl Tuner {
    /// The way for `len` bytes in pieces of `piece` bytes, 0 for contiguous data.
    pub fn choose(&mut self, len: usize, piece: u32) -> Way {
        let (learnt, unit) = self.of(len, piece);
        learnt.choose(unit)
    }

    /// A stream of `len` bytes, in pieces of `piece` bytes, started and finished at these times, in ticks.
    pub fn note_stream(&mut self, len: u64, piece: u32, started: u64, finished: u64) {
        let (learnt, unit) = self.of(len as usize, piece);
        learnt.note_stream(unit, len, started, finished);
    }

    /// `len` bytes of a packet were copied to where they belong in `took` ticks.
    pub fn note_taken(&mut self, len: usize, took: u64) {
        note(&mut self.contiguous.taking, len as u64, took);
    }

    /// A copy of `len` bytes, in pieces of `piece` bytes, has taken `took` ticks.
    pub fn note_copy(&mut self, len: usize, piece: u32, took: u64) {
        let (learnt, unit) = self.of(len, piece);
        learnt.note_copy(unit, len, took);
    }

    /// What was learnt of data like this, and the length by which it is distinguished.
    fn of(&mut self, len: usize, piece: u32) -> (&mut Learnt, usize) {
        match piece {
            0 => (&mut self.contiguous, len),
            _ => (&mut self.scattered, piece as usize),
        }
    }
}

/// What was learnt of one kind of data.
struct Learnt {
    /// The shortest lengths that are distinguished, as a power of two.
    unit: u32,
    classes: [Class; CLASSES],
    /// What it costs to take a packet's bytes out of shared memory, where that was measured: the other half of a stream,
    /// as it would be at the peer.
    taking: u64,
    /// When the last stream was finished: one that waited behind it started then.
    last_stream: u64,
}

impl Learnt {
    /// Distinguishes lengths from 2^`unit` bytes on.
    fn new(unit: u32) -> Self {
        Self { unit, classes: [Class::default(); CLASSES], taking: 0, last_stream: 0 }
    }

    /// The way for a message whose pieces have this length.
    fn choose(&mut self, piece: usize) -> Way {
        let class = &mut self.classes[class(piece, self.unit)];
        let number = class.messages;
        class.messages = class.messages.wrapping_add(1);
        if number < FIRST {
            return if number.is_multiple_of(2) { Way::Attach } else { Way::Packets };
        }
        let [filling, copy] = class.costs;
        // Both halves go on at the same time: the slower one decides. Nothing is known before a stream was tried.
        let stream = if filling == 0 { 0 } else { filling.max(self.taking) };
        let better = if copy == 0 || (stream != 0 && copy < stream) { Way::Attach } else { Way::Packets };
        match (better, number % TRY_AGAIN) {
            (Way::Attach, 0) => Way::Packets,
            (Way::Packets, 0) => Way::Attach,
            _ => better,
        }
    }

    /// A stream of `len` bytes, in pieces of this length, started and finished at these times, in ticks.
    fn note_stream(&mut self, piece: usize, len: u64, started: u64, finished: u64) {
        let took = finished.saturating_sub(started.max(self.last_stream));
        self.last_stream = finished;
        note(&mut self.classes[class(piece, self.unit)].costs[0], len, took);
    }

    /// A copy of `len` bytes, in pieces of this length, has taken this many ticks.
    fn note_copy(&mut self, piece: usize, len: usize, took: u64) {
        note(&mut self.classes[class(piece, self.unit)].costs[1], len as u64, took);
    }
}

fn note(cost: &mut u64, len: u64, took: u64) {
    if len == 0 {
        return;
    }
    let sample = ((u128::from(took) << UNIT) / u128::from(len)).clamp(1, u128::from(u64::MAX >> 4)) as u64;
    *cost = match *cost {
        0 => sample,
        // Down at once, up slowly: what is wanted is the cost when nothing disturbs, and first copies meet pages that
        // were never touched.
        known if sample < known => known.midpoint(sample),
        known => (known * 15 + sample.min(known.saturating_mul(OUTLIER))) / 16,
    }
    .max(1);
}

fn class(len: usize, unit: u32) -> usize {
    (len >> unit).checked_ilog2().map_or(0, |log| log as usize / 2 + 1).min(CLASSES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends messages whose cost is given, and counts those that went each way.
    fn run(tuner: &mut Tuner, messages: u32, stream: u64, copy: u64) -> [u32; 2] {
        let mut counts = [0; 2];
        for _ in 0..messages {
            match tuner.choose(100_000, 0) {
                Way::Packets => {
                    counts[0] += 1;
                    tuner.note_stream(100_000, 0, 0, tuner.contiguous.last_stream + stream);
                }
                Way::Attach => {
                    counts[1] += 1;
                    tuner.note_copy(100_000, 0, copy);
                }
            }
        }
        counts
    }

    #[test]
    fn the_faster_way_is_found_and_kept() {
        let mut tuner = Tuner::default();
        let [streams, copies] = run(&mut tuner, 1000, 9000, 4000);
        assert!(copies > 950 && streams > 5, "{streams} streams, {copies} copies");
        let mut tuner = Tuner::default();
        let [streams, copies] = run(&mut tuner, 1000, 2000, 4000);
        assert!(streams > 950 && copies > 5, "{streams} streams, {copies} copies");
    }

    #[test]
    fn a_change_is_noticed() {
        let mut tuner = Tuner::default();
        run(&mut tuner, 1000, 2000, 4000);
        run(&mut tuner, 1000, 20_000, 4000);
        let [_, copies] = run(&mut tuner, 1000, 20_000, 4000);
        assert!(copies > 950);
    }

    #[test]
    fn one_interruption_changes_nothing() {
        let mut tuner = Tuner::default();
        run(&mut tuner, 100, 2000, 4000);
        tuner.note_stream(100_000, 0, 0, tuner.contiguous.last_stream + 1_000_000_000);
        let [streams, _] = run(&mut tuner, 100, 2000, 4000);
        assert!(streams > 90, "{streams}");
    }

    #[test]
    fn the_slower_half_of_a_stream_decides() {
        let mut tuner = Tuner::default();
        (0..20).for_each(|_| tuner.note_taken(8192, 800));
        let [streams, copies] = run(&mut tuner, 1000, 2000, 4000);
        assert!(copies > 950, "{streams} streams, {copies} copies");
    }

    #[test]
    fn scattered_data_is_classed_by_its_pieces() {
        let mut tuner = Tuner::default();
        run(&mut tuner, 1000, 2000, 4000);
        // Contiguous data goes in packets by now; for pieces of 8 bytes nothing is known but what is noted here.
        for _ in 0..1000 {
            match tuner.choose(100_000, 8) {
                Way::Packets => {
                    let finished = tuner.scattered.last_stream + 9000;
                    tuner.note_stream(100_000, 8, 0, finished);
                }
                Way::Attach => tuner.note_copy(100_000, 8, 4000),
            }
        }
        let copies = (0..100).filter(|_| tuner.choose(100_000, 8) == Way::Attach).count();
        let streams = (0..100).filter(|_| tuner.choose(100_000, 0) == Way::Packets).count();
        assert!(copies > 90 && streams > 90, "{copies} copies, {streams} streams");
    }

    #[test]
    fn lengths_have_classes_of_their_own() {
        let lengths = [1, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 1 << 30];
        let classes: Vec<_> = lengths.iter().map(|&len| class(len, 14)).collect();
        assert_eq!(classes, [0, 1, 2, 3, 4, 5, 6, 6]);
    }
}
