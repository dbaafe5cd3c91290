//! What a report, its trace and its page must be.

use crate::{json, list, number, row};
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// What the tasks did in the course of time is not more than the time that they had, and not less
/// than they have waited.
pub fn check_lanes(report: &Value) {
    let lanes = &report["lanes"];
    let (columns, stretch) = (number(lanes, "columns") as usize, number(lanes, "stretch") as f64);
    let tasks = list(report, "task");
    assert_eq!(list(lanes, "rows").len(), tasks.len());
    for (row, task) in list(lanes, "rows").iter().zip(tasks) {
        assert_eq!((number(row, "first"), number(row, "last")), (number(task, "task"), number(task, "task")));
        let thousandths = |list: &Value| -> Vec<f64> {
            let numbers: Vec<f64> =
                list.as_array().expect("numbers").iter().map(|n| n.as_f64().expect("one") / 1e3).collect();
            assert_eq!(numbers.len(), columns);
            assert!(numbers.iter().all(|part| (0.0..=1.0).contains(part)), "{row}");
            numbers
        };
        let ran = thousandths(&row["ran"]);
        let sum_of =
            |share: &[f64]| share.iter().zip(&ran).map(|(share, ran)| share * ran * stretch).sum::<f64>();
        let wall = number(task, "wall") as f64;
        // Each column is rounded to a thousandth.
        let rounding = columns as f64 * stretch / 1e3;
        assert!((ran.iter().sum::<f64>() * stretch - wall).abs() <= rounding, "{row}\n{task}");
        let shares: Vec<Vec<f64>> =
            row["share"].as_object().expect("classes").values().map(thousandths).collect();
        let inside: f64 = shares.iter().map(|share| sum_of(share)).sum();
        assert!(inside > 0.0 && inside <= wall + 8.0 * rounding, "{row}\n{task}");
        if number(task, "threads") == 1 {
            // What handlers do inside of calls is not counted twice here.
            let all = (number(task, "inside") + number(task, "handlers")) as f64;
            assert!(inside <= all + 8.0 * rounding, "{inside} ns of {all}\n{row}\n{task}");
            assert!(inside >= number(task, "inside") as f64 - 8.0 * rounding, "{inside} ns\n{row}\n{task}");
        }
    }
}

/// The report says what the program did, in each of `times` handles.
pub fn check(report: &Value, tasks: u64, times: u64) {
    check_lanes(report);
    assert_eq!(number(report, "tasks"), tasks);
    assert!(list(report, "missing").is_empty());
    assert_eq!(list(report, "task").len() as u64, tasks);

    // The communication matrix: only a ring.
    let moved = |link: &Value, kind: &str| [number(&link[kind], "count"), number(&link[kind], "bytes")];
    assert_eq!(list(report, "links").len() as u64, tasks, "{report:#}");
    for (me, link) in (0..tasks).zip(list(report, "links")) {
        assert_eq!((number(link, "origin"), number(link, "target")), (me, (me + 1) % tasks));
        let puts = 7 * (me + 1);
        assert_eq!(
            moved(link, "put"),
            [times * (puts + 3 + 1), times * (100 * puts + 3 * 4096 + 30)],
            "{link:#}"
        );
        assert_eq!(moved(link, "get"), [times * 6, times * 6 * 64], "{link:#}");
        assert_eq!(moved(link, "am"), [times * 7, times * (6 * 32 + 48)], "{link:#}");
        assert_eq!(moved(link, "rmw"), [times * 7, times * (6 * 4 + 8)], "{link:#}");
    }

    // Places, by the names of functions that no dynamic table has.
    let all_puts: u64 = (1..=tasks).map(|at| 7 * at).sum();
    let n = tasks * times;
    assert_eq!(row(report, "sites", "LAPI_Put", "put_some+0x"), [times * all_puts, times * 100 * all_puts]);
    assert_eq!(row(report, "sites", "LAPI_Put", ""), row(report, "calls", "LAPI_Put", ""));
    for (call, place, count, bytes) in [
        ("LAPI_Xfer PUT", "traffic+0x", 3, 3 * 4096),
        ("LAPI_Xfer GET", "traffic+0x", 1, 64),
        ("LAPI_Get", "gets+0x", 5, 320),
        ("LAPI_Amsend", "traffic+0x", 6, 192),
        ("LAPI_Amsendv", "traffic+0x", 1, 48),
        ("LAPI_Putv", "traffic+0x", 1, 30),
        ("LAPI_Rmw", "traffic+0x", 6, 24),
        ("LAPI_Rmw64", "traffic+0x", 1, 8),
        ("LAPI_Addr_set", "traffic+0x", 1, 0),
        ("LAPI_Init", "", 1, 0),
    ] {
        assert_eq!(row(report, "sites", call, place), [n * count, n * bytes], "{call} from {place}");
    }
    let errors: u64 = list(report, "calls").iter().map(|row| number(row, "errors")).sum();
    assert_eq!(errors, n);

    // Handlers, also those that the origin names by their address.
    for (kind, name, count, bytes) in [
        ("header handler", "on_header", 6, 6 * 32),
        ("header handler", "on_vector_header", 1, 48),
        ("completion handler", "on_complete", 7, 0),
        ("completion handler", "on_got", 1, 0),
        ("send completion handler", "on_sent", 3, 0),
    ] {
        assert_eq!(row(report, "handlers", kind, name), [n * count, n * bytes], "{name}");
    }
    assert_eq!(list(report, "handlers").len(), 5, "{:#}", report["handlers"]);

    let sizes = |kind: &str| -> Vec<[u64; 2]> {
        list(&report["sizes"], kind)
            .iter()
            .map(|size| [number(size, "from"), number(size, "count")])
            .collect()
    };
    assert_eq!(sizes("put"), [[16, n], [64, times * all_puts], [4096, 3 * n]]);
    assert_eq!(sizes("get"), [[64, 6 * n]]);
    assert_eq!(sizes("am"), [[32, 7 * n]]);
    assert_eq!(sizes("rmw"), [[4, 6 * n], [8, n]]);

    // Each task's time inside of LAPI by what it did, and what the numbers mean.
    for task in list(report, "task") {
        let classed = number(task, "waiting") + number(task, "moving");
        assert!(number(task, "waiting") > 0 && number(task, "moving") > 0, "{task:#}");
        assert!(classed <= number(task, "inside"), "{task:#}");
    }
    let mut findings: Vec<&str> = list(report, "findings").iter().filter_map(Value::as_str).collect();
    // Of three tasks on two processors the first finding says so.
    let crowded = findings[0].contains(" tasks on ");
    let also = if crowded { ", some of it for a processor." } else { "." };
    findings.drain(..usize::from(crowded));
    assert!(findings[0].contains(" % of the time in LAPI is LAPI_"), "{findings:?}");
    assert!(
        findings[1].ends_with(&format!("of their time in calls that wait or poll{also}")),
        "{findings:?}"
    );
    let failed =
        if errors == 1 { "1 call has failed; ".into() } else { format!("{errors} calls have failed; ") };
    assert!(findings.iter().any(|said| said.starts_with(&failed)), "{findings:?}");

    // The calls over time are complete too.
    let (counts, bytes) = (&report["timeline"]["counts"], &report["timeline"]["bytes"]);
    for kind in ["put", "get", "am", "rmw"] {
        for (at, over_time) in [counts, bytes].into_iter().enumerate() {
            let over_time: u64 = list(over_time, kind).iter().map(|count| count.as_u64().unwrap()).sum();
            let by_calls: u64 = list(report, "links").iter().map(|link| moved(link, kind)[at]).sum();
            assert_eq!(over_time, by_calls, "{kind}");
        }
    }
}

