use super::*;

fn length(base: usize, most: usize) -> Length {
    let parameters = Parameters {
        unit: most,
        base,
        window: 32,
        acknowledge_every: 1,
        acknowledge_after: MILLISECOND,
        longest_interval: MILLISECOND,
    };
    let mut length = Length::new(&parameters);
    length.want();
    length
}

/// Lets probes leave until they rest, on a path that takes `limit`. Returns their lengths.
fn run(length: &mut Length, limit: usize, now: &mut Nanos) -> Vec<usize> {
    let (mut probes, end) = (Vec::new(), *now + RAISE / 2);
    while let Some(at) = length.due(true).filter(|&at| at < end) {
        *now = at.max(*now) + 1;
        length.note_arrival(length.base);
        let number = *now;
        if let Some(tried) = length.probe(*now, number, 20 * MILLISECOND) {
            assert!(tried > length.used() && tried <= length.most);
            probes.push(tried);
            if tried <= limit {
                assert!(length.replied(*now + MILLISECOND, number));
            }
        }
    }
    probes
}

#[test]
fn the_longest_of_three_lengths_is_used() {
    for (base, most, limit, used, probes) in [
        (1128, 8900, 9000, 8900, vec![8900]),
        (1128, 8900, 1400, 1380, vec![8900, 8900, 8900, 8900, 1380]),
        (1128, 8900, 1200, 1128, [[8900; 4], [1380; 4]].concat()),
        (1128, 1400, 1400, 1400, vec![1400]),
        (1128, 1380, 1200, 1128, vec![1380; 4]),
        (1128, 1300, 1200, 1128, vec![1300; 4]),
        (440, 440, 440, 440, vec![]),
    ] {
        let (mut length, mut now) = (length(base, most), SECOND);
        assert_eq!((run(&mut length, limit, &mut now), length.used()), (probes, used), "{most}, {limit}");
    }
}

#[test]
fn shorter_arrivals_do_not_hide_what_is_too_long() {
    let (mut length, mut now) = (length(1000, 9000), 0);
    run(&mut length, 9000, &mut now);
    assert_eq!(length.used(), 9000);
    for _ in 0..3 {
        length.note_loss(now, 9000);
        length.note_arrival(1500);
    }
    length.note_loss(now, 9000);
    assert_eq!(length.used(), 1000, "four were lost, and none has arrived");
    // As long ones arrive, what is lost is lost by chance.
    run(&mut length, 9000, &mut now);
    for _ in 0..20 {
        length.note_loss(now, 9000);
        length.note_arrival(9000);
    }
    assert_eq!(length.used(), 9000);
    // What was cut before, and goes in parts, says nothing.
    (0..4).for_each(|_| length.note_loss(now, 9000));
    assert_eq!(length.used(), 1000);
    (0..4).for_each(|_| length.note_loss(now, 9000));
    length.note_arrival(9000);
    assert_eq!(length.used(), 1000);
}

/// A peer whose program computes replies to nothing, which says nothing of the path.
#[test]
fn silence_is_no_limit() {
    let (mut length, mut now) = (length(1128, 8900), SECOND);
    for number in 1..=101 {
        now = length.due(true).expect("it goes on").max(now);
        assert!(length.probe(now, number, 20 * MILLISECOND).is_none_or(|tried| tried == 8900));
    }
    assert!(now > 2 * SECOND, "it is not asked all the time");
    // The program calls LAPI again.
    length.note_arrival(100);
    assert!(length.replied(now, 101) && length.used() == 8900, "{length:?}");
}

#[test]
fn a_link_that_takes_less_later_is_noticed_and_one_that_takes_more_again() {
    let (mut length, mut now) = (length(1128, 8900), SECOND);
    run(&mut length, 9_000, &mut now);
    assert_eq!((length.used(), length.due(true)), (8900, None));
    for lost in 1..=SUSPICIOUS {
        length.note_arrival(1128);
        length.note_loss(now, 1128);
        assert_eq!(length.used(), 8900, "{lost}");
        length.note_loss(now, 1129);
    }
    assert_eq!(length.used(), 1128);
    run(&mut length, 1400, &mut now);
    assert_eq!(length.used(), 1380);
    assert_eq!(length.due(false), None, "nothing is tried while there is nothing to send");
    now += RAISE;
    run(&mut length, 9_000, &mut now);
    assert_eq!(length.used(), 8900);
}
