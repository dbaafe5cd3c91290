use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn in_a_large_crowd_threads_sleep_sooner_and_check_more_seldom() {
    let look = |tasks| {
        let policy = WaitPolicy::new(tasks, 2, None, SPIN_TIME);
        (policy.yields, policy.period(SECOND, 4).as_secs(), policy.period(SECOND, 32).as_secs())
    };
    assert_eq!([2, 4, 32].map(look), [(100, 1, 1), (60, 1, 1), (60, 1, 1)]);
    assert_eq!([64, 256, 1024].map(look), [(30, 2, 2), (7, 4, 8), (4, 4, 32)]);
    assert!(
        !WaitPolicy::new(2, 2, None, SPIN_TIME).crowded() && WaitPolicy::new(3, 2, None, SPIN_TIME).crowded()
    );
}

/// How many polls of this length a thread makes that finds nothing, until it is to wake its
/// peers, until it first yields, and until it sleeps.
fn polls_of(length: Duration, policy: &WaitPolicy) -> (Option<u32>, u32, u32) {
    let begun = Instant::now();
    let (mut idle, mut kicked, mut yielded) = (IdlePolls::default(), None, None);
    for poll in 1.. {
        let (next, kick) = idle.add(policy, 1, || begun + length * poll);
        if kick {
            assert_eq!(kicked.replace(poll), None, "once");
        }
        match next {
            Next::Poll => assert_eq!(yielded, None),
            Next::Yield => drop(yielded.get_or_insert(poll)),
            Next::Sleep => return (kicked, yielded.unwrap_or(poll), poll),
        }
    }
    unreachable!("it sleeps at last")
}

#[test]
fn a_thread_polls_for_a_time_however_long_a_poll_takes() {
    let usual = WaitPolicy::new(2, 2, None, SPIN_TIME);
    assert_eq!(polls_of(Duration::from_nanos(1), &usual), (Some(2000), 20_001, 20_101));
    for (micros, spin_time) in
        [1, 5, 100, 1000].into_iter().flat_map(|micros| [(micros, SPIN_TIME), (micros, KICK_TIME)])
    {
        let usual = WaitPolicy::new(2, 2, None, spin_time);
        let length = Duration::from_micros(micros);
        let (kicked, yields, sleeps) = polls_of(length, &usual);
        // To the next check of the time, and the first check begins it.
        let most = |time: Duration| time.div_duration_f64(length) as u32 + 2 * POLLS_BETWEEN_TIMES;
        assert!(kicked.expect("peers are woken") <= most(KICK_TIME), "{micros}: {kicked:?}");
        assert!(yields <= most(spin_time) + 1 && sleeps == yields + usual.yields, "{micros}: {yields}");
    }
}

#[test]
fn a_thread_that_begins_again_polls_as_long_as_at_first_and_wakes_no_peers() {
    for policy in [WaitPolicy::new(2, 2, None, SPIN_TIME), WaitPolicy::new(2, 2, Some(5), SPIN_TIME)] {
        let (mut idle, now) = (IdlePolls::default(), Instant::now());
        let polls = |idle: &mut IdlePolls| {
            let adds = std::iter::from_fn(|| Some(idle.add(&policy, 1, || now)));
            let polls: Vec<_> = adds.take_while(|(next, _)| *next != Next::Sleep).collect();
            (polls.len(), polls.iter().filter(|(_, kick)| *kick).count())
        };
        let (at_first, _) = polls(&mut idle);
        idle.begin_again();
        assert_eq!(polls(&mut idle), (at_first, 0));
    }
}

#[test]
fn a_program_that_sets_the_number_of_polls_gets_it() {
    let chosen = WaitPolicy::new(2, 2, Some(5000), SPIN_TIME);
    let (_, yields, sleeps) = polls_of(Duration::from_millis(1), &chosen);
    assert_eq!((yields, sleeps), (5001, 5101));
    assert_eq!(
        polls_of(Duration::from_millis(1), &WaitPolicy::new(2, 2, Some(0), SPIN_TIME)),
        (None, 1, 101)
    );
}

#[test]
fn a_thread_that_was_woken_polls_a_little_before_it_sleeps_again() {
    let policy = WaitPolicy::new(2, 2, None, SPIN_TIME);
    for (nothing_came, polls) in [(true, 1), (false, POLLS_AWAKE + 1)] {
        let mut idle = IdlePolls::default();
        idle.woken(&policy, 1, nothing_came);
        let asleep = (1..).find(|_| idle.add(&policy, 1, Instant::now).0 == Next::Sleep);
        assert_eq!(asleep, Some(polls));
    }
}
