//! The sender alone: what its peer says, and what time does.

use super::super::MILLISECOND;
use super::*;

const PARAMETERS: Parameters = Parameters {
    unit: 100,
    base: 100,
    window: 32,
    acknowledge_every: 5,
    acknowledge_after: MILLISECOND,
    longest_interval: 400 * MILLISECOND,
};

struct End {
    sender: Sender,
    buffers: Buffers,
    statistics: Statistics,
    transmission: u64,
    now: Nanos,
}

impl End {
    /// A sender with packets of one fragment each.
    fn with(packets: usize) -> Self {
        let mut sender = Sender::new(&PARAMETERS);
        let mut buffers = Buffers::new(100, 1000);
        for _ in 0..packets {
            assert!(sender.has_room(100));
            sender.push(1, buffers.take(100).expect("a buffer"), 8, 100);
        }
        Self { sender, buffers, statistics: Statistics::default(), transmission: 0, now: 1 }
    }

    /// The numbers of all fragments that may leave now.
    fn send(&mut self) -> Vec<u64> {
        let mut numbers = Vec::new();
        while let Some(next) = self.sender.next(self.now, self.transmission + 1, &mut self.statistics) {
            self.transmission += 1;
            numbers.extend(match next {
                Next::Fragment(fragment, ..) => Some(fragment.number),
                Next::Ping | Next::Probe(..) => None,
            });
            self.sender.check();
        }
        numbers
    }

    fn report(&mut self, acknowledged: u64, echo: u64, room: u16, map: &[u8]) -> bool {
        let report = Report { acknowledged, echo, room, delay: 0, map };
        let Self { sender, buffers, transmission, now, .. } = self;
        let new = sender.note(*now, &report, *transmission, buffers);
        sender.check();
        new
    }

    /// Fragments that were found lost.
    fn found_lost(&self) -> u64 {
        self.statistics.sent_again + self.sender.lost.len() as u64
    }
}

/// What was in the buffer before, of a packet to another task, does not leave with the
/// last fragment.
#[test]
fn fragments_are_equally_long_and_filled_up_with_zeros() {
    for len in [1, 99, 100, 101, 201, 250, 299, 300, 997] {
        let mut end = End::with(0);
        let mut buffer = end.buffers.take(len).expect("a buffer");
        buffers::bytes_mut(&mut buffer).fill(7);
        end.sender.push(1, buffer, 0, len);
        let numbers = end.send();
        assert_eq!(numbers.len(), len.div_ceil(100));
        let fragments: Vec<&[u8]> = numbers.iter().filter_map(|&at| end.sender.payload(at)).collect();
        assert!(fragments.iter().all(|fragment| fragment.len() == len.div_ceil(numbers.len())), "{len}");
        let whole = fragments.concat();
        assert!(whole[..len].iter().all(|&byte| byte == 7) && whole[len..].iter().all(|&byte| byte == 0));
        assert!(whole.len() - len < numbers.len(), "{len}");
    }
}

/// A peer that says what no correct one does changes nothing.
#[test]
fn reports_about_what_was_never_sent_have_no_effect() {
    let mut end = End::with(20);
    assert_eq!(end.send(), (0..10).collect::<Vec<u64>>(), "ten datagrams at first");
    assert!(!end.report(11, 10, 32, &[]), "beyond what was sent");
    assert!(!end.report(u64::MAX >> 1, 10, 32, &[]));
    assert!(!end.report(1, 11, 32, &[]), "an echo of a datagram that was never sent");
    assert_eq!(end.sender.unacknowledged(), 10);
    // Of a map the bits beyond what was sent.
    assert!(end.report(0, 10, 32, &[0, 0xff, 0xff, 0xff]));
    assert_eq!((end.sender.unacknowledged(), end.sender.end()), (10, 20));
    assert!(end.sender.payload(9).is_none() && end.sender.payload(10).is_some(), "9 has arrived");
}

#[test]
fn three_later_datagrams_show_a_loss_and_one_does_after_some_time() {
    let mut end = End::with(20);
    end.send();
    end.now += MILLISECOND;
    // 3 has arrived, as the fourth datagram.
    assert!(end.report(0, 4, 32, &[0b100]));
    assert_eq!(end.found_lost(), 1, "0 was sent three before");
    assert_eq!(end.send(), [0; 0], "the window is smaller now than what is in flight");
    let due = end.sender.due(end.now).expect("a moment");
    end.now = due;
    let again = end.send();
    assert_eq!(end.found_lost(), 3, "1 and 2 were sent before what has arrived, and too long ago");
    assert_eq!(again.first(), Some(&0), "before anything new");
}

#[test]
fn a_late_arrival_makes_the_sender_patient() {
    let mut end = End::with(20);
    end.send();
    end.now += MILLISECOND;
    end.report(0, 4, 32, &[0b100]);
    assert!(end.report(1, 4, 32, &[0b10]), "0 was late only");
    let before = end.found_lost();
    end.report(1, 6, 32, &[0b1_1010]);
    assert_eq!(end.found_lost(), before, "1 may be late, too");
}

#[test]
fn the_timer_sends_two_again_and_waits_longer_each_time() {
    let mut end = End::with(5);
    assert_eq!(end.send(), [0, 1, 2, 3, 4]);
    let mut last = 0;
    for round in 0..8 {
        let due = end.sender.due(end.now).expect("the timer");
        let interval = due - end.now;
        assert!(interval > last || interval == PARAMETERS.longest_interval, "round {round}");
        assert!(interval <= PARAMETERS.longest_interval);
        (last, end.now) = (interval, due);
        assert_eq!(end.send().len(), 2, "round {round}");
    }
    assert_eq!(last, PARAMETERS.longest_interval);
    assert!(end.report(5, end.transmission, 32, &[]));
    assert!(end.sender.is_empty() && end.sender.due(end.now).is_none());
}

