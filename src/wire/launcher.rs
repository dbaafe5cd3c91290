//! What a task and its launcher send each other over the socket that LAPI_REPORT_FD names:
//! datagrams of text.
//!
//! ```text
//! task -> launcher   LAPI-REPORT 1 enter\npid P\ntask T N      the first LAPI_Init of the process begins
//!                    LAPI-REPORT 1 ready\npid P               a LAPI_Init has succeeded
//!                    LAPI-REPORT 1 leave\npid P               the last LAPI_Term is over, or LAPI_Init has failed
//!                    LAPI-REPORT 1 CAUSE\npid P\n...\n\ntext  a report; CAUSE is stall, signal, "asked K" or "looked K"
//! launcher -> task   LAPI-REPORT 1 ask K                      asks for a report
//!                    LAPI-REPORT 1 look K                     asks for a short one, for somebody who looks on
//!                    LAPI-REPORT 1 ended\nT STATE HOW N\n...   all tasks that have ended so far
//!                    LAPI-REPORT 1 ended\namong A B\n...       those with numbers from A on, and below B
//! ```
//!
//! The launcher sends the whole list of ended tasks each time, in several messages if it is
//! long, so a message that is late or lost does no harm. Lines that begin with an unknown
//! word are skipped.

use super::bytes::cut;
use std::fmt::{self, Write as _};
use std::ops::Range;

/// How every message begins.
const HEAD: &str = "LAPI-REPORT 1 ";

/// The longest message, in bytes: a datagram always holds that.
pub const LONGEST: usize = 64 << 10;

/// What follows the inode in LAPI_REPORT_FD where the launcher only looks on.
pub const LOOKS: &str = "looks";

/// How the message begins, on standard error, of a task that waits for another one to connect; that
/// one's number follows. The launcher shows it once for all tasks.
pub const WAITING_FOR_TASK: &str = "waiting for task ";

/// A message of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromTask {
    /// The first LAPI_Init of this process begins.
    Enter {
        /// The process.
        pid: i32,
        /// Which task it is.
        task: u32,
        /// Of how many.
        tasks: u32,
    },
    /// A LAPI_Init of this process has succeeded.
    Ready {
        /// The process.
        pid: i32,
    },
    /// This process uses LAPI no more.
    Leave {
        /// The process.
        pid: i32,
    },
    /// A report.
    Report(Report),
}

/// A message of the launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromLauncher {
    /// Asks for a report, with this number.
    Ask(u64),
    /// Asks for a report without its text, with this number. The task does not take it for
    /// one of a stall.
    Look(u64),
    /// Those that have ended, by number, among the tasks with these numbers.
    Ended(Range<u32>, Vec<(u32, Ended)>),
}

/// The numbers of all tasks.
const ALL: Range<u32> = 0..u32::MAX;

/// So many ended tasks are in one message, at most, which is shorter than [`LONGEST`] then.
const MOST_ENDED: usize = 2048;

/// Why a report is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A task's calls have waited for long without progress.
    Stall,
    /// A task has received the signal.
    Signal,
    /// The launcher has asked, with this number.
    Asked(u64),
    /// Somebody looks on, with this number.
    Looked(u64),
}

/// The report of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Why it is made.
    pub cause: Cause,
    /// The process that reports: not the task's own when that is a script.
    pub pid: i32,
    /// What the task does, each to follow the task's name.
    pub clauses: Vec<String>,
    /// The tasks that it waits for.
    pub awaited: Vec<usize>,
    /// The collective calls of its instances.
    pub collectives: Vec<Collective>,
    /// What its instances have moved.
    pub traffic: Traffic,
    /// Everything else, for people.
    pub text: String,
}

/// What a task has sent and received since LAPI_Init.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets, by shared memory and the network.
    pub packets: (u64, u64),
    /// Bytes of the program's data in whole messages, those to the task itself too.
    pub bytes: (u64, u64),
}

/// The position of a task in the collective calls of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collective {
    /// The instance, from 0.
    pub instance: usize,
    /// How many calls it has entered.
    pub entered: u32,
    /// The task is in the last of them.
    pub inside: bool,
}

/// The state of a task's use of LAPI when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The task has not called LAPI_Init.
    Never,
    /// LAPI_Init has not returned.
    Enter,
    /// LAPI_Init has failed.
    Failed,
    /// LAPI_Init has succeeded.
    Ready,
    /// LAPI_Term has returned.
    Left,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The task exited with this status.
    Exit(u8),
    /// This signal ended it.
    Signal(u8),
}

/// The end of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The state of its use of LAPI.
    pub stage: Stage,
    /// How it ended.
    pub how: How,
}

