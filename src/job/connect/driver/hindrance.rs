//! A limit of the system that keeps this task from making connections.

use std::time::Duration;

/// What could not be done. Each succeeds or fails by itself: while descriptors lack, some that are
/// freed are enough for a channel and not for the memory that it is to carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Connect,
    Accept,
    Receive,
    Offer,
}

/// The limit that was met, until the step that it has hindered succeeds.
#[derive(Debug, Default)]
pub(super) struct Hindrance {
    met: Option<Met>,
    /// The limit that was reported last.
    reported: Option<String>,
}

#[derive(Debug)]
struct Met {
    step: Step,
    limit: String,
    since: Duration,
}

impl Hindrance {
    /// A step has succeeded.
    pub(super) fn passed(&mut self, step: Step) {
        if self.met.as_ref().is_some_and(|met| met.step == step) {
            self.met = None;
        }
    }

    /// A step has failed for this limit. Returns whether the limit is to be reported.
    pub(super) fn meet(&mut self, step: Step, limit: &str, now: Duration) -> bool {
        self.met.get_or_insert_with(|| Met { step, limit: limit.to_owned(), since: now });
        let is_new = self.reported.as_deref() != Some(limit);
        if is_new {
            self.reported = Some(limit.to_owned());
        }
        is_new
    }

    /// A connection was made.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }

    /// The limit, and since when it hinders.
    pub(super) fn now(&self) -> Option<(&str, Duration)> {
        self.met.as_ref().map(|met| (&*met.limit, met.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hindrance_ends_with_the_first_success() {
        let at = Duration::from_secs;
        let mut hindrance = Hindrance::default();
        assert!(hindrance.meet(Step::Accept, "few files", at(1)));
        assert!(!hindrance.meet(Step::Accept, "few files", at(2)));
        assert_eq!(hindrance.now(), Some(("few files", at(1))));
        hindrance.passed(Step::Accept);
        assert_eq!(hindrance.now(), None);
        // A later one lasts from then on, and is no news.
        assert!(!hindrance.meet(Step::Accept, "few files", at(900)));
        assert_eq!(hindrance.now(), Some(("few files", at(900))));
        hindrance.end();
        assert!(hindrance.meet(Step::Accept, "few files", at(901)));
    }

    #[test]
    fn a_hindrance_lasts_while_another_step_succeeds() {
        let at = Duration::from_secs;
        let mut hindrance = Hindrance::default();
        for second in 1..4 {
            hindrance.passed(Step::Connect);
            hindrance.meet(Step::Offer, "no memory", at(second));
        }
        assert_eq!(hindrance.now(), Some(("no memory", at(1))));
    }
}
