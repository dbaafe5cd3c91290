//! A snapshot of a context as text: a few clauses about what the task does, for a summary, and the
//! complete text.

use crate::base::call_stack::{CodeLocation, call_of_program, mark};
use crate::base::callers;
use crate::base::clock::since;
use crate::base::known_threads::thread_number;
use crate::engine::context::active_handler::Run;
use crate::engine::context::completion_queue::RunningHandler;
use crate::engine::context::snapshot::{Few, LISTED, Peer, Snapshot, Wait, age, seconds};
use crate::transport::{PeerState, Task};
use std::fmt::Write as _;
use std::time::Duration;

/// Why a context's lock cannot be taken.
#[derive(Clone, Debug)]
pub struct Locked {
    /// The thread that holds it (see [`crate::base::known_threads::this_thread`]); 0: one
    /// after another.
    pub owner: usize,
    /// The handler that runs in it.
    pub run: Option<Run>,
    /// The program holds it by itself (the manual's chapter 12).
    pub by_program: bool,
    /// For how long at least this has been the case.
    pub at_least: Duration,
}

/// Completion handlers of a context.
#[derive(Clone, Debug)]
pub struct Handlers {
    /// How many are queued.
    pub queued: usize,
    /// Those that run.
    pub running: Vec<RunningHandler>,
}

/// How a thread is named: by the system's number and its name, or by its address when
/// these are unknown.
pub fn thread(thread: usize) -> String {
    match thread_number(thread) {
        Some(number) => {
            let name = std::fs::read_to_string(format!("/proc/self/task/{number}/comm")).unwrap_or_default();
            format!("thread {number} ({})", name.trim())
        }
        None => format!("thread {thread:#x}"),
    }
}

/// `task 3`, `tasks 1, 4 and 5`; a long list is cut.
pub fn tasks(list: &[Task]) -> String {
    match list {
        [] => "no task".into(),
        [one] => format!("task {one}"),
        [first @ .., last] if list.len() <= LISTED => {
            let first: Vec<String> = first.iter().map(Task::to_string).collect();
            format!("tasks {} and {last}", first.join(", "))
        }
        _ => {
            let first: Vec<String> = list[..LISTED].iter().map(Task::to_string).collect();
            format!("tasks {} and {} more", first.join(", "), list.len() - LISTED)
        }
    }
}

impl Wait {
    fn clause(&self) -> String {
        let call = self.waiter.awaited.call;
        let place = self.place();
        match (&self.awaited[..], self.waiter.awaited.counter) {
            ([], Some(_)) => {
                format!(
                    "waits in {call} for a counter that no pending operation of this task will increment{place}"
                )
            }
            ([], None) => format!("waits in {call}{place}"),
            (list, _) => format!("waits in {call} for {}{}{place}", tasks(list), self.which()),
        }
    }

    /// From where the program has called.
    fn place(&self) -> String {
        let Some(place) = call_of_program(&self.waiter.stack) else { return String::new() };
        let interpreted = thread_number(self.waiter.thread).and_then(callers::place);
        let place = interpreted.unwrap_or_else(|| mark(&place.file, place.address));
        format!(", called in {place}")
    }

    /// The text about the awaited task when it has never connected.
    fn which(&self) -> String {
        self.absence.as_ref().map_or_else(String::new, |absence| format!(", which {absence}"))
    }

    fn line(&self) -> String {
        let waiter = &self.waiter;
        let time = seconds(since(waiter.since));
        let mut line = format!("{} has waited in {} for {time}", thread(waiter.thread), waiter.awaited.call);
        if let (Some((address, wanted)), Some(value)) = (waiter.awaited.counter, self.value) {
            let _ = write!(line, ": the counter at {address:#x} is {value}, wanted is {wanted}");
        }
        if !self.awaited.is_empty() {
            let _ = write!(line, "; for {}{}", tasks(&self.awaited), self.which());
        }
        line + &self.place()
    }
}

