//! What becomes of the packets of one sender, step by step.

use super::*;
use crate::base::rng::Rng;

impl<T> Inbox<T> {
    /// As if `delivered` messages of `src` had been delivered.
    pub(crate) fn begin_at(&mut self, src: Task, delivered: u32) {
        self.source(src).delivered = delivered;
    }
}

fn assembly(total: u64) -> Assembly<&'static str> {
    Assembly { sink: Sink::Buffer(1000), total, arrived: 0, then: "then" }
}

#[test]
fn data_belongs_to_its_message_whatever_comes_first() {
    let mut inbox = Inbox::new(2);
    assert_eq!(inbox.place(1, 5, 0, 10).err(), Some(Misplaced::Unknown));
    inbox.begin(1, 5, assembly(30));
    inbox.begin(1, 6, Assembly { sink: Sink::Nowhere, ..assembly(10) });
    let place = |inbox: &mut Inbox<_>, id, offset| {
        let placed = inbox.place(1, id, offset, 10);
        placed.map(|(to, complete)| (to.as_buffer(), complete.map(|assembly| assembly.then)))
    };
    assert_eq!(place(&mut inbox, 5, 20), Ok((Some(1000), None)));
    assert_eq!(place(&mut inbox, 5, 0), Ok((Some(1000), None)));
    assert_eq!(
        place(&mut inbox, 6, 0),
        Ok((None, Some("then"))),
        "the data is refused, but its arrival is reported"
    );
    assert_eq!(place(&mut inbox, 5, 10), Ok((Some(1000), Some("then"))));
    assert_eq!(place(&mut inbox, 5, 10), Err(Misplaced::Unknown), "it is complete");
}

#[test]
fn data_outside_of_its_message_is_refused() {
    let mut inbox = Inbox::new(2);
    inbox.begin(1, 5, assembly(30));
    for (offset, len) in [(0, 31), (30, 1), (u64::MAX, 1), (u64::MAX - 3, 10)] {
        assert_eq!(inbox.place(1, 5, offset, len).err(), Some(Misplaced::Outside), "{len} bytes at {offset}");
    }
    assert!(inbox.place(0, 5, 0, 1).is_err(), "the message of another task");
}

#[test]
fn what_comes_before_its_message_is_kept_for_it() {
    let mut inbox: Inbox<()> = Inbox::new(2);
    let bytes: Vec<u8> = (0..20).collect();
    for (id, offset, len) in [(7, 8, 13), (8, 0, 4), (7, 21, 7)] {
        // SAFETY: the array has that length.
        unsafe { inbox.keep(1, id, offset, Piece { ptr: bytes.as_ptr(), len }) };
    }
    assert!(inbox.early(0, 7).is_empty());
    let kept = inbox.early(1, 7);
    let lens: Vec<_> = kept.iter().map(|early| (early.offset, early.bytes().len)).collect();
    assert_eq!(lens, [(8, 13), (21, 7)]);
    for early in &kept {
        let Piece { ptr, len } = early.bytes();
        // SAFETY: the bytes are there as long as `early`.
        let found = unsafe { std::slice::from_raw_parts(ptr, len) };
        assert!(found == &bytes[..len] && ptr.addr() % 8 == 0);
    }
    assert!(inbox.early(1, 7).is_empty(), "it is given once");
    assert!(
        inbox.abandon(1).is_empty() && inbox.early(1, 8).is_empty(),
        "nothing is left of a task that has left"
    );
}

#[test]
fn a_number_that_comes_again_is_not_kept() {
    let mut inbox: Inbox<()> = Inbox::new(2);
    for id in 0..8 {
        inbox.deliver(1, id);
    }
    for id in [0, 2, 4, 7] {
        inbox.deliver(1, id);
    }
    assert_eq!((inbox.delivered(1), inbox.source(1).beyond.len()), (8, 0));
}

#[test]
fn a_message_under_way_can_be_taken_back() {
    let mut inbox = Inbox::new(2);
    inbox.begin(1, 5, assembly(30));
    inbox.begin(1, 6, assembly(31));
    assert_eq!(inbox.withdraw(1, 5).map(|assembly| assembly.total), Some(30));
    assert!(inbox.withdraw(1, 5).is_none() && inbox.place(1, 5, 0, 1).is_err());
    assert_eq!(inbox.abandon(1).iter().map(|(id, _)| *id).collect::<Vec<_>>(), [6]);
}