/// Returns how many events there are, after [`check_events`] and [`check_arrows`].
pub fn check_trace(out: &Path) -> [u64; 2] {
    let trace = json(&out.join("trace.json"));
    check_arrows(&trace);
    check_events(&trace)
}

/// Each thread's events follow each other. Returns how many there are, and for how many calls they
/// stand, with those after them and those that found no room.
pub fn check_events(trace: &Value) -> [u64; 2] {
    let mut last: HashMap<(u64, u64), f64> = HashMap::new();
    let (mut count, mut stands_for) = (0, 0);
    for event in list(trace, "traceEvents").iter().filter(|event| event["ph"] == "X") {
        let (begin, time) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
        let before = last.entry((number(event, "pid"), number(event, "tid"))).or_insert(0.0);
        assert!(begin >= *before && time >= 0.0, "{event}");
        *before = begin;
        count += 1;
        stands_for += event["args"]["stands_for"].as_u64().unwrap_or(1);
    }
    for task in list(&trace["otherData"], "events_of_tasks") {
        assert!(number(task, "kept") <= number(task, "limit"), "{task}");
        stands_for += number(task, "left_out") + number(task, "to_come");
    }
    [count, stands_for]
}

/// Threads have names; each arrow has two ends, on events of two tasks that have to do with each
/// other, and goes forward.
fn check_arrows(trace: &Value) {
    let events = list(trace, "traceEvents");
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).cloned().collect::<Vec<_>>();
    assert!(events.iter().any(|event| event["name"] == "thread_name"), "no thread has a name");
    let (starts, ends, spans) = (of("s"), of("f"), of("X"));
    assert_eq!(starts.len(), ends.len());
    // A span that begins there, or encloses the time.
    let span = |at: &Value, class: &str| {
        let time = at["ts"].as_f64().unwrap();
        let found = spans.iter().find(|span| {
            let (begin, time_of) = (span["ts"].as_f64().unwrap(), span["dur"].as_f64().unwrap());
            let encloses = begin <= time + 0.01 && time <= begin + time_of + 0.01;
            span["pid"] == at["pid"] && span["tid"] == at["tid"] && span["cat"] == class && encloses
        });
        found.unwrap_or_else(|| panic!("no {class} at {at}"))
    };
    for (start, end) in starts.iter().zip(&ends) {
        assert!(start["id"] == end["id"] && start["ts"].as_f64() <= end["ts"].as_f64(), "{start} {end}");
        let class = start["name"].as_str().unwrap();
        let from = span(start, class);
        assert_eq!(from["args"]["peer"], end["pid"], "{from}");
        span(end, if class == "am" { "handler" } else { "wait" });
    }
}

/// The page loads no other files, and contains the report.
pub fn check_page(out: &Path) {
    let page = fs::read_to_string(out.join("report.html")).expect("there is a page");
    for reference in
        ["http:", "https:", "//cdn", "src=", "href=", "@import", "url(", "fetch(", "XMLHttpRequest"]
    {
        assert!(!page.contains(reference), "the page has \"{reference}\"");
    }
    let (_, rest) =
        page.split_once("<script type=\"application/json\" id=\"data\">").expect("the page has data");
    let (data, _) = rest.split_once("</script>").expect("the data ends");
    let data: Value = serde_json::from_str(data).expect("the data is JSON");
    assert_eq!(data, json(&out.join("report.json")));
}

pub fn calls_and_handlers(report: &Value) -> u64 {
    ["calls", "handlers"].iter().flat_map(|table| list(report, table)).map(|row| number(row, "count")).sum()
}
