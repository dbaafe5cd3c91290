//! liblapiprof.so: what it counts is what the program did, and what it writes can be read.

mod ltest;

use ltest::{passed, run};
use openlapi_tests::{Hosts, Job, Launcher, Outcome, build_dir, compile, skipped, stage};
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of a report, new and empty.
fn folder(name: &str) -> PathBuf {
    let path = build_dir().join("tests/lapiprof").join(name);
    let _ = fs::remove_dir_all(&path);
    path
}

fn profiler() -> PathBuf {
    stage().join("lib/liblapiprof.so")
}

/// A job of the program that moves known amounts, with the profiler preloaded.
fn job(tasks: usize, how: &str, out: &Path) -> Job {
    ltest::job("profiling/traffic", tasks, how).env("LD_PRELOAD", profiler()).env("LAPIPROF_OUT", out)
}

fn json(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn list<'a>(value: &'a Value, name: &str) -> &'a Vec<Value> {
    value[name].as_array().unwrap_or_else(|| panic!("{name} is not a list: {value}"))
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("{name} is not a number: {value}"))
}

/// Count and bytes of all rows with this call and a name of the place that begins so.
fn row(report: &Value, table: &str, call: &str, place: &str) -> [u64; 2] {
    let rows = list(report, table).iter();
    rows.filter(|row| row["call"] == call && row["site"].as_str().is_some_and(|site| site.starts_with(place)))
        .fold([0, 0], |sum, row| [sum[0] + number(row, "count"), sum[1] + number(row, "bytes")])
}

