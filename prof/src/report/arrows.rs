//! Which event of a target belongs to which event of an origin: the arrows of the trace.
//!
//! Events have no number of their message, which would cost the messages room. An active message
//! leads to the next run of a header handler for the same origin that did not end before, which is
//! right while handlers run in the order of the calls. A put leads to the call of the target that
//! waited for it at the earliest: the first one that waits or polls and ends after the put has
//! begun. Where that one stands for others without an event, and began after the put, it may be one
//! of those that waited; then the put has no arrow.

use crate::part::{Event, Part};
use std::collections::HashMap;

/// More than that are no picture any more.
const MOST: usize = 20_000;

/// An event by its part, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventIndex {
    pub part: usize,
    pub event: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Arrow {
    /// `am` or `put`.
    pub class: &'static str,
    pub from: EventIndex,
    pub to: EventIndex,
    /// The arrow does not end before: the time at which the origin's call began, in ns since 1970.
    pub earliest: u64,
}

/// The arrows of all messages whose other end is in the trace, by time.
pub fn arrows(parts: &[Part]) -> Vec<Arrow> {
    let by_task: HashMap<u32, usize> = parts.iter().enumerate().map(|(at, part)| (part.task, at)).collect();
    let handlers = handlers(parts);
    let waits: Vec<Vec<usize>> = parts.iter().map(waits).collect();
    let mut found = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let mut counts: HashMap<u32, usize> = HashMap::new();
        for event in by_time(part, |event| matches!(class(part, event), "am" | "put")) {
            let (class, began) = (class(part, &part.events[event]), start(part, &part.events[event]));
            let Some(peer) = part.events[event].peer else { continue };
            let from = EventIndex { part: at, event };
            let to = if class == "am" {
                handlers.get(&(peer, part.task)).and_then(|runs| {
                    let next = counts.entry(peer).or_default();
                    let ends = |run: &EventIndex| end(&parts[run.part], &parts[run.part].events[run.event]);
                    *next += runs[*next..].iter().take_while(|run| ends(run) < began).count();
                    let run = runs.get(*next).copied()?;
                    let of = &parts[run.part];
                    let event = &of.events[run.event];
                    // It may stand for runs of others before it, of which one is this message's.
                    let certain = event.calls == 1 || start(of, event) <= began;
                    certain.then(|| *next += 1)?;
                    Some(run)
                })
            } else {
                by_task.get(&peer).and_then(|target| {
                    let (list, of) = (&waits[*target], &parts[*target]);
                    let next = list.partition_point(|wait| end(of, &of.events[*wait]) <= began);
                    let event = *list.get(next)?;
                    let wait = &of.events[event];
                    let certain = wait.calls == 1 || start(of, wait) <= began;
                    certain.then_some(EventIndex { part: *target, event })
                })
            };
            let class = if class == "am" { "am" } else { "put" };
            found.extend(to.map(|to| Arrow { class, from, to, earliest: began }));
        }
    }
    found.sort_by_key(|arrow| arrow.earliest);
    found.truncate(MOST);
    found
}

/// The runs of header handlers by target and origin, in the order of time.
fn handlers(parts: &[Part]) -> HashMap<(u32, u32), Vec<EventIndex>> {
    let mut runs: HashMap<(u32, u32), Vec<EventIndex>> = HashMap::new();
    for (at, part) in parts.iter().enumerate() {
        for event in by_time(part, |event| row(part, event).is_some_and(|call| call == "header handler")) {
            if let Some(peer) = part.events[event].peer {
                runs.entry((part.task, peer)).or_default().push(EventIndex { part: at, event });
            }
        }
    }
    runs
}

/// The calls that wait or poll, by their end.
fn waits(part: &Part) -> Vec<usize> {
    let mut waits = by_time(part, |event| class(part, event) == "wait");
    waits.sort_by_key(|event| end(part, &part.events[*event]));
    waits
}

fn by_time(part: &Part, wanted: impl Fn(&Event) -> bool) -> Vec<usize> {
    let mut found: Vec<usize> = (0..part.events.len()).filter(|at| wanted(&part.events[*at])).collect();
    found.sort_by_key(|at| part.events[*at].start);
    found
}

fn class<'a>(part: &'a Part, event: &Event) -> &'a str {
    part.sites.get(event.row as usize).map_or("", |row| &row.class)
}

fn row<'a>(part: &'a Part, event: &Event) -> Option<&'a str> {
    part.sites.get(event.row as usize).map(|row| &*row.call)
}

fn start(part: &Part, event: &Event) -> u64 {
    part.started.saturating_add(event.start)
}

fn end(part: &Part, event: &Event) -> u64 {
    start(part, event).saturating_add(event.time)
}

#[cfg(test)]
mod tests {
    use super::{EventIndex, arrows};
    use crate::part::{Event, Part, SiteRow};

    fn part(task: u32, events: &[(&str, u64, u64, u32)]) -> Part {
        let names = ["put", "wait", "am", "header handler"];
        let row =
            |name: &str| SiteRow { class: name.to_owned(), call: name.to_owned(), ..SiteRow::default() };
        let sites = names.map(row).to_vec();
        let events = events.iter().map(|(class, start, time, calls)| {
            let row = names.iter().position(|name| name == class).expect("a class") as u32;
            let peer = (*class != "wait").then_some(1 - task);
            Event { row, thread: 0, start: *start, time: *time, peer, bytes: 8, calls: *calls }
        });
        Part { sites, events: events.collect(), ..Part::empty(task) }
    }

    #[test]
    fn a_put_has_no_arrow_to_a_wait_that_stands_for_others_and_began_later() {
        let origin = part(0, &[("put", 10, 2, 1), ("put", 30, 2, 61), ("put", 50, 2, 61), ("put", 99, 2, 1)]);
        let target = part(1, &[("wait", 5, 10, 1), ("wait", 40, 5, 61), ("wait", 45, 20, 61)]);
        let found: Vec<(EventIndex, EventIndex)> =
            arrows(&[origin, target]).into_iter().map(|arrow| (arrow.from, arrow.to)).collect();
        let arrow = |put, wait| (EventIndex { part: 0, event: put }, EventIndex { part: 1, event: wait });
        assert_eq!(found, [arrow(0, 0), arrow(2, 2)]);
    }

    #[test]
    fn a_message_has_no_arrow_to_a_handler_that_stands_for_others_and_ran_later() {
        let origin = part(0, &[("am", 10, 1, 1), ("am", 20, 1, 1), ("am", 90, 1, 1)]);
        // The first eight have been left out of the trace.
        let target = part(1, &[("header handler", 80, 2, 9), ("header handler", 95, 2, 1)]);
        let found: Vec<(usize, usize)> =
            arrows(&[origin, target]).into_iter().map(|arrow| (arrow.from.event, arrow.to.event)).collect();
        assert_eq!(found, [(2, 1)]);
    }
}