impl Snapshot {
    /// What the task does, as clauses that follow its name; none when it is not inside of LAPI.
    pub fn clauses(&self) -> Vec<String> {
        let mut clauses: Vec<String> = self.waits.iter().map(Wait::clause).collect();
        if self.polling != 0 {
            clauses.push("is inside LAPI and polls".into());
        }
        if self.dispatcher != 0 {
            clauses.push("is in its error handler".into());
        }
        clauses
    }

    /// The tasks that its threads wait for.
    pub fn awaited(&self) -> impl Iterator<Item = Task> + '_ {
        self.waits.iter().flat_map(|wait| wait.awaited.iter().copied())
    }

    /// All of it, in lines.
    pub fn lines(&self) -> Vec<String> {
        let (sent, received) = self.packets;
        let mut lines = vec![format!(
            "task {} of {} on transport {}: {sent} packets sent, {received} received",
            self.me, self.tasks, self.transport
        )];
        let mut add = |line: String| lines.push(format!("  {line}"));
        self.waits.iter().for_each(|wait| add(wait.line()));
        if self.polling != 0 {
            add(format!("{} more threads wait, and still poll", self.polling));
        }
        if self.dispatcher != 0 {
            add(format!("{} is in the error handler", thread(self.dispatcher)));
        }
        let (entered, current) = &self.collective;
        match current {
            Some((round, peers)) if !peers.is_empty() => add(format!(
                "collective calls: {entered} entered; number {entered} is in round {round} and needs the {} of {}",
                if peers.len() == 1 { "packet" } else { "packets" },
                tasks(peers)
            )),
            Some((round, _)) => add(format!("collective calls: {entered} entered; in round {round}")),
            None => add(format!("collective calls: {entered} entered, none under way")),
        }
        list(&mut add, "operations that wait for a reply", &self.operations, String::clone);
        list(&mut add, "peers", &self.peers, peer);
        list(&mut add, "copies across address spaces", &self.copies, |(peer, copied, len)| {
            format!("with task {peer}: {copied} of {len} bytes")
        });
        list(&mut add, "messages being assembled", &self.assemblies, String::clone);
        list(
            &mut add,
            "packets that came before the first one of their message",
            &self.early,
            |(src, count)| format!("from task {src}: {count}"),
        );
        list(
            &mut add,
            "messages that a header handler has dropped, to be offered again",
            &self.dropped,
            |src| format!("from task {src}"),
        );
        if self.to_self != 0 {
            add(format!("messages to itself that wait for a handler to return: {}", self.to_self));
        }
        if !self.lost.is_empty() {
            add(format!("lost: {}", tasks(&self.lost)));
        }
        lines
    }
}

fn list<T>(add: &mut impl FnMut(String), what: &str, few: &Few<T>, one: impl Fn(&T) -> String) {
    if few.count == 0 {
        return;
    }
    add(format!("{what}: {}", few.count));
    few.list.iter().for_each(|item| add(format!("  {}", one(item))));
    if few.count > few.list.len() {
        add(format!("  and {} more", few.count - few.list.len()));
    }
}

fn peer(peer: &Peer) -> String {
    let Peer { traffic, state, polls, view, absence } = peer;
    let mut line = format!("task {}: ", traffic.peer);
    line += match (state, view) {
        _ if absence.is_some() => absence.as_deref().unwrap_or_default(),
        (PeerState::Closed, _) => "has ended LAPI",
        (PeerState::Dead, _) => "has ended without calling LAPI_Term",
        (PeerState::Connecting, _) => "is not connected yet",
        (PeerState::Up, _) if *polls => "polls for packets",
        (PeerState::Up, Some(view)) if view.asleep => "sleeps",
        (PeerState::Up, _) => "does not poll for packets",
    };
    if let Some(view) = view {
        let full = if view.no_room { ", no room" } else { "" };
        let _ = write!(line, "; its ring holds at most {} of {} packets{full}", view.in_flight, view.window);
        if view.arrived {
            line += "; a packet from it waits here";
        }
    }
    if traffic.parked != 0 {
        let _ = write!(line, "; {} packets wait for room ({} bytes)", traffic.parked, traffic.parked_bytes);
    }
    for (sent, total) in traffic.streams.iter().take(4) {
        let _ = write!(line, "; a stream has sent {sent} of {total} bytes");
    }
    if traffic.streams.len() > 4 {
        let _ = write!(line, "; {} more streams", traffic.streams.len() - 4);
    }
    if traffic.parked != 0 || !traffic.streams.is_empty() {
        let _ = write!(line, " ({})", age(traffic.seen));
    }
    if let Some(asked) = traffic.asked {
        let _ = write!(line, "; a fence has asked it to confirm {asked} messages");
    }
    line
}