const STAGES: [(Stage, &str, &str); 5] = [
    (Stage::Never, "never", " before it called LAPI_Init"),
    (Stage::Enter, "enter", " in LAPI_Init"),
    (Stage::Failed, "failed", " after its LAPI_Init had failed"),
    (Stage::Ready, "ready", " without calling LAPI_Term"),
    (Stage::Left, "left", " after LAPI_Term"),
];

impl FromTask {
    /// The message as text.
    pub fn encode(&self) -> String {
        match self {
            Self::Enter { pid, task, tasks } => format!("{HEAD}enter\npid {pid}\ntask {task} {tasks}"),
            Self::Ready { pid } => format!("{HEAD}ready\npid {pid}"),
            Self::Leave { pid } => format!("{HEAD}leave\npid {pid}"),
            Self::Report(report) => report.encode(),
        }
    }

    /// Reads a message; `None` when it has no form that is known.
    pub fn decode(message: &str) -> Option<Self> {
        let rest = message.strip_prefix(HEAD)?;
        let (kind, lines) = rest.split_once('\n').unwrap_or((rest, ""));
        let value = |word: &str| lines.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
        let pid = || value("pid")?.parse().ok();
        match kind {
            "enter" => {
                let (task, tasks) = value("task")?.split_once(' ')?;
                Some(Self::Enter { pid: pid()?, task: task.parse().ok()?, tasks: tasks.parse().ok()? })
            }
            "ready" => Some(Self::Ready { pid: pid()? }),
            "leave" => Some(Self::Leave { pid: pid()? }),
            _ => Report::decode(kind, lines).map(Self::Report),
        }
    }
}

impl FromLauncher {
    /// The message as text.
    pub fn encode(&self) -> String {
        match self {
            Self::Ask(number) => format!("{HEAD}ask {number}"),
            Self::Look(number) => format!("{HEAD}look {number}"),
            Self::Ended(ALL, tasks) => format!("{HEAD}ended{}", ended_lines(tasks)),
            Self::Ended(Range { start, end }, tasks) => {
                format!("{HEAD}ended\namong {start} {end}{}", ended_lines(tasks))
            }
        }
    }

    /// The messages that say which tasks have ended: all of them, by number.
    pub fn ended(tasks: Vec<(u32, Ended)>) -> Vec<Self> {
        if tasks.len() <= MOST_ENDED {
            return vec![Self::Ended(ALL, tasks)];
        }
        let mut start = 0;
        let mut rest = tasks.chunks(MOST_ENDED).peekable();
        let mut messages = Vec::new();
        while let Some(part) = rest.next() {
            let end = rest.peek().and_then(|next| next.first()).map_or(u32::MAX, |(task, _)| *task);
            messages.push(Self::Ended(start..end, part.to_vec()));
            start = end;
        }
        messages
    }

    /// Reads a message; `None` when it has no form that is known.
    pub fn decode(message: &str) -> Option<Self> {
        let mut lines = message.strip_prefix(HEAD)?.lines();
        match lines.next()?.split_once(' ') {
            Some(("ask", number)) => Some(Self::Ask(number.trim().parse().ok()?)),
            Some(("look", number)) => Some(Self::Look(number.trim().parse().ok()?)),
            None if message[HEAD.len()..].starts_with("ended") => {
                let mut lines = lines.peekable();
                let mut among = ALL;
                if let Some(numbers) = lines.peek().and_then(|line| line.strip_prefix("among ")) {
                    let (start, end) = numbers.split_once(' ')?;
                    among = start.parse().ok()?..end.parse().ok()?;
                    lines.next();
                }
                Some(Self::Ended(among, lines.map(ended_of).collect::<Option<_>>()?))
            }
            _ => None,
        }
    }
}

fn ended_lines(tasks: &[(u32, Ended)]) -> String {
    let mut text = String::new();
    for (task, Ended { stage, how }) in tasks {
        let word = STAGES.iter().find(|entry| entry.0 == *stage).map_or("never", |entry| entry.1);
        let _ = match how {
            How::Exit(status) => write!(text, "\n{task} {word} exit {status}"),
            How::Signal(signal) => write!(text, "\n{task} {word} signal {signal}"),
        };
    }
    text
}

fn ended_of(line: &str) -> Option<(u32, Ended)> {
    let mut words = line.split(' ');
    let task = words.next()?.parse().ok()?;
    let word = words.next()?;
    let stage = STAGES.iter().find(|entry| entry.1 == word)?.0;
    let how = match (words.next()?, words.next()?.parse().ok()?) {
        ("exit", status) => How::Exit(status),
        ("signal", signal) => How::Signal(signal),
        _ => return None,
    };
    Some((task, Ended { stage, how }))
}

