//! Which of the tasks that this task waits for are silent, for how long, and what to do about it.
//!
//! A task that lives may send nothing for hours: its handler computes, or it waits for another
//! task. So silence alone means nothing. After some of it the task is *probed*, by a packet to
//! which every task replies whose dispatcher runs; without a reply it is *given up* once it has
//! been silent for as long as the program's TIMEOUT says.
//!
//! There is no clock here: the caller gives the time with each look. The caller itself may have
//! been stopped between two looks, and its peers with it. A sudden gap therefore does not count,
//! and a task that was probed before it gets the time to reply once more.

use crate::wire::frame::Task;
use std::time::Duration;

/// TIMEOUT promises when the error is reported: a task is given up this much earlier, because
/// checks are rare.
const MARGIN: Duration = Duration::from_secs(1);
/// A caller that checks again only after this time was stopped, or checks seldom.
const PAUSE: Duration = Duration::from_secs(2);
/// After how much silence a task is probed, whatever TIMEOUT is: at least, at most.
const PROBE_AFTER: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));
/// How long a task has for the reply, at most.
const REPLY_TIME: Duration = Duration::from_secs(5);

/// What the caller is to do about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Probe whether it still looks for packets.
    Probe,
    /// Give it up: it has been silent for this time.
    GiveUp(Duration),
}

/// A task that is waited for.
struct Watched {
    task: Task,
    progress: u64,
    /// When it last made progress, or began to be waited for.
    since: Duration,
    /// How long the task has had to reply since it was probed; `None`: it was not since then.
    asked: Option<Duration>,
}

/// The tasks that are waited for.
#[derive(Default)]
pub struct Liveness {
    watched: Vec<Watched>,
    last: Duration,
    /// The last check came late.
    away: bool,
}

impl Liveness {
    /// No task is waited for.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks the tasks that are waited for now, in ascending order, each with its progress count.
    /// `now` counts from any moment, but always from the same. A task that is to be given up is
    /// forgotten here.
    pub fn look(
        &mut self,
        now: Duration,
        timeout: Duration,
        owing: impl Iterator<Item = (Task, u64)>,
    ) -> Vec<(Task, Verdict)> {
        let gap = now.saturating_sub(self.last);
        let late = gap > PAUSE;
        let sudden = late && !self.away;
        (self.last, self.away) = (now, late);
        let mut verdicts = Vec::new();
        let mut before = std::mem::take(&mut self.watched);
        for (task, progress) in owing {
            let known = before.binary_search_by_key(&task, |watched| watched.task).ok();
            let same = known.map(|at| &mut before[at]).filter(|watched| watched.progress == progress);
            let mut watched = match same {
                Some(Watched { since, asked, .. }) => {
                    Watched { task, progress, since: *since, asked: *asked }
                }
                None => Watched { task, progress, since: now, asked: None },
            };
            match &mut watched.asked {
                Some(waited) if sudden => *waited = Duration::ZERO,
                Some(waited) => *waited += gap.min(PAUSE),
                None => {}
            }
            let silent = now.saturating_sub(watched.since);
            match watched.asked {
                None if silent >= (timeout / 10).clamp(PROBE_AFTER.0, PROBE_AFTER.1) => {
                    watched.asked = Some(Duration::ZERO);
                    verdicts.push((task, Verdict::Probe));
                }
                Some(waited) if waited >= (timeout / 4).min(REPLY_TIME) && silent + MARGIN >= timeout => {
                    verdicts.push((task, Verdict::GiveUp(silent)));
                    continue;
                }
                _ => {}
            }
            self.watched.push(watched);
        }
        verdicts
    }
}
