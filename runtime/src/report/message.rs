//! The report of this process: gathered from its contexts, and sent to the launcher or printed.

use super::lines::with_lines;
use super::look::{OpenContext, Watched};
use super::process;
use crate::console;
use crate::report::bell;
use openlapi::abi::LAPI_VOID_HANDLE;
use openlapi::base::clock::since;
use openlapi::engine::context::Context;
use openlapi::engine::context::snapshot::{note_reported, snapshot};
use openlapi::engine::context::snapshot_text::{Handlers, Locked};
use openlapi::transport::Task;
use openlapi::wire::launcher::{self, Collective, FromTask, Report, Traffic};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long the reporter tries to get a context's lock.
const MOMENT: Duration = Duration::from_millis(200);
/// After this time a task that was outside of LAPI is checked again: it may be one that polls.
const SECOND_LOOK: Duration = Duration::from_millis(20);

/// What is reported of all contexts of this process.
#[derive(Default)]
pub(super) struct Summary {
    task: Option<Task>,
    /// What the task does, each a clause that follows its name.
    clauses: Vec<String>,
    /// The tasks that it waits for.
    awaited: BTreeSet<Task>,
    /// Of each instance: how many collective operations were entered, and whether one is under way.
    collectives: Vec<(usize, u32, bool)>,
    lines: Vec<String>,
    traffic: Traffic,
    /// No thread of the library serves messages while the program computes.
    deaf: bool,
}

impl Summary {
    /// `looked`: for a viewer; the stall of a task is still to be reported.
    pub(super) fn of(places: &[OpenContext], watched: &[Watched], looked: bool) -> Self {
        let mut summary = Self::default();
        for place in places {
            let Some(context) = place.context.upgrade() else { continue };
            if places.len() > 1 {
                summary.lines.push(format!("instance {}:", place.instance + 1));
            }
            let watched = watched.iter().find(|watched| watched.instance == place.instance);
            summary.context(&context, place.instance, watched, looked);
            let (queued, running) = context.completions.busy();
            let handlers = Handlers { queued, running };
            summary.clauses.extend(handlers.clauses());
            summary.lines.extend(handlers.lines());
        }
        if summary.clauses.is_empty() {
            let deaf = if summary.deaf { ", and INTERRUPT_SET is off" } else { "" };
            summary.clauses.push(format!("is not inside LAPI{deaf}"));
        }
        summary.lines.extend(process::threads());
        summary
    }

    fn context(&mut self, context: &Context, instance: usize, watched: Option<&Watched>, looked: bool) {
        if context.handle() == LAPI_VOID_HANDLE {
            self.clauses.push("is in LAPI_Init, or leaves LAPI_Term".into());
            return;
        }
        self.deaf |= !context.settings.interrupts.load(Ordering::Relaxed);
        match context.enter_within(MOMENT) {
            Ok(Some(mut held)) => {
                let snapshot = snapshot(&mut held);
                if !looked {
                    note_reported(&mut held);
                }
                drop(held);
                self.task = Some(snapshot.me);
                let traffic = Traffic { packets: snapshot.packets, bytes: snapshot.bytes };
                self.traffic = self.traffic.with(traffic);
                self.clauses.extend(snapshot.clauses());
                if snapshot.clauses().is_empty() && polls_again(context, snapshot.polls) {
                    self.clauses.push("calls LAPI again and again, without waiting there".into());
                }
                self.awaited.extend(snapshot.awaited());
                let (entered, current) = &snapshot.collective;
                self.collectives.push((instance, *entered, current.is_some()));
                self.lines.extend(snapshot.lines());
            }
            Ok(None) => {}
            Err(owner) => {
                let run = context.activity.now();
                let since = watched.filter(|watched| watched.run == run && watched.owner == owner);
                let at_least = since.map_or(Duration::ZERO, |watched| self::since(watched.since));
                let by_program = context.lock_is_programs();
                let locked = Locked { owner, run, by_program, at_least };
                self.clauses.push(locked.clause());
                self.lines.push(locked.line());
            }
        }
    }

    /// As the launcher reads it: what its summary needs, then the text.
    pub(super) fn message(&self, cause: &launcher::Cause) -> FromTask {
        let collectives = self.collectives.iter().map(|&(instance, entered, inside)| Collective {
            instance,
            entered,
            inside,
        });
        FromTask::Report(Report {
            cause: cause.clone(),
            pid: std::process::id() as i32,
            clauses: self.clauses.clone(),
            awaited: self.awaited.iter().map(|task| *task as usize).collect(),
            collectives: collectives.collect(),
            traffic: self.traffic,
            text: if matches!(cause, launcher::Cause::Looked(_)) {
                String::new()
            } else {
                self.lines.join("\n")
            },
        })
    }
}

/// Whether the program has looked for messages by itself since it had done so `polls` times.
fn polls_again(context: &Context, polls: u64) -> bool {
    std::thread::sleep(SECOND_LOOK);
    context.enter_within(MOMENT).is_ok_and(|held| held.is_some_and(|mut held| held.polls() != polls))
}

/// Without a launcher that would gather it, the report goes to standard error: in one piece, each
/// line with the task's number.
pub(super) fn print(summary: &Summary, cause: &launcher::Cause) {
    let task = summary.task.or_else(console::task).map_or_else(|| "?".into(), |task| task.to_string());
    let because = match cause {
        launcher::Cause::Stall => format!("no progress for {} s", bell::stall().as_secs()),
        _ => "requested".to_owned(),
    };
    let pid = std::process::id();
    let mut text = format!("LAPI: task {task}: report of process {pid} ({because})\n");
    for clause in &summary.clauses {
        let _ = writeln!(text, "LAPI: task {task}: it {clause}");
    }
    for line in &summary.lines {
        let _ = writeln!(text, "LAPI: task {task}: {line}");
    }
    console::write(&with_lines(&text));
}
