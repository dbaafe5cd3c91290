use super::*;
use crate::error::Result;

/// A directory that knows which tasks have ended, as poe's board does.
struct Ended(std::ops::Range<Task>);

impl Directory<()> for Ended {
    fn address_of(&mut self, _peer: Task) -> Result<()> {
        unreachable!("a look needs no address")
    }

    fn has_died(&mut self, peer: Task) -> bool {
        self.0.contains(&peer)
    }
}

/// Task 0 is alone on its host, 64 tasks are on the next one, and one is on the last one.
#[test]
fn looks_in_turn_find_all_that_have_died_on_the_next_host() {
    let group_of: Vec<u32> = (0..66).map(|task: Task| task.div_ceil(64)).collect();
    let processes = vec![Process::own(); group_of.len()];
    let mut watch = Watch::new(0, group_of, processes, Box::default());
    let is_due = |watch: &Watch| watch.due().is_some_and(|due| due <= watch.start);
    for looks in 1..=4 {
        assert!(watch.look(&mut Ended(1..65), |_| false), "the next look is at once");
        let dead: Vec<Task> = (0..66).filter(|&task| watch.ring().has_died(task)).collect();
        assert_eq!(dead, Vec::from_iter(1..=looks * FOUND as Task));
        assert!(is_due(&watch));
    }
    assert!(watch.look(&mut Ended(1..65), |_| false));
    assert!(!is_due(&watch), "there are no more");
    assert_eq!(watch.ring().probed(), Some(65));
}
