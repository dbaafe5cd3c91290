//! The events of a trace that is not too long to be looked at: the longest ones of each task, and a
//! sample of the others.

use crate::part::{Event, Part};
use std::collections::HashMap;

/// At most as many events of all tasks are in a trace, of about 200 bytes each.
pub const MOST: usize = 100_000;

/// What is left of a part's events.
#[derive(Debug)]
pub struct Thinned {
    /// The events, in their order. One stands for those of its place before it that are
    /// left out, too.
    pub events: Vec<Event>,
    /// How many calls those stood for that are left out behind the last event of their place.
    pub behind: u64,
}

/// The events of each part, as many for each of them.
pub fn thin(parts: &[Part]) -> Vec<Thinned> {
    let all: usize = parts.iter().map(|part| part.events.len()).sum();
    let share = if all <= MOST { usize::MAX } else { share(parts) };
    parts.iter().map(|part| of_part(&part.events, share)).collect()
}

/// How many events of each part there is room for, where small parts leave theirs to the others.
fn share(parts: &[Part]) -> usize {
    let mut counts: Vec<usize> = parts.iter().map(|part| part.events.len()).collect();
    counts.sort_unstable();
    let (mut room, mut left) = (MOST, counts.len());
    for count in counts {
        if count > room / left {
            break;
        }
        (room, left) = (room - count, left - 1);
    }
    room / left.max(1)
}

fn of_part(events: &[Event], share: usize) -> Thinned {
    if events.len() <= share {
        return Thinned { events: events.to_vec(), behind: 0 };
    }
    let longest = share / 2;
    let mut by_time: Vec<usize> = (0..events.len()).collect();
    by_time.sort_by_key(|at| (u64::MAX - events[*at].time, *at));
    let mut kept = vec![false; events.len()];
    by_time[..longest].iter().for_each(|at| kept[*at] = true);
    // Of the others a fraction, in the course of time.
    let others = events.len() - longest;
    let step = others.div_ceil((share - longest).max(1));
    let rest: Vec<usize> = (0..events.len()).filter(|at| !kept[*at]).collect();
    if share > longest {
        rest.iter().skip(step - 1).step_by(step).for_each(|at| kept[*at] = true);
    }
    let mut waiting: HashMap<(u32, u16), u64> = HashMap::new();
    let mut left = Vec::new();
    for (event, kept) in events.iter().zip(kept) {
        let before = waiting.entry((event.row, event.thread)).or_default();
        let calls = before.saturating_add(event.calls.into());
        *before = if kept { 0 } else { calls };
        if kept {
            let fits = u32::try_from(calls).unwrap_or(u32::MAX);
            left.push(Event { calls: fits, ..*event });
        }
    }
    Thinned { events: left, behind: waiting.into_values().fold(0, u64::saturating_add) }
}

#[cfg(test)]
mod tests {
    use super::{MOST, thin};
    use crate::part::{Event, Part};
    use crate::report::Report;

    fn part(task: u32, events: u64) -> Part {
        let event = |at: u64| Event {
            row: (at % 3) as u32,
            thread: 0,
            start: 100 * at,
            // One in a thousand is long.
            time: if at % 1000 == 7 { 5000 } else { 10 },
            peer: None,
            bytes: 0,
            calls: 2,
        };
        Part { events: (0..events).map(event).collect(), ..Part::empty(task) }
    }

    #[test]
    fn a_long_trace_keeps_the_longest_calls_and_the_number_of_all() {
        let parts = [part(0, 300_000), part(1, 10), part(2, 80_000)];
        let thinned = thin(&parts);
        let shown = thinned.iter().map(|thinned| thinned.events.len() as u64).sum::<u64>();
        assert_eq!(Report::of(&parts).events, shown);
        let kept: Vec<usize> = thinned.iter().map(|thinned| thinned.events.len()).collect();
        assert!(kept.iter().sum::<usize>() <= MOST && kept[0] > MOST / 3 && kept[1] == 10, "{kept:?}");
        for (thinned, part) in thinned.iter().zip(&parts) {
            let calls = |events: &[Event]| events.iter().map(|event| u64::from(event.calls)).sum::<u64>();
            assert_eq!(calls(&thinned.events) + thinned.behind, calls(&part.events));
            let long = |events: &[Event]| events.iter().filter(|event| event.time == 5000).count();
            assert_eq!(long(&thinned.events), long(&part.events));
            assert!(thinned.events.is_sorted_by_key(|event| event.start));
        }
        let short = thin(&parts[1..2]);
        assert_eq!((short[0].events.len(), short[0].behind), (10, 0));
    }
}