/// The peer's program computes: what it acknowledges late was not long on the way.
#[test]
fn a_peer_that_looks_seldom_delays_no_repetition() {
    let mut end = End::with(5);
    end.send();
    for (arrived, time) in [(1, 1), (2, 3000), (3, 3000), (4, 3000)] {
        end.now += time * MILLISECOND;
        assert!(end.report(arrived, arrived, 32, &[]));
    }
    assert!(end.sender.path.round_trip.timeout() > 1000 * MILLISECOND);
    let due = end.sender.due(end.now).expect("the timer");
    assert_eq!(due - end.now, PARAMETERS.longest_interval);
    // A way that is as long as that is another matter.
    let mut end = End::with(5);
    end.send();
    end.now += 1000 * MILLISECOND;
    for arrived in 1..5 {
        assert!(end.report(arrived, arrived, 32, &[]));
    }
    assert!(end.sender.due(end.now).expect("the timer") - end.now > 1000 * MILLISECOND);
}

/// A task that ends is not there for long.
#[test]
fn what_is_lost_is_sent_again_more_often_at_the_end() {
    let mut end = End::with(1);
    end.send();
    end.sender.limit_interval(50 * MILLISECOND);
    for _ in 0..8 {
        let due = end.sender.due(end.now).expect("the timer");
        assert!(due - end.now <= 50 * MILLISECOND);
        end.now = due;
        assert_eq!(end.send(), [0]);
    }
}

#[test]
fn a_sender_without_room_asks_for_it() {
    let mut end = End::with(4);
    end.sender.limit = 4;
    assert_eq!(end.send(), [0, 1, 2, 3]);
    end.report(4, 4, 0, &[]);
    assert_eq!(end.send(), [0; 0]);
    assert!(!end.sender.has_room(1) && end.sender.due(end.now).is_none(), "nothing waits");
    end.sender.await_room(end.now);
    let before = end.transmission;
    end.now = end.sender.due(end.now).expect("the timer");
    assert_eq!(end.send(), [0; 0]);
    assert_eq!(end.transmission, before + 1, "a ping");
    assert!(end.report(4, end.transmission, 1, &[]));
    assert!(end.sender.has_room(1));
}

/// Fragments that counted as lost have arrived after all, and with them all that was sent.
#[test]
fn a_sender_without_room_asks_for_it_although_it_has_lost_something_before() {
    let mut end = End::with(10);
    end.sender.limit = 10;
    assert_eq!(end.send().len(), 10);
    end.now += MILLISECOND;
    // The last five have arrived.
    end.report(0, 10, 10, &[0xf0, 1]);
    assert!(!end.sender.lost.is_empty());
    end.report(10, 10, 0, &[]);
    assert!(end.sender.is_empty() && !end.sender.has_room(1));
    end.sender.await_room(end.now);
    end.now = end.sender.due(end.now).expect("the timer");
    let before = end.transmission;
    assert_eq!(end.send(), [0; 0]);
    assert_eq!(end.transmission, before + 1, "a ping");
}

#[test]
fn there_is_room_for_a_window_of_fragments() {
    let mut end = End::with(32);
    assert!(!end.sender.has_room(1));
    end.send();
    end.report(3, 3, 32, &[]);
    assert!(end.sender.has_room(300) && !end.sender.has_room(301));
    end.sender.abandon(&mut end.buffers);
    assert!(end.sender.is_empty() && end.sender.due(2).is_none() && end.sender.payload(5).is_none());
    end.sender.check();
}

/// An acknowledgement changes the pace: what the pacer has held up is due at once, to
/// be asked again.
#[test]
fn what_the_pacer_holds_up_is_looked_at_again_after_an_acknowledgement() {
    let mut end = End::with(30);
    assert_eq!(end.send().len(), 10);
    end.now += 10 * MILLISECOND;
    assert!(end.report(10, 10, 32, &[]));
    let sent = end.send().len();
    assert!((1..20).contains(&sent), "the pacer lets {sent} leave");
    let held_up = end.sender.due(end.now).expect("some are left");
    assert!(held_up > end.now + MILLISECOND / 2, "{held_up}");
    end.now += MILLISECOND / 10;
    assert_eq!(end.sender.due(end.now), Some(held_up), "nothing has changed");
    assert!(end.report(12, 12, 32, &[]));
    assert_eq!(end.sender.due(end.now), Some(end.now));
}

/// What was taken before the peer's datagrams were known to be shorter needs more room
/// than there is.
#[test]
fn fragments_that_were_cut_again_and_have_no_room_are_asked_for() {
    let parameters = Parameters { window: 4, ..PARAMETERS };
    let mut sender = Sender::new(&parameters);
    let mut buffers = Buffers::new(100, 1000);
    sender.push(1, buffers.take(400).expect("a buffer"), 8, 400);
    sender.agree(&Parameters { unit: 50, base: 50, ..parameters });
    let mut end = End { sender, buffers, statistics: Statistics::default(), transmission: 0, now: 1 };
    assert_eq!(end.send(), [0, 1, 2, 3]);
    // They have arrived, and their receiver has taken nothing; that it has done so later is lost.
    let report = Report { acknowledged: 4, echo: 4, room: 0, delay: 0, map: &[] };
    assert!(end.sender.note(end.now, &report, 4, &mut end.buffers));
    assert_eq!(end.send(), []);
    end.now = end.sender.due(end.now).expect("a timer");
    let next = end.sender.next(end.now, end.transmission + 1, &mut end.statistics);
    assert!(matches!(next, Some(Next::Ping)), "{next:?}");
}
