//! What a task and its launcher send each other.

use super::{Seed, Target, seed};
use crate::wire::launcher::{
    Cause, Collective, Ended, FromLauncher, FromTask, How, LONGEST, Report, Stage, Traffic,
};

/// Reports and the ends of tasks.
pub const LAUNCHER: Target = Target { name: "launcher", feed: launcher, seeds };

fn launcher(bytes: &[u8]) -> bool {
    if let Some(word) = bytes.first_chunk().map(|word| u32::from_le_bytes(*word))
        && let Some(ended) = Ended::from_word(word)
    {
        assert_eq!(ended.to_word(), word);
    }
    // As both sides read it.
    let text = String::from_utf8_lossy(bytes);
    let (task, launcher) = (FromTask::decode(&text), FromLauncher::decode(&text));
    if let Some(message) = &task {
        let again = message.encode();
        assert!(again.len() <= LONGEST.max(text.len()), "{message:?}");
        // A carriage return at the end of a line is not a part of it.
        if !text.contains('\r') {
            assert_eq!(FromTask::decode(&again).as_ref(), Some(message));
        }
    }
    if let Some(message) = &launcher {
        assert_eq!(FromLauncher::decode(&message.encode()).as_ref(), Some(message));
    }
    task.is_some() || launcher.is_some()
}

fn seeds() -> Vec<Seed> {
    let report = Report {
        cause: Cause::Asked(7),
        pid: 42,
        clauses: vec!["waits in LAPI_Gfence for task 3".into()],
        awaited: vec![3],
        collectives: vec![Collective { instance: 0, entered: 5, inside: true }],
        traffic: Traffic { packets: (7, 8), bytes: (64, 0) },
        text: "task 0 of 4\n\n  more".into(),
    };
    let ended = [
        (1, Ended { stage: Stage::Never, how: How::Exit(1) }),
        (2, Ended { stage: Stage::Left, how: How::Signal(9) }),
    ];
    vec![
        seed("enter", FromTask::Enter { pid: 4, task: 1, tasks: 3 }.encode()),
        seed("ready", FromTask::Ready { pid: 4 }.encode()),
        seed("leave", FromTask::Leave { pid: 4 }.encode()),
        seed("report", FromTask::Report(report).encode()),
        seed("ask", FromLauncher::Ask(3).encode()),
        seed("ended", FromLauncher::Ended(0..u32::MAX, ended.into()).encode()),
    ]
}
