//! liblapiprof.so: what it counts is what the program did, and what it writes can be read.

#[path = "lapiprof/checks.rs"]
mod checks;
mod ltest;
#[path = "lapiprof/sampling.rs"]
mod sampling;

use checks::{calls_and_handlers, check, check_page, check_trace};
use ltest::{passed, run};
use openlapi_tests::{
    Hosts, Job, Launcher, Outcome, build_dir, compile, compile_plain, is_installed, skipped, stage,
};
use serde_json::Value;
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
        let everything = calls_and_handlers(&report);
        assert_eq!(check_trace(&out)[1], everything);
        assert!(!out.join("report.json.new").exists());
        assert!(!out.join(".merging").exists(), "the lock of the merge is left");
        for task in list(&report, "task") {
            let threads = number(task, "threads");
            let plural = if threads == 1 { "" } else { "s" };
            outcome.says(&format!("inside LAPI, in {threads} thread{plural}\n"));
        }
    }
}

#[test]
fn rdma_transfers_are_puts_and_gets() {
    let out = folder("rdma");
    let job = ltest::job("rdma/rdma", 2, "handlers").env("MP_RDMA_COUNT", "1");
    passed(&job.env("LD_PRELOAD", profiler()).env("LAPIPROF_OUT", &out).run(), 2);
    let report = json(&out.join("report.json"));
    // The lengths of the program's transfers, of which every other one is a get.
    let len = |at: u64| if at.is_multiple_of(3) { 70_000 } else { at * 8 };
    let bytes = |first: usize| (0..128).skip(first).step_by(2).map(len).sum::<u64>();
    assert_eq!(row(&report, "calls", "LAPI_Xfer RDMA PUT", ""), [2 * 65, 2 * (bytes(0) + 8)]);
    assert_eq!(row(&report, "calls", "LAPI_Xfer RDMA GET", ""), [2 * 65, 2 * (bytes(1) + 8)]);
    assert_eq!(row(&report, "handlers", "send completion handler", "handler"), [2 * 130, 0]);
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
        let [kept, _] = check_trace(&out);
        assert!(kept <= 2 * most && (most == 0) == (kept == 0), "{kept}");
        assert_eq!(number(&report, "events"), kept);
    }
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
fn places_that_cannot_be_looked_at_are_named() {
    let tool = stage().join("bin/lapi_prof");
    let ask = |places: &[&str]| {
        let said = Command::new(&tool).arg("where").args(places).output().expect("the tool runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (said.status.code(), text(&said.stdout), text(&said.stderr))
    };
    // There is no code at its beginning, and no lines of code that the linker has left out, which
    // are said to be there.
    let own = format!("{}+0x0", compile_plain("lapiprof-where", &["tests/c/poe/task.c"], &[]).display());
    assert_eq!(ask(&[&own]), (Some(0), "\t\n".to_owned(), String::new()));
    // The others have their lines all the same.
    let (status, shown, said) = ask(&["/nonexistent/x+0x10", &own]);
    assert_eq!((status, &*shown), (Some(1), "\t\n\t\n"));
    assert!(said.starts_with("lapi_prof: /nonexistent/x: No such file or directory"), "{said}");
    let (status, _, said) = ask(&["/etc/passwd+10"]);
    assert_eq!(status, Some(1));
    assert!(said.starts_with("lapi_prof: /etc/passwd: no program or library"), "{said}");
    for wrong in ["foo", "/bin/true+zz"] {
        let (status, shown, said) = ask(&[&own, wrong]);
        assert_eq!((status, &*shown), (Some(2), ""), "{wrong}");
        assert!(said.starts_with(&format!("lapi_prof: \"{wrong}\" is not FILE+ADDRESS")), "{said}");
    }
}

/// Compressed as compilers do it (-gz), and taken out as distributions do it.
#[test]
fn lines_are_found_in_debug_information_of_every_form() {
    if !is_installed("objcopy") {
        return skipped("other forms of debug information", "binutils are not installed");
    }
    let program = compile_plain("lapiprof-forms", &["tests/c/poe/task.c"], &["-Wl,--build-id"]);
    let folder = folder("forms");
    fs::create_dir_all(folder.join(".debug")).expect("the folder can be made");
    let copy = |flags: &[&str], name: &str| {
        let made = folder.join(name);
        let done = Command::new("objcopy").args(flags).arg(&program).arg(&made).output().expect("it runs");
        done.status.success().then_some(made).ok_or(String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let size = |file: &Path| fs::metadata(file).expect("it is there").len();
    let symbols = Command::new("nm").arg(&program).output().expect("it runs");
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let main = symbols.lines().find_map(|line| line.strip_suffix(" T main")).expect("a function");
    let shown = |file: &Path| {
        let place = format!("{}+{main}", file.display());
        let said = Command::new(stage().join("bin/lapi_prof")).arg("where").arg(place).output();
        String::from_utf8_lossy(&said.expect("the tool runs").stdout).into_owned()
    };
    let line = shown(&program);
    assert!(line.starts_with("main\ttask.c:"), "{line}");
    for form in ["zlib", "zlib-gnu", "zstd"] {
        match copy(&[&format!("--compress-debug-sections={form}")], form) {
            Ok(made) => {
                assert!(size(&made) < size(&program), "{form}");
                assert_eq!(shown(&made), line, "{form}");
            }
            Err(why) => skipped(&format!("debug information as {form}"), &why),
        }
    }
    copy(&["--only-keep-debug"], "separate.debug").expect("objcopy does");
    let link = format!("--add-gnu-debuglink={}/separate.debug", folder.display());
    let bare = copy(&["--strip-all", &link], "bare").expect("objcopy does");
    assert_eq!(shown(&bare), line);
    fs::rename(folder.join("separate.debug"), folder.join(".debug/separate.debug")).expect("a move");
    assert_eq!(shown(&bare), line);
    // Of another program, which has no lines of this one.
    copy(&["--only-keep-debug", "--remove-section=.note.gnu.build-id"], ".debug/other")
        .expect("objcopy does");
    fs::rename(folder.join(".debug/other"), folder.join(".debug/separate.debug")).expect("a move");
    assert_eq!(shown(&bare), "\t\n");
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

/// What the profiler needs for threads that come later is mapped in LAPI_Init, as what the
/// library needs is.
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
