//! What reads the parts of tasks, and what must hold of whatever it reads ([`openlapi::fuzz`]).

use crate::part::{self, Event, Moved, Part, SiteRow, SizeCount, TaskPair};
use crate::report;
use openlapi::fuzz::{Seed, Target, seed};

/// The targets of the profiler.
pub const TARGETS: &[Target] = &[Target { name: "part", feed: part, seeds }];

/// The input: the file of a part. Others of the same job are made from it.
fn part(bytes: &[u8]) -> bool {
    let Ok(read) = part::parse(bytes) else { return false };
    let again = serde_json::to_vec(&read).expect("a part can be written");
    assert!(part::parse(&again).is_ok_and(|again| again == read));
    let mut next = read.clone();
    (next.task, next.interim) = (read.task.wrapping_add(1), Some("running".into()));
    let parts = part::of_last_job(vec![next, read]);
    assert!(parts.len() <= 2 && parts.iter().all(|part| part.task < part.tasks));
    let report = report::of(&parts);
    assert_eq!(report.task.len(), parts.len());
    let _ = report.incomplete_in_words();
    let trace: serde_json::Value = serde_json::from_str(&report::trace(&parts)).expect("JSON");
    assert!(trace["traceEvents"].is_array());
    assert!(report::page(&report).is_ok());
    true
}

fn seeds() -> Vec<Seed> {
    let moved = Moved { count: 3, bytes: 300, time: 5 };
    let sizes = vec![SizeCount { from: 64, count: 3 }];
    let site = SiteRow {
        call: "LAPI_Put".into(),
        class: "put".into(),
        site: "main+0x12".into(),
        count: 3,
        bytes: 300,
        time: 5,
        sizes: sizes.clone(),
        ..SiteRow::default()
    };
    let link = TaskPair {
        origin: 0,
        target: 1,
        network: true,
        put: moved,
        get: Moved::default(),
        am: Moved::default(),
        rmw: Moved::default(),
        sizes,
    };
    let part = Part {
        format: part::FORMAT,
        job: "MP_PARTITION=7".into(),
        task: 0,
        tasks: 2,
        host: "node".into(),
        pid: 5,
        program: "./a".into(),
        interim: None,
        started: 1_000_000,
        wall: 50_000,
        processors: "0-3".into(),
        cpu: 40_000,
        threads: 1,
        sites: vec![site],
        links: vec![link],
        stretch: 1000,
        timeline: vec![[1; 7]],
        timeline_bytes: vec![[100, 0, 0, 0]],
        timeline_time: vec![[5, 0, 0, 0, 900, 20, 0]],
        events_limit: 10,
        events_left_out: 0,
        events_to_come: 0,
        events: vec![Event { row: 0, thread: 0, start: 10, time: 5, peer: Some(1), bytes: 100, calls: 1 }],
        thread_names: vec!["a".into()],
    };
    vec![seed("part", serde_json::to_vec(&part).expect("a part can be written"))]
}