impl Report {
    fn encode(&self) -> String {
        let cause = match &self.cause {
            Cause::Stall => "stall".to_owned(),
            Cause::Signal => "signal".to_owned(),
            Cause::Asked(number) => format!("asked {number}"),
            Cause::Looked(number) => format!("looked {number}"),
        };
        let mut message = format!("{HEAD}{cause}\npid {}\n", self.pid);
        for clause in &self.clauses {
            let _ = writeln!(message, "says {clause}");
        }
        for task in &self.awaited {
            let _ = writeln!(message, "for {task}");
        }
        for Collective { instance, entered, inside } in &self.collectives {
            let _ =
                writeln!(message, "collective {instance} {entered} {}", if *inside { "in" } else { "out" });
        }
        if self.traffic != Traffic::default() {
            let Traffic { packets, bytes } = self.traffic;
            let _ = writeln!(message, "moved {} {} {} {}", packets.0, packets.1, bytes.0, bytes.1);
        }
        message.push('\n');
        message += &self.text;
        if message.len() > LONGEST {
            message.truncate(cut(&message, LONGEST - 16).len());
            message += "\n(cut off)";
        }
        message
    }

    fn decode(cause: &str, rest: &str) -> Option<Self> {
        let cause = match cause {
            "stall" => Cause::Stall,
            "signal" => Cause::Signal,
            other => match other.split_once(' ')? {
                ("asked", number) => Cause::Asked(number.parse().ok()?),
                ("looked", number) => Cause::Looked(number.parse().ok()?),
                _ => return None,
            },
        };
        let (head, text) = rest.split_once("\n\n").unwrap_or((rest, ""));
        let mut report = Self {
            cause,
            pid: 0,
            clauses: Vec::new(),
            awaited: Vec::new(),
            collectives: Vec::new(),
            traffic: Traffic::default(),
            text: text.to_owned(),
        };
        for line in head.lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "pid" => report.pid = rest.parse().ok()?,
                "says" => report.clauses.push(rest.to_owned()),
                "for" => report.awaited.push(rest.parse().ok()?),
                "collective" => report.collectives.push(Collective::decode(rest)?),
                "moved" => report.traffic = Traffic::decode(rest)?,
                _ => {}
            }
        }
        Some(report)
    }
}

impl Traffic {
    fn decode(text: &str) -> Option<Self> {
        let mut numbers = text.split(' ').map(|word| word.parse().ok());
        let mut next = || numbers.next().flatten();
        Some(Self { packets: (next()?, next()?), bytes: (next()?, next()?) })
    }

    /// The sum of both.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let sum = |a: (u64, u64), b: (u64, u64)| (a.0.saturating_add(b.0), a.1.saturating_add(b.1));
        Self { packets: sum(self.packets, other.packets), bytes: sum(self.bytes, other.bytes) }
    }
}

impl Collective {
    fn decode(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let (instance, entered) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Self { instance, entered, inside: words.next()? == "in" })
    }
}

impl Ended {
    /// Whether no task of its number has ever been ready, so that none has ever met the others.
    pub fn was_never_ready(self) -> bool {
        matches!(self.stage, Stage::Never | Stage::Enter | Stage::Failed)
    }

    /// As one word that is not 0.
    pub fn to_word(self) -> u32 {
        let stage = STAGES.iter().position(|entry| entry.0 == self.stage).unwrap_or(0) as u32;
        let (kind, value) = match self.how {
            How::Exit(status) => (1, status),
            How::Signal(signal) => (2, signal),
        };
        kind << 16 | stage << 8 | u32::from(value)
    }

    /// What [`Self::to_word`] made; `None` of 0.
    pub fn from_word(word: u32) -> Option<Self> {
        let value = (word & 0xff) as u8;
        let how = match word >> 16 {
            1 => How::Exit(value),
            2 => How::Signal(value),
            _ => return None,
        };
        Some(Self { stage: STAGES.get((word >> 8 & 0xff) as usize)?.0, how })
    }
}

/// To follow the task's name.
impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.how {
            How::Exit(status) => write!(f, "exited with status {status}")?,
            How::Signal(signal) => {
                write!(f, "was ended by signal {signal}")?;
                // It follows that it did not call LAPI_Term.
                if self.stage == Stage::Ready {
                    return Ok(());
                }
            }
        }
        let when = STAGES.iter().find(|entry| entry.0 == self.stage).map_or("", |entry| entry.2);
        f.write_str(when)
    }
}

#[cfg(test)]
mod tests;
