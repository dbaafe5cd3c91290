//! Which of the tasks that owe something are silent, for how long, and what to do about it.
//!
//! A task that lives may have nothing to say for hours: its handler computes, or it waits for somebody else. So silence
//! alone means nothing. After some of it the task is *asked*, by a packet that any task answers whose dispatcher is
//! served; when no answer comes either, it is *given up* once it has been silent for as long as the program's TIMEOUT says.
//!
//! There is no clock here: the caller says what time it is whenever it looks. It may itself have been stopped between two
//! looks, and its peers with it. A sudden gap therefore counts for nothing, and who was asked before it gets the time to
//! answer once more.

use crate::wire::frame::Task;
use std::time::Duration;

/// TIMEOUT is a promise of when the error is there: a task is given up so much earlier, because nobody looks all the time.
const MARGIN: Duration = Duration::from_secs(1);
/// Who looks again only after so long was away, or looks seldom.
const AWAY: Duration = Duration::from_secs(2);
/// After how much silence a task is asked, whatever TIMEOUT is: at least, at most.
const ASK_AFTER: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));
/// How long it has for the answer, at most.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the caller is to do about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Probe whether it still looks for packets.
    Probe,
    /// Give it up: it has been silent for so long.
    GiveUp(Duration),
}

/// A task that owes something.
struct Watched {
    task: Task,
    pulse: u64,
    /// When it last showed life, or began to owe.
    heard: Duration,
    /// It was asked since then, and has had so long to answer.
    asked: Option<Duration>,
}

/// The tasks that owe something.
#[derive(Default)]
pub struct Liveness {
    watched: Vec<Watched>,
    last: Duration,
    /// The last look came late.
    away: bool,
}

impl Liveness {
    /// Nobody owes anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks at the tasks that owe something now, in ascending order, each with a number that changes when it shows life.
    /// `now` counts from any moment, but always from the same. Whoever is to be given up is forgotten here.
    pub fn look(
        &mut self,
        now: Duration,
        timeout: Duration,
        owing: impl Iterator<Item = (Task, u64)>,
    ) -> Vec<(Task, Verdict)> {
        let gap = now.saturating_sub(self.last);
        let late = gap > AWAY;
        let sudden = late && !self.away;
        (self.last, self.away) = (now, late);
        let mut verdicts = Vec::new();
        let mut before = std::mem::take(&mut self.watched);
        for (task, pulse) in owing {
            let known = before.binary_search_by_key(&task, |watched| watched.task).ok();
            let same = known.map(|at| &mut before[at]).filter(|watched| watched.pulse == pulse);
            let mut watched = match same {
                Some(Watched { heard, asked, .. }) => Watched { task, pulse, heard: *heard, asked: *asked },
                None => Watched { task, pulse, heard: now, asked: None },
            };
            match &mut watched.asked {
                Some(waited) if sudden => *waited = Duration::ZERO,
                Some(waited) => *waited += gap.min(AWAY),
                None => {}
            }
            let silent = now.saturating_sub(watched.heard);
            match watched.asked {
                None if silent >= (timeout / 10).clamp(ASK_AFTER.0, ASK_AFTER.1) => {
                    watched.asked = Some(Duration::ZERO);
                    verdicts.push((task, Verdict::Probe));
                }
                Some(waited) if waited >= (timeout / 4).min(PATIENCE) && silent + MARGIN >= timeout => {
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
