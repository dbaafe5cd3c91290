//! The trace, for Perfetto and chrome://tracing: DIR/trace.json, in the form of their "JSON Array"
//! of complete events.

use super::arrows::arrows;
use super::thin::{Thinned, thin};
use crate::part::Part;
use serde_json::{Value, json};
use std::fmt::Write;

/// The trace of all parts: tasks are processes there. Times in microseconds after the first
/// LAPI_Init of all.
pub fn trace(parts: &[Part]) -> String {
    let thinned = thin(parts);
    let behind: Vec<u64> = thinned.iter().map(|thinned| thinned.behind).collect();
    let parts: Vec<Part> = parts
        .iter()
        .zip(thinned)
        .map(|(part, Thinned { events, .. })| Part { events, ..without_events(part) })
        .collect();
    let parts = &parts[..];
    let started = parts.iter().map(|part| part.started).min().unwrap_or(0);
    let mut text = String::from("{\"displayTimeUnit\":\"ns\",\n\"traceEvents\":[");
    let mut separator = "\n";
    let mut next = |text: &mut String, event: Value| {
        let _ = write!(text, "{separator}{event}");
        separator = ",\n";
    };
    for part in parts {
        let name = format!("task {} on {}", part.task, part.host);
        next(&mut text, json!({"name": "process_name", "ph": "M", "pid": part.task, "args": {"name": name}}));
        let order = json!({"name": "process_sort_index", "ph": "M", "pid": part.task, "args": {"sort_index": part.task}});
        next(&mut text, order);
        for (thread, name) in part.thread_names.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            let named = json!({"name": "thread_name", "ph": "M", "pid": part.task, "tid": thread, "args": {"name": name}});
            next(&mut text, named);
        }
        for event in &part.events {
            let Some(row) = part.sites.get(event.row as usize) else { continue };
            let mut about = json!({"site": row.site});
            if !row.line.is_empty() {
                about["line"] = json!(row.line);
            }
            if let Some(peer) = event.peer {
                about["peer"] = json!(peer);
                about["bytes"] = json!(event.bytes);
            }
            if event.calls != 1 {
                about["stands_for"] = json!(event.calls);
            }
            let name = if row.class == "handler" { &row.site } else { &row.call };
            let complete = json!({
                "name": name,
                "cat": row.class,
                "ph": "X",
                "pid": part.task,
                "tid": event.thread,
                "ts": (part.started - started).saturating_add(event.start) as f64 / 1e3,
                "dur": event.time as f64 / 1e3,
                "args": about,
            });
            next(&mut text, complete);
        }
    }
    for (number, arrow) in arrows(parts).into_iter().enumerate() {
        for (phase, end) in [("s", arrow.from), ("f", arrow.to)] {
            let (part, event) = (&parts[end.part], &parts[end.part].events[end.event]);
            let at = (part.started - started).saturating_add(event.start);
            let time = if phase == "f" { at.max(arrow.earliest - started) } else { at };
            let event = json!({
                "name": arrow.class, "cat": "message", "ph": phase, "bp": "e", "id": number, "pid": part.task, "tid": event.thread,
                "ts": time as f64 / 1e3,
            });
            next(&mut text, event);
        }
    }
    let tasks: Vec<_> = parts
        .iter()
        .zip(behind)
        .map(|(part, behind)| {
            json!({
                "task": part.task, "kept": part.events.len(), "limit": part.events_limit, "left_out": part.events_left_out,
                "to_come": part.events_to_come.saturating_add(behind),
            })
        })
        .collect();
    let _ = write!(text, "],\n\"otherData\":{}}}\n", json!({"events_of_tasks": tasks}));
    text
}

/// What the trace needs of a part besides its events.
fn without_events(part: &Part) -> Part {
    Part {
        job: String::new(),
        host: part.host.clone(),
        program: String::new(),
        interim: None,
        processors: String::new(),
        sites: part.sites.clone(),
        thread_names: part.thread_names.clone(),
        links: Vec::new(),
        timeline: Vec::new(),
        timeline_bytes: Vec::new(),
        timeline_time: Vec::new(),
        events: Vec::new(),
        ..*part
    }
}
