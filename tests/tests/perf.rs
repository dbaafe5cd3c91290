//! lapi_perf: every test runs and compares its data, and what it writes can be read.

use std::path::PathBuf;
use std::{fs, process};

use openlapi_tests::{Job, Outcome, build_dir, is_on_network, stage, workspace};
use serde_json::Value;

fn perf(tasks: usize, arguments: &str) -> Job {
    let job = Job::new(stage().join("bin/lapi_perf")).procs(tasks);
    arguments.split_whitespace().fold(job, Job::arg)
}

fn file(name: &str) -> PathBuf {
    let folder = build_dir().join("tests/perf");
    fs::create_dir_all(&folder).expect("the folder can be made");
    let file = folder.join(name);
    let _ = fs::remove_file(&file);
    file
}

/// Test and size of each line of a table.
fn rows(outcome: &Outcome) -> Vec<(String, String)> {
    let lines = outcome.stdout.lines().filter(|line| !line.starts_with('#') && !line.starts_with("test "));
    let words = lines.map(|line| line.split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>());
    words.map(|words| (words[0].clone(), words[1].clone())).collect()
}

fn names() -> Vec<String> {
    let list = Job::direct(stage().join("bin/lapi_perf")).arg("--list").run();
    let tests = list.ok().stdout.split("\n\n").nth(1).expect("the tests").to_owned();
    tests.lines().filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

#[test]
fn every_test_measures_and_its_data_is_right() {
    let all = perf(2, "-t all -s 8,100,4K -b 100 -n 64 -W 8 -c").run();
    all.exited(2).says("4096 bytes are not a multiple of 100");
    for (tasks, flags) in [(2, ""), (5, "-p all"), (4, "-m near -p 2")] {
        let outcome =
            perf(tasks, &format!("-t all -s 8,128,300K -b 128 -n 32 -W 8 -c {flags}")).deadline(120).run();
        outcome.ok();
        assert!(outcome.stdout.contains("data compared"), "{outcome}");
        let rows = rows(&outcome);
        for name in names() {
            assert!(rows.iter().any(|(test, _)| *test == name), "{name}\n{outcome}");
        }
        assert!(
            rows.contains(&("dgsp_bw".into(), "300K".into()))
                && rows.contains(&("gfence".into(), "-".into()))
        );
    }
    let incast =
        perf(4, "-t put_cmpl,put_cbw,get,get_bw,am_cmpl,rmw,fence -m incast -p all -s 8,4K -n 64 -c").run();
    assert!(incast.ok().stdout.contains("3 pairs (incast)"), "{incast}");
}

#[test]
fn every_transport_is_measured() {
    for (flags, name) in [("", "shared memory"), ("-euilib ip", "UDP")] {
        let job = perf(2, "-t put_lat,am_bw,get,add -s 8,20000 -n 32 -c --json");
        let job = flags.split_whitespace().fold(job, Job::poe_arg);
        let job = if flags.is_empty() { job } else { job.env("LAPI_USE_SHM", "no") };
        let outcome = job.run();
        let report: Value =
            serde_json::from_str(&outcome.ok().stdout).unwrap_or_else(|why| panic!("{why}\n{outcome}"));
        if !is_on_network() {
            assert_eq!(report["transport"], name);
        }
    }
}

/// The time of a cache line, which is measured in shared memory alone.
#[test]
fn a_cache_line_is_timed_around_each_row() {
    if is_on_network() {
        return;
    }
    // A task that takes no part does not hold the pair up.
    for (tasks, mode) in [(2, "far"), (3, "near")] {
        let arguments = format!("-t put_seen,amread,gfence -s 8,1K -n 50 -m {mode} --cache-line --json");
        let outcome = perf(tasks, &arguments).run();
        let report: Value =
            serde_json::from_str(&outcome.ok().stdout).unwrap_or_else(|why| panic!("{why}\n{outcome}"));
        let results = report["results"].as_array().expect("results");
        assert_eq!(results.len(), 5, "{outcome}");
        for row in results {
            let line = row["cache_line_ns"].as_array().expect("two times");
            assert!(line.len() == 2 && line.iter().all(|time| time.as_f64().expect("a time") > 0.0), "{row}");
        }
    }
    let table = perf(2, "-t put -s 8 -n 50 --cache-line").run();
    assert!(table.ok().stdout.contains(" line, ns\n"), "{table}");
    perf(4, "--cache-line -p 2").run().exited(2).says("between the two tasks of one pair");
    let udp = perf(2, "--cache-line").poe_arg("-euilib").poe_arg("ip").env("LAPI_USE_SHM", "no").run();
    udp.exited(2).says("share no memory here (transport: UDP)");
}

#[test]
fn the_distribution_of_times_is_shown() {
    let json = file("histogram.json");
    let arguments = format!("-t put_lat,put_bw,gfence -s 8,4K -n 2000 --histogram --json {}", json.display());
    let outcome = perf(2, &arguments).run();
    let report: Value = serde_json::from_slice(&fs::read(&json).expect("the file")).expect("JSON");
    let number = |value: &Value| value.as_f64().expect("a number");
    let results = report["results"].as_array().expect("results");
    assert_eq!(rows(outcome.ok()).len(), results.len());
    // Each line of a range ends with its bar.
    let mut lines = outcome.stdout.lines().filter(|line| line.starts_with("#  ") && line.ends_with('*'));
    for row in results {
        // Data that was not compared is neither right nor wrong.
        assert_eq!(row.get("right"), None, "{row}");
        let times = &row["latency_us"];
        let ranks = ["min", "median", "p90", "p99", "p999", "max"].map(|name| number(&times[name]));
        assert!(ranks.is_sorted(), "{row}");
        let text = outcome.stdout.lines().any(|line| line.starts_with("#  ") && line.contains("99.9 %"));
        assert!(text, "{outcome}");
        let (mut count, mut end, mut below) = (0, 0.0, 0);
        for range in row["histogram"].as_array().expect("ranges") {
            let (from, to, of) = (number(&range["from"]), number(&range["to"]), range["count"].as_u64());
            assert!(end <= from && from < to, "{row}");
            (end, count) = (to, count + of.expect("a count"));
            below += u64::from(to <= ranks[2]) * of.expect("a count");
        }
        let (mut shown, mut part) = (0, String::new());
        while part != "100.00%" {
            let line = lines.next().unwrap_or_else(|| panic!("lines are missing\n{outcome}"));
            let words: Vec<&str> = line.split_whitespace().collect();
            let of: u64 = words[4].parse().unwrap_or_else(|why| panic!("{why}: {line}"));
            (shown, part) = (shown + of, words[5].to_owned());
        }
        assert_eq!(shown, count, "{outcome}");
        let samples = row["samples"].as_u64().expect("a count");
        assert_eq!(count, samples, "{row}");
        assert!(end > ranks[5] && below * 10 <= samples * 9, "{row}");
    }
    assert_eq!(lines.next(), None, "{outcome}");
    perf(2, "--histogram --compare old.json").run().exited(2).says("--json has it always");
}

#[test]
fn results_are_kept_and_compared() {
    let (json, plot) = (file("a.json"), file("a.svg"));
    let arguments =
        format!("-t put_lat,put_bw -s 8:512:8 -n 50 -c --json {} --plot {}", json.display(), plot.display());
    let outcome = perf(2, &arguments).run();
    assert_eq!(rows(outcome.ok()).len(), 6);
    let mut report: Value = serde_json::from_slice(&fs::read(&json).expect("the file")).expect("JSON");
    let results = report["results"].as_array().expect("results");
    assert_eq!(results.len(), 6);
    for row in results {
        assert_eq!(row["right"], true);
        let times = &row["latency_us"];
        let [min, median, max] = ["min", "median", "max"].map(|name| times[name].as_f64().expect("a time"));
        assert!(0.0 < min && min <= median && median <= max, "{row}");
    }
    let picture = fs::read_to_string(&plot).expect("the plot");
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    assert_eq!(picture.matches("<polyline ").count(), 2);
    assert_eq!(picture.matches("<circle ").count(), 6);

    let old = json.display();
    let again = perf(2, &format!("--compare {old}")).run();
    assert_eq!(again.ok().stdout.matches(" µs ").count(), 3, "{again}");
    // Its rows stay when it is said how they are to be measured.
    let shorter = file("c.json");
    let again = perf(2, &format!("--compare {old} -n 20 -w 3 --json {}", shorter.display())).run();
    assert!(!again.ok().stdout.contains("only in the "), "{again}");
    let shorter: Value = serde_json::from_slice(&fs::read(&shorter).expect("the file")).expect("JSON");
    let rows = shorter["plan"]["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 6);
    for row in rows {
        let (iterations, warmup) = if row["test"] == "put_bw" { (64, 64) } else { (20, 3) };
        assert!(row["iterations"] == iterations && row["warmup"] == warmup, "{row}");
    }
    // A file of which every time is half, then ten thousand times as long.
    for (factor, status) in [(1e-4, 3), (1e8, 0)] {
        for row in report["results"].as_array_mut().expect("results") {
            let median = row["latency_us"]["median"].as_f64().expect("a time");
            row["latency_us"]["median"] = (median * factor).into();
        }
        let changed = file("b.json");
        fs::write(&changed, report.to_string()).expect("it can be written");
        let judged = perf(2, &format!("--compare {} --fail-above 100", changed.display())).run();
        judged.exited(status);
        assert_eq!(judged.stdout.matches("slower").count(), if status == 3 { 6 } else { 0 }, "{judged}");
        let files = Job::direct(stage().join("bin/lapi_perf")).arg("--compare").arg(&changed).arg(&json);
        files.arg("--fail-above").arg("100").run().exited(status);
    }
}

#[test]
fn a_mistake_is_named_once_and_every_task_ends() {
    let refused = |tasks: usize, arguments: &str, says: &str| {
        let outcome = perf(tasks, arguments).deadline(30).run();
        outcome.exited(2).says(says);
        assert_eq!(outcome.stderr.matches("lapi_perf: ").count(), 1, "{outcome}");
    };
    refused(2, "-t put_lta", "lapi_perf: -t: there is no test put_lta; did you mean put_lat?");
    refused(3, "put_lat", "a test is named by -t");
    refused(1, "", "lapi_perf: this is a job of one task");
    refused(3, "-p 2", "-p 2: a job of 3 tasks has 1 pair");
    refused(2, "-t put_seen -s 12", "put_seen: none of the sizes (-s) is a multiple of 8 bytes");
    refused(2, "-t am -m incast", "the target sends to one origin");
    refused(2, "-t amh -H 1M", "a user header has at most");
    refused(2, "--compare /no/such", "/no/such: No such file or directory");
    refused(2, "--json /no/such/file", "/no/such/file: No such file or directory");
    let text = file("text");
    fs::write(&text, "{\"program\": \"other\"}").expect("it can be written");
    refused(2, &format!("--compare {}", text.display()), "not of lapi_perf --json");
    perf(2, "--library /no/such.so").run().exited(1).says("/no/such.so");
    perf(2, "-s 1000G -t put").run().exited(1).says("no memory for messages that take");
}

#[test]
fn the_man_page_has_every_flag() {
    let page = fs::read_to_string(workspace().join("packaging/man/man1/lapi_perf.1")).expect("the page");
    let help = process::Command::new(stage().join("bin/lapi_perf")).arg("--help").output().expect("it runs");
    let help = String::from_utf8(help.stdout).expect("text");
    let flags: Vec<&str> =
        help.lines().filter_map(|line| line.split_once("--")?.1.split([' ', '<']).next()).collect();
    assert!(flags.len() > 18, "{flags:?}");
    for flag in flags {
        let name = flag.replace('-', "\\-");
        assert!(page.contains(&format!("\\-{name}")), "the page has no --{flag}");
    }
}
