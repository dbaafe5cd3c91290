use super::super::MILLISECOND;
use super::*;

const DATAGRAM: usize = 1_500;

/// Round trips without a loss, each of which acknowledges the whole window.
fn pass(congestion: &mut Congestion, now: &mut Nanos, trips: usize) {
    for _ in 0..trips {
        let window = congestion.window();
        let sent = *now;
        *now += 10 * MILLISECOND;
        for _ in 0..window / DATAGRAM {
            congestion.note_arrival(*now, DATAGRAM, sent, 10 * MILLISECOND);
        }
    }
}

#[test]
fn it_starts_fast_up_to_the_most() {
    let mut congestion = Congestion::new(DATAGRAM, 100);
    let mut now = MILLISECOND;
    pass(&mut congestion, &mut now, 1);
    assert_eq!(congestion.window(), 20 * DATAGRAM);
    pass(&mut congestion, &mut now, 10);
    assert_eq!(congestion.window(), 100 * DATAGRAM);
}

#[test]
fn one_loss_in_a_round_trip_counts_once() {
    let mut congestion = Congestion::new(DATAGRAM, 1_000);
    let mut now = MILLISECOND;
    pass(&mut congestion, &mut now, 3);
    let before = congestion.window();
    (0..10).for_each(|_| congestion.note_loss(now, now - 1));
    assert_eq!(congestion.window(), (before as f64 * BETA) as usize);
    congestion.note_arrival(now, DATAGRAM, now - 1, MILLISECOND);
    assert_eq!(congestion.window(), (before as f64 * BETA) as usize, "sent before the loss");
}

#[test]
fn it_returns_to_the_window_before_and_passes_it() {
    let mut congestion = Congestion::new(DATAGRAM, 10_000);
    let mut now = MILLISECOND;
    pass(&mut congestion, &mut now, 5);
    let before = congestion.window();
    congestion.note_loss(now, now);
    let mut trips = 0;
    while congestion.window() < before {
        pass(&mut congestion, &mut now, 1);
        trips += 1;
        assert!(trips < 1_000, "{congestion:?}");
    }
    // About the cube root of 0.3 * 320 / 0.4: 6 seconds.
    assert!((100..700).contains(&trips), "{trips} round trips");
    pass(&mut congestion, &mut now, 400);
    assert!(congestion.window() > before + before / 10);
}

#[test]
fn on_a_short_way_it_grows_as_reno_does() {
    let mut congestion = Congestion::new(DATAGRAM, 10_000);
    let mut now = MILLISECOND;
    pass(&mut congestion, &mut now, 1);
    congestion.note_loss(now, now);
    let before = congestion.window();
    pass(&mut congestion, &mut now, 20);
    let grown = (congestion.window() - before) / DATAGRAM;
    assert!((9..=21).contains(&grown), "{grown} datagrams in 20 round trips");
}

#[test]
fn a_collapse_leaves_the_least() {
    let mut congestion = Congestion::new(DATAGRAM, 1_000);
    let mut now = MILLISECOND;
    pass(&mut congestion, &mut now, 4);
    (0..9).for_each(|_| {
        now += MILLISECOND;
        congestion.collapse(now);
    });
    assert_eq!(congestion.window(), LEAST * DATAGRAM);
    now += MILLISECOND;
    pass(&mut congestion, &mut now, 50);
    assert!(congestion.window() > 5 * DATAGRAM);
}