/// A function of the program: its mark, or the address alone where no file is.
fn function(address: usize) -> String {
    match CodeLocation::of(address) {
        Some(place) => mark(&place.file, place.address),
        None => format!("{address:#x}"),
    }
}

impl Locked {
    /// What the task does, as a clause that follows its name.
    pub fn clause(&self) -> String {
        let time = if self.at_least.is_zero() {
            String::new()
        } else {
            format!(" for at least {}", seconds(self.at_least))
        };
        match self.run {
            Some(run) => format!("has been in {}, {},{time}", run.kind.name(), function(run.address))
                .trim_end_matches(',')
                .to_owned(),
            None if self.owner == 0 => "is inside LAPI and very busy".into(),
            None if self.by_program => format!("holds the lock that it shares with LAPI{time}"),
            None => format!("holds LAPI's lock outside of any handler{time}"),
        }
    }

    /// All of it.
    pub fn line(&self) -> String {
        let what = self.clause();
        match self.owner {
            0 => format!("LAPI's lock was not available: the task {what}"),
            owner => format!("LAPI's lock was not available: {} {what}", thread(owner)),
        }
    }
}

impl Handlers {
    /// What the task does, as clauses that follow its name.
    pub fn clauses(&self) -> Vec<String> {
        let clause = |since| {
            format!("has been in a completion handler for {}", seconds(crate::base::clock::since(since)))
        };
        self.running.iter().take(LISTED).map(|running| clause(running.since)).collect()
    }

    /// All of it, in lines.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.queued != 0 || !self.running.is_empty() {
            lines.push(format!(
                "  completion handlers: {} run, {} are queued",
                self.running.len(),
                self.queued
            ));
        }
        lines.extend(self.running.iter().take(LISTED).map(|running| {
            let time = seconds(since(running.since));
            format!("    {} has been in {} for {time}", thread(running.thread), function(running.address))
        }));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::known_threads::{note_thread, this_thread};

    #[test]
    fn lists_of_tasks_are_cut() {
        assert_eq!(tasks(&[]), "no task");
        assert_eq!(tasks(&[7]), "task 7");
        assert_eq!(tasks(&[1, 2, 9]), "tasks 1, 2 and 9");
        let many: Vec<Task> = (0..20).collect();
        assert!(tasks(&many).ends_with(", 14, 15 and 4 more"), "{}", tasks(&many));
    }

    #[test]
    fn times_are_reported_in_tenths() {
        assert_eq!(seconds(Duration::from_millis(12_390)), "12.3 s");
        assert_eq!(seconds(Duration::ZERO), "0.0 s");
    }

    #[test]
    fn why_the_lock_cannot_be_had() {
        let run = Some(Run {
            kind: crate::engine::context::active_handler::HandlerKind::Header,
            address: 0x10,
            number: 3,
        });
        let mut locked =
            Locked { owner: this_thread(), run, by_program: false, at_least: Duration::from_millis(2500) };
        assert_eq!(locked.clause(), "has been in a header handler, 0x10, for at least 2.5 s");
        note_thread();
        let number = rustix::thread::gettid().as_raw_pid();
        assert!(locked.line().starts_with(&format!("LAPI's lock was not available: thread {number} (")));
        locked.run = None;
        assert_eq!(locked.clause(), "holds LAPI's lock outside of any handler for at least 2.5 s");
        locked.by_program = true;
        assert_eq!(locked.clause(), "holds the lock that it shares with LAPI for at least 2.5 s");
        locked.by_program = false;
        (locked.owner, locked.at_least) = (0, Duration::ZERO);
        assert_eq!(locked.clause(), "is inside LAPI and very busy");
        assert_eq!(thread(0x1234), "thread 0x1234");
    }
}