#[test]
fn a_fence_gets_its_reply_when_all_before_it_are_delivered() {
    for begin in [0, u32::MAX - 2, (1 << 31) - 2] {
        let mut inbox: Inbox<()> = Inbox::new(2);
        inbox.begin_at(1, begin);
        let id = |at: u32| begin.wrapping_add(at);
        assert_eq!(inbox.ask(1, id(0)), Some(id(0)), "nothing is before the first");
        assert_eq!(inbox.ask(1, id(3)), None);
        assert_eq!([1, 4, 2].map(|at| inbox.deliver(1, id(at))), [None; 3]);
        assert_eq!(inbox.deliver(1, id(0)), Some(id(3)), "the first was the last that was missing");
        assert_eq!(inbox.deliver(1, id(3)), None, "the reply is given once");
        assert_eq!(inbox.ask(1, id(5)), Some(id(5)), "what was beyond counts now");
        // Two requests, the later one first: one reply serves both.
        assert_eq!([inbox.ask(1, id(7)), inbox.ask(1, id(6))], [None; 2]);
        assert_eq!([5, 6].map(|at| inbox.deliver(1, id(at))), [None, Some(id(7))]);
    }
}

#[test]
fn very_many_messages_may_overtake_one() {
    let mut inbox: Inbox<()> = Inbox::new(1);
    // A search for each of them would take minutes.
    const MANY: u32 = 100_000;
    assert!((1..MANY).rev().all(|id| inbox.deliver(0, id).is_none()));
    assert_eq!(inbox.ask(0, MANY), None);
    assert_eq!(inbox.deliver(0, 0), Some(MANY));
}

#[test]
fn what_is_known_of_delivered_messages_grows_with_the_missing_ones() {
    let mut inbox: Inbox<()> = Inbox::new(1);
    inbox.begin_at(0, u32::MAX - 50_000);
    let id = |at: u32| (u32::MAX - 50_000).wrapping_add(at);
    assert!((1..100_000).filter(|at| at % 40_000 != 0).all(|at| inbox.deliver(0, id(at)).is_none()));
    assert_eq!(inbox.source(0).beyond.len(), 3);
    assert_eq!(inbox.ask(0, id(100_000)), None);
    assert_eq!([40_000, 0].map(|at| inbox.deliver(0, id(at))), [None; 2]);
    assert_eq!(inbox.deliver(0, id(80_000)), Some(id(100_000)));
}

#[test]
fn messages_delivered_in_any_order_are_all_known() {
    for seed in 1..=50 {
        let mut rng = Rng::stream(seed, 12);
        let mut inbox: Inbox<()> = Inbox::new(1);
        let begin = [0, u32::MAX - 100, (1 << 31) - 100][rng.below(3) as usize];
        inbox.begin_at(0, begin);
        let mut left: Vec<u32> = (0..200).collect();
        assert_eq!(inbox.ask(0, begin.wrapping_add(200)), None);
        while !left.is_empty() {
            // Near the first one, so that ranges begin, grow and join.
            let at = left.remove(rng.below(left.len().min(20) as u64) as usize);
            let count = inbox.deliver(0, begin.wrapping_add(at));
            assert_eq!(count.is_some(), left.is_empty(), "seed {seed}, message {at}");
        }
        assert!(inbox.source(0).beyond.is_empty(), "seed {seed}");
    }
}

#[test]
fn nothing_is_kept_of_a_message_that_was_refused() {
    let mut inbox: Inbox<()> = Inbox::new(2);
    let bytes = [5u8; 40];
    // SAFETY: the array has that length.
    let keep =
        |inbox: &mut Inbox<()>, id| unsafe { inbox.keep(1, id, 8, Piece { ptr: bytes.as_ptr(), len: 40 }) };
    let one = keep(&mut inbox, 7);
    assert!(one >= 40 && inbox.early_bytes(1) == one);
    assert_eq!(keep(&mut inbox, 8), 2 * one);
    inbox.refuse(1, 7);
    assert_eq!(inbox.early_bytes(1), one, "what has arrived of it is forgotten");
    assert_eq!(keep(&mut inbox, 7), one, "and so is what arrives later");
    assert_eq!(inbox.early(1, 8).len(), 1);
    assert_eq!(inbox.early_bytes(1), 0);
    keep(&mut inbox, 9);
    inbox.abandon(1);
    assert_eq!((inbox.early_bytes(1), inbox.kept().map(|(_, count)| count).sum::<usize>()), (0, 0));
}