/// The report says what the program did, in each of `times` handles.
/// What the tasks did in the course of time is not more than the time that they had, and not less than they have waited.
fn check_lanes(report: &Value) {
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

fn check(report: &Value, tasks: u64, times: u64) {
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

    // Handlers: those that can be reached, no others.
    for (kind, name, count, bytes) in [
        ("header handler", "on_header", 4, 4 * 32),
        ("completion handler", "on_complete", 4, 0),
        ("completion handler", "on_got", 1, 0),
        ("send completion handler", "on_sent", 3, 0),
    ] {
        assert_eq!(row(report, "handlers", kind, name), [n * count, n * bytes], "{name}");
    }
    assert_eq!(list(report, "handlers").len(), 4, "{:#}", report["handlers"]);

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
    let findings: Vec<&str> = list(report, "findings").iter().filter_map(Value::as_str).collect();
    assert!(findings[0].contains(" % of the time in LAPI is LAPI_"), "{findings:?}");
    assert!(findings[1].ends_with("of their time in calls that wait or poll."), "{findings:?}");
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

/// The trace is one, and each thread's events follow each other. Returns how many there are.
fn check_trace(out: &Path) -> u64 {
    let trace = json(&out.join("trace.json"));
    let mut last: HashMap<(u64, u64), f64> = HashMap::new();
    let mut count = 0;
    for event in list(&trace, "traceEvents").iter().filter(|event| event["ph"] == "X") {
        let (begin, time) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
        let before = last.entry((number(event, "pid"), number(event, "tid"))).or_insert(0.0);
        assert!(begin >= *before && time >= 0.0, "{event}");
        *before = begin;
        count += 1;
    }
    check_arrows(&trace);
    for task in list(&trace["otherData"], "events_of_tasks") {
        assert!(number(task, "kept") <= number(task, "limit"), "{task}");
    }
    count
}

/// Threads have names; each arrow has two ends, on events of two tasks that have to do with each other, and goes forward.
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
fn check_page(out: &Path) {
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

fn tables(outcome: &Outcome) -> usize {
    outcome
        .stderr
        .lines()
        .filter(|line| line.starts_with("lapiprof: task ") && line.contains(" calls in "))
        .count()
}

#[test]
fn the_report_says_what_the_program_did() {
    run("profiling/traffic", 2, "");
    for tasks in [1, 2, 3] {
        let out = folder(&format!("counts-{tasks}"));
        let outcome = job(tasks, "", &out).run();
        passed(&outcome, tasks);
        assert_eq!(tables(&outcome), tasks, "{outcome}");
        outcome.says("put_some+0x");
        let report = json(&out.join("report.json"));
        check(&report, tasks as u64, 1);
        check_page(&out);
        // The source lines are those of the program.
        let lines: Vec<&str> = list(&report, "sites").iter().filter_map(|row| row["line"].as_str()).collect();
        assert!(lines.iter().any(|line| line.starts_with("traffic.c:")), "{lines:?}");
        let trace = json(&out.join("trace.json"));
        let arrows = list(&trace, "traceEvents").iter().filter(|event| event["ph"] == "s");
        // Each task sends four active messages, and more by other calls.
        assert!(arrows.filter(|event| event["name"] == "am").count() >= 4 * tasks, "arrows");
        let everything: u64 = ["calls", "handlers"]
            .iter()
            .flat_map(|table| list(&report, table))
            .map(|row| number(row, "count"))
            .sum();
        assert_eq!(check_trace(&out) + number(&report, "events_left_out"), everything);
        assert!(!out.join("report.json.new").exists());
        assert!(!out.join(".merging").exists(), "the lock of the merge is left");
        for task in list(&report, "task") {
            let threads = number(task, "threads");
            let plural = if threads == 1 { "" } else { "s" };
            outcome.says(&format!("inside LAPI, in {threads} thread{plural}\n"));
        }
    }
}

/// What has gone by shared memory, and what by the network: transfers and bytes.
fn local_and_remote(report: &Value) -> [[u64; 2]; 2] {
    ["local", "remote"].map(|way| [number(&report[way], "count"), number(&report[way], "bytes")])
}

/// Which links use the network, by their origins.
fn by_network(report: &Value) -> Vec<bool> {
    list(report, "links").iter().map(|link| link["network"].as_bool().expect("a truth value")).collect()
}

#[test]
fn local_and_remote_traffic_are_apart() {
    let out = folder("local");
    passed(&job(2, "", &out).run(), 2);
    let local = json(&out.join("report.json"));
    let [all, remote] = local_and_remote(&local);
    assert_eq!((remote, by_network(&local)), ([0, 0], vec![false, false]));
    assert!(all[0] > 0 && all[1] > 0, "{local:#}");

    let out = folder("remote");
    let outcome = job(2, "", &out).env("LAPI_USE_SHM", "no").run();
    passed(&outcome, 2);
    let report = json(&out.join("report.json"));
    assert_eq!((local_and_remote(&report), by_network(&report)), ([[0, 0], all], vec![true, true]));
    check_page(&out);
    outcome.says("with task 1 (network):").says("  by shared memory: 0 transfers of 0 bytes\n");
}

/// A ring of four tasks on two hosts.
#[test]
fn two_hosts_have_local_and_remote_traffic() {
    let what = "local and remote traffic of two hosts";
    let hosts = match Hosts::new(2) {
        Ok(hosts) => hosts,
        Err(why) => return skipped(what, &why),
    };
    if Launcher::Hydra.command().is_none() {
        return skipped(what, "Hydra is not installed");
    }
    let out = folder("hosts");
    let lines = hosts.host_file("node0:2\nnode1:2\n");
    let outcome = hosts.poe_on(&lines, job(4, "", &out).poe_arg("-launcher").poe_arg("hydra")).run();
    passed(&outcome, 4);
    let report = json(&out.join("report.json"));
    assert_eq!(by_network(&report), [false, true, false, true]);
    let [local, remote] = local_and_remote(&report);
    // Tasks 1 and 3 send to the other host: 7 puts of 100 bytes more than tasks 0 and 2, each.
    assert_eq!(remote, [local[0] + 14, local[1] + 1400]);
}

#[test]
fn linked_before_the_library_it_does_the_same() {
    // Whether or not the linker leaves LAPI's library out, of which nothing is named.
    for (name, flag) in [("needed", "-Wl,--no-as-needed"), ("as-needed", "-Wl,--as-needed")] {
        let program = compile(
            &format!("profiling-traffic-{name}"),
            &["tests/c/profiling/traffic.c", "tests/c/common/ltest.c"],
            &[flag, "-llapiprof"],
        );
        let out = folder(name);
        let outcome = Job::new(program).procs(2).env("LAPIPROF_OUT", &out).env("LAPIPROF_TABLE", "1").run();
        passed(&outcome, 2);
        assert_eq!(tables(&outcome), 1, "{outcome}");
        check(&json(&out.join("report.json")), 2, 1);
    }
}

#[test]
fn several_handles_and_threads_are_one_report() {
    let out = folder("twice");
    let outcome = job(2, "twice", &out).run();
    passed(&outcome, 2);
    assert_eq!(tables(&outcome), 2, "one table of both handles\n{outcome}");
    check(&json(&out.join("report.json")), 2, 2);

    let out = folder("threads");
    passed(&job(2, "threads", &out).run(), 2);
    let report = json(&out.join("report.json"));
    check(&report, 2, 1);
    assert!(list(&report, "task").iter().all(|task| number(task, "threads") >= 2), "{:#}", report["task"]);
    check_trace(&out);
}

#[test]
fn the_trace_is_bounded() {
    for (limit, most) in [("0", 0), ("10", 64), ("100", 128)] {
        let out = folder(&format!("events-{limit}"));
        passed(&job(2, "", &out).env("LAPIPROF_EVENTS", limit).run(), 2);
        let report = json(&out.join("report.json"));
        check(&report, 2, 1);
        let kept = check_trace(&out);
        assert!(kept <= 2 * most && (most == 0) == (kept == 0), "{kept}");
        assert_eq!(number(&report, "events"), kept);
    }
}

/// Short transfers are not all timed, and all counted.
#[test]
fn what_is_not_timed_is_counted() {
    let counted = |sample: &str| {
        let out = folder(&format!("sample-{sample}"));
        let perf = Job::new(stage().join("bin/lapi_perf")).procs(2).env("LD_PRELOAD", profiler());
        let perf = ["-t", "put_lat,put_cbw,am_bw,add", "-s", "8,64", "-n", "6000"]
            .iter()
            .fold(perf, |job, word| job.arg(word));
        let perf = perf.env("LAPIPROF_OUT", &out).env("LAPIPROF_EVENTS", "0").env("LAPIPROF_TABLE", "none");
        perf.env("LAPIPROF_SAMPLE", sample).run().ok();
        let report = json(&out.join("report.json"));
        if sample == "1" {
            // Estimates of a busy machine may be more than the time that there was.
            check_lanes(&report);
        }
        let mut counts = Vec::new();
        for call in ["LAPI_Put", "LAPI_Amsend", "LAPI_Rmw64"] {
            counts.push(row(&report, "calls", call, ""));
            assert_eq!(row(&report, "sites", call, ""), row(&report, "calls", call, ""));
        }
        for link in list(&report, "links") {
            counts.push([number(&link["put"], "count"), number(&link["put"], "bytes")]);
            counts.push([number(&link["am"], "count"), number(&link["am"], "bytes")]);
        }
        let sum = |what: &str, class: &str| -> u64 {
            list(&report["timeline"][what], class)
                .iter()
                .map(|number| number.as_u64().expect("a number"))
                .sum()
        };
        // The course of time has all of them too.
        assert_eq!([sum("counts", "put"), sum("bytes", "put")], counts[0]);
        assert_eq!([sum("counts", "am"), sum("bytes", "am")], counts[1]);
        let times = list(&report, "calls").iter().filter(|row| row["call"] == "LAPI_Put");
        assert!(times.map(|row| number(row, "time")).sum::<u64>() > 0);
        counts
    };
    let all = counted("1");
    assert!(all[0][0] > 20_000, "{all:?}");
    assert_eq!(counted("61"), all);
    assert_eq!(counted("1000"), all);
}

#[test]
fn a_task_that_dies_is_missing_in_the_report() {
    let out = folder("die");
    let outcome = job(3, "die", &out).env("MP_ON_DEATH", "continue").run();
    assert_eq!(outcome.stdout.lines().filter(|line| line.contains("PASS")).count(), 2, "{outcome}");
    assert!(!out.join("report.json").exists(), "not all parts are there");
    let tool = stage().join("bin/lapi_prof");
    let merged = Command::new(&tool).arg("merge").arg(&out).output().expect("the tool runs");
    let said = String::from_utf8_lossy(&merged.stdout);
    assert!(merged.status.success() && said.contains("2 of 3 tasks"), "{merged:?}");
    assert!(said.contains("no part of task 1"), "{said}");
    let report = json(&out.join("report.json"));
    assert_eq!(report["missing"], serde_json::json!([1]));
    let origins: Vec<u64> = list(&report, "links").iter().map(|link| number(link, "origin")).collect();
    assert_eq!(origins, [0, 2]);
    check_page(&out);
    check_trace(&out);

    let nothing = Command::new(&tool).arg("merge").arg(out.join("nowhere")).output().expect("the tool runs");
    assert!(!nothing.status.success() && !nothing.stderr.is_empty());
}

#[test]
fn the_tool_names_its_version() {
    let tool = stage().join("bin/lapi_prof");
    for flag in ["-V", "--version"] {
        let said = Command::new(&tool).arg(flag).output().expect("the tool runs");
        assert!(said.status.success(), "{said:?}");
        let text = String::from_utf8_lossy(&said.stdout);
        assert_eq!(text, format!("lapi_prof (OpenLAPI) {}\n", env!("CARGO_PKG_VERSION")));
    }
}

#[test]
fn a_program_that_exits_without_term_is_reported() {
    let out = folder("exit");
    let outcome = job(2, "exit", &out).run();
    passed(&outcome, 2);
    assert_eq!(tables(&outcome), 2, "{outcome}");
    check(&json(&out.join("report.json")), 2, 1);
}

#[test]
fn a_forked_child_reports_nothing() {
    let out = folder("fork");
    let outcome = job(2, "fork", &out).run();
    passed(&outcome, 2);
    assert_eq!(tables(&outcome), 2, "{outcome}");
    check(&json(&out.join("report.json")), 2, 1);
}

/// Names that another user can foresee are not followed.
#[test]
fn links_in_the_folder_are_not_written_through() {
    let out = folder("links");
    fs::create_dir_all(&out).expect("the folder can be made");
    let kept = out.join("kept");
    fs::write(&kept, "kept").expect("a file");
    std::os::unix::fs::symlink(&kept, out.join(".merging")).expect("a link");
    let outcome = job(1, "", &out).run();
    passed(&outcome, 1);
    outcome.says(".merging: Too many levels of symbolic links");
    assert_eq!(fs::read_to_string(&kept).expect("the file"), "kept");
}

#[test]
fn an_earlier_job_leaves_nothing_in_the_report() {
    let out = folder("again");
    for tasks in [3, 2, 4] {
        passed(&job(tasks, "", &out).run(), tasks);
        check(&json(&out.join("report.json")), tasks as u64, 1);
    }
}

#[test]
fn mistakes_in_its_variables_are_reported() {
    let out = folder("mistakes");
    let job = job(1, "", &out).env("LAPIPROF_EVENTS", "many").env("LAPIPROF_TABEL", "none");
    let outcome = job.env("LAPIPROF_TABLE", "none").run();
    passed(&outcome, 1);
    assert_eq!(tables(&outcome), 0, "{outcome}");
    for said in ["LAPIPROF_EVENTS=many is not valid", "unknown variable LAPIPROF_TABEL"] {
        assert!(outcome.stderr.contains(said), "{outcome}");
    }
    check(&json(&out.join("report.json")), 1, 1);
}

/// What the profiler needs for threads that come later is mapped in LAPI_Init, as what the library needs is.
#[test]
fn memory_attached_later_lies_at_the_same_address_in_every_task() {
    let program = ltest::program("address/attached");
    for run in 0..30 {
        let out = folder("attached");
        let job =
            Job::new(&program).procs(2 + run % 3).env("LD_PRELOAD", profiler()).env("LAPIPROF_OUT", &out);
        passed(&job.env("LAPIPROF_TABLE", "none").run(), 2 + run % 3);
    }
}

#[test]
fn every_call_has_a_wrapper() {
    // The functions that a library exports under names that begin so, without the beginning.
    let exported = |library: &str, begin: &str| -> Vec<String> {
        let mut nm = Command::new("nm");
        nm.args(["-D", "--defined-only"]).arg(stage().join("lib").join(library));
        let listed = nm.output().expect("nm runs");
        assert!(listed.status.success(), "{listed:?}");
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        let names =
            text.lines().filter_map(|line| line.split_once(" T ")?.1.strip_prefix(begin).map(str::to_owned));
        // What has no small letter is a name for Fortran.
        let mut names: Vec<String> =
            names.filter(|name| name.contains(|letter: char| letter.is_ascii_lowercase())).collect();
        names.sort();
        names
    };
    let wrapped = exported("liblapiprof.so", "LAPI_");
    assert!(wrapped.len() > 30, "{wrapped:?}");
    assert_eq!(wrapped, exported("liblapi_r.so", "PLAPI_"));
    assert!(exported("liblapiprof.so", "PLAPI_").is_empty(), "the real calls are the library's");
}

#[test]
fn a_program_without_lapi_does_not_notice() {
    let outcome = Job::direct("/bin/echo").arg("well").env("LD_PRELOAD", profiler()).run();
    outcome.ok();
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("well\n", ""), "{outcome}");
}
