//! Silence in virtual time: tasks that reply, tasks that do not, and watchers that were
//! away themselves.

use super::seeds;
use crate::base::rng::Rng;
use crate::proto::liveness::{Liveness, Verdict};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A watcher, and what it has decided about one task.
#[derive(Default)]
struct Watch {
    liveness: Liveness,
    now: Duration,
    progress: u64,
    asked: Vec<Duration>,
    given_up: Option<Duration>,
}

impl Watch {
    /// Looks after this much time. Whether the task was asked.
    fn look(&mut self, after: Duration, timeout: Duration) -> bool {
        self.now += after;
        let mut asks = false;
        // Who is given up owes nothing any more.
        let owing = self.given_up.is_none().then_some((3, self.progress));
        for (task, verdict) in self.liveness.look(self.now, timeout, owing.into_iter()) {
            assert_eq!(task, 3);
            match verdict {
                Verdict::Probe => {
                    self.asked.push(self.now);
                    asks = true;
                }
                Verdict::GiveUp(silent) => {
                    assert!(self.given_up.is_none(), "given up twice");
                    assert!(!self.asked.is_empty(), "given up without a question");
                    assert!(silent + ms(1000) >= timeout && silent <= self.now);
                    self.given_up = Some(self.now);
                }
            }
        }
        asks
    }
}

fn timeouts(rng: &mut Rng) -> Duration {
    Duration::from_secs([10, 11, 15, 60, 200, 900][rng.below(6) as usize])
}

#[test]
fn a_silent_task_is_asked_once_and_given_up_within_the_timeout() {
    seeds(200, |seed| {
        let mut rng = Rng::new(seed);
        let timeout = timeouts(&mut rng);
        let mut watch = Watch { now: MS * rng.below(10_000) as u32, ..Watch::default() };
        // It begins to owe, and is seen to do so at the next look.
        let begins = watch.now;
        while watch.given_up.is_none() {
            watch.look(ms(1 + rng.below(500)), timeout);
            assert!(watch.now <= begins + timeout, "silent for longer than {timeout:?}");
        }
        assert_eq!(watch.asked.len(), 1);
        let at = watch.given_up.unwrap_or_default();
        assert!(at >= begins + timeout - ms(1000), "given up after {:?} of {timeout:?}", at - begins);
    });
}

#[test]
fn a_task_that_replies_is_never_given_up() {
    seeds(200, |seed| {
        let mut rng = Rng::new(seed);
        let timeout = timeouts(&mut rng);
        let mut watch = Watch::default();
        let mut reply_at = None;
        for _ in 0..20_000 {
            // Rarely the watcher itself is stopped, for any time; the reply arrives meanwhile
            // or right after.
            let after = if rng.chance(0.001) { ms(rng.below(100_000_000)) } else { ms(1 + rng.below(500)) };
            if watch.look(after, timeout) {
                reply_at = Some(watch.now + ms(rng.below(2_000)));
            }
            if reply_at.is_some_and(|at| at <= watch.now) {
                watch.progress += 1;
                reply_at = None;
            }
            assert_eq!(watch.given_up, None, "it has replied each time");
        }
        assert!(!watch.asked.is_empty());
    });
}

/// The whole job is stopped and continues: the watcher first, its peers a little later.
#[test]
fn a_stopped_job_gives_no_task_up() {
    seeds(100, |seed| {
        let mut rng = Rng::new(seed);
        let timeout = Duration::from_secs(10);
        let mut watch = Watch::default();
        // The peer is stopped somewhat before the watcher: it may be asked meanwhile.
        (0..rng.below(30)).for_each(|_| _ = watch.look(ms(250), timeout));
        watch.look(Duration::from_secs(100 + rng.below(100_000)), timeout);
        for _ in 0..rng.below(8) {
            watch.look(ms(250), timeout);
        }
        assert_eq!(watch.given_up, None, "it had no time to reply");
        // If it never does, it is given up after all.
        (0..40).for_each(|_| _ = watch.look(ms(250), timeout));
        assert!(watch.given_up.is_some());
    });
}

#[test]
fn a_watcher_that_checks_seldom_gives_up_too() {
    for step in [3, 6, 20] {
        let mut watch = Watch::default();
        (0..20).for_each(|_| _ = watch.look(Duration::from_secs(step), Duration::from_secs(10)));
        assert!(watch.given_up.is_some(), "looks every {step} s");
    }
}

#[test]
fn a_shorter_timeout_takes_effect_at_once() {
    let mut watch = Watch::default();
    (0..240).for_each(|_| _ = watch.look(ms(250), Duration::from_secs(900)));
    assert_eq!((watch.asked.len(), watch.given_up), (1, None));
    watch.look(ms(250), Duration::from_secs(10));
    assert!(watch.given_up.is_some());
}

#[test]
fn a_task_that_owes_nothing_for_a_while_starts_again() {
    let timeout = Duration::from_secs(10);
    let mut watch = Watch::default();
    (0..32).for_each(|_| _ = watch.look(ms(250), timeout));
    watch.now += ms(250);
    assert_eq!(watch.liveness.look(watch.now, timeout, std::iter::empty()), []);
    (0..32).for_each(|_| _ = watch.look(ms(250), timeout));
    assert_eq!((watch.asked.len(), watch.given_up), (2, None));
}

/// Of many tasks each is judged by its own silence.
#[test]
fn of_many_only_the_silent_are_given_up() {
    let timeout = Duration::from_secs(10);
    let (mut liveness, mut gone) = (Liveness::new(), Vec::new());
    let mut progress = [0u64; 50];
    for look in 0..60u64 {
        let owing = (0..50).filter(|task| !gone.contains(task)).map(|task| (task, progress[task as usize]));
        let owing: Vec<_> = owing.collect();
        for (task, verdict) in liveness.look(ms(250 * look), timeout, owing.into_iter()) {
            match verdict {
                Verdict::Probe if task % 7 != 0 => progress[task as usize] += 1,
                Verdict::Probe => {}
                Verdict::GiveUp(_) => gone.push(task),
            }
        }
    }
    gone.sort_unstable();
    assert_eq!(gone, [0, 7, 14, 21, 28, 35, 42, 49]);
}
