//! Calls that are counted without being timed.

use crate::checks::{calls_and_handlers, check_events, check_lanes};
use crate::{folder, json, list, ltest, number, profiler, row};
use ltest::passed;
use openlapi_tests::{Job, stage};
use serde_json::Value;

/// Short transfers are not all timed, and all counted.
#[test]
fn what_is_not_timed_is_counted() {
    let counted = |sample: &str, events: &str| {
        let out = folder(&format!("sample-{sample}-{events}"));
        let perf = Job::new(stage().join("bin/lapi_perf")).procs(2).env("LD_PRELOAD", profiler());
        let perf = ["-t", "put_lat,put_cbw,am_bw,add", "-s", "8,64", "-n", "6000"]
            .iter()
            .fold(perf, |job, word| job.arg(word));
        let perf =
            perf.env("LAPIPROF_OUT", &out).env("LAPIPROF_EVENTS", events).env("LAPIPROF_TABLE", "none");
        perf.env("LAPIPROF_SAMPLE", sample).run().ok();
        let report = json(&out.join("report.json"));
        if sample == "1" {
            // Estimates of a busy machine may be more than the time that there was.
            check_lanes(&report);
        }
        if events != "0" {
            let [kept, stand_for] = check_events(&json(&out.join("trace.json")));
            assert_eq!(stand_for, calls_and_handlers(&report));
            // Puts and waits of a place where all are short are few; each active message and each
            // handler is there.
            let each = row(&report, "calls", "LAPI_Amsend", "")[0];
            assert!(
                kept > 2 * each && kept - 2 * each < (stand_for - 2 * each) / 2,
                "{kept} {stand_for} {each}"
            );
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
    let all = counted("1", "0");
    assert!(all[0][0] > 20_000, "{all:?}");
    assert_eq!(counted("61", "0"), all);
    assert_eq!(counted("1000", "0"), all);
    assert_eq!(counted("61", "1000000"), all);
}

/// Puts that are like the one before them are counted by one number. Those among them that fail, or
/// find no room, are not like the others.
#[test]
fn puts_that_fail_or_are_long_are_found_among_repeated_ones() {
    let run = |sample: &str| {
        let out = folder(&format!("repeated-{sample}"));
        let job =
            ltest::job("profiling/long", 2, "put").env("LD_PRELOAD", profiler()).env("LAPIPROF_OUT", &out);
        let outcome = job.env("LAPIPROF_SAMPLE", sample).env("MP_INFOLEVEL", "0").run();
        passed(&outcome, 2);
        let puts = outcome.stdout.lines().find_map(|line| line.strip_prefix("puts "));
        let puts: u64 = puts.and_then(|puts| puts.parse().ok()).expect("a number of puts");
        let report = json(&out.join("report.json"));
        let rows = list(&report, "sites").iter();
        let rows: Vec<&Value> = rows
            .filter(|row| row["call"] == "LAPI_Put" && row["site"].as_str().unwrap().starts_with("put_to_1"))
            .collect();
        let sum = |what| rows.iter().map(|row| number(row, what)).sum::<u64>();
        assert_eq!([sum("count"), sum("errors"), sum("bytes")], [puts + 7, 7, puts * 64], "{sample}");
        // The last twenty pause for a millisecond at least; the profiler sees the pause, not
        // what is before it.
        let longest = rows.iter().map(|row| number(row, "longest")).max().unwrap();
        assert!(longest >= 900_000 && sum("time") >= 18_000_000, "{sample}: {longest}, {}", sum("time"));
    };
    run("1");
    run("61");
}

/// A call that is not timed may be the first to a task that succeeds.
#[test]
fn a_task_to_which_calls_have_failed_first_has_all_that_succeeded_later() {
    let out = folder("failed");
    let job =
        ltest::job("profiling/long", 2, "failed").env("LD_PRELOAD", profiler()).env("LAPIPROF_OUT", &out);
    passed(&job.env("LAPIPROF_SAMPLE", "1000").env("MP_INFOLEVEL", "0").run(), 2);
    let report = json(&out.join("report.json"));
    let moved: Vec<_> = list(&report, "links")
        .iter()
        .map(|link| {
            [&link["origin"], &link["target"], &link["put"]["count"], &link["put"]["bytes"]]
                .map(Value::as_u64)
        })
        .collect();
    assert_eq!(moved, [[0, 1, 7, 7 * 64].map(Some)]);
    assert_eq!(row(&report, "calls", "LAPI_Put", ""), [2007, 7 * 64]);
}

/// A put is counted as like the one before it when it begins; then a handler inside of it makes
/// puts from the same place, some of which are timed, and takes long.
#[test]
fn a_long_put_is_timed_when_puts_of_its_place_ran_inside() {
    let run = |sample: &str| {
        let out = folder(&format!("inside-{sample}"));
        let job =
            ltest::job("profiling/long", 2, "inside").env("LD_PRELOAD", profiler()).env("LAPIPROF_OUT", &out);
        let job = job.env("LAPIPROF_EVENTS", "4000000").env("LAPIPROF_SAMPLE", sample);
        let outcome = job.run();
        passed(&outcome, 2);
        let said = outcome.stdout.lines().find(|line| line.contains("puts ")).expect("a number of puts");
        let said: Vec<u64> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [puts, took] = said[..] else { panic!("{said:?}") };
        let report = json(&out.join("report.json"));
        let rows = list(&report, "sites").iter();
        let rows: Vec<&Value> = rows
            .filter(|row| row["call"] == "LAPI_Put" && row["site"].as_str().unwrap().starts_with("put_to_1"))
            .collect();
        let sum = |what| rows.iter().map(|row| number(row, what)).sum::<u64>();
        assert_eq!([sum("count"), sum("bytes")], [puts, puts * 64], "{sample}");
        // Among all puts are those without data from another place.
        let all = row(&report, "calls", "LAPI_Put", "");
        let moved: Vec<_> = list(&report, "links")
            .iter()
            .map(|link| [&link["origin"], &link["target"], &link["put"]["count"], &link["put"]["bytes"]])
            .map(|numbers| numbers.map(|number| number.as_u64().expect("a number")))
            .filter(|numbers| numbers[2] > 0)
            .collect();
        assert_eq!(moved, [[0, 1, all[0], all[1]]], "{sample}");
        assert_eq!(check_events(&json(&out.join("trace.json")))[1], calls_and_handlers(&report));
        let put_counts = list(&report["timeline"]["counts"], "put").iter().filter_map(Value::as_u64);
        assert_eq!(put_counts.sum::<u64>(), all[0]);
        // The profiler sees nearly all of each.
        assert!(sum("time") > took / 2, "{sample}: {} of {took} ns", sum("time"));
    };
    run("1");
    run("61");
}

/// Of a place whose calls are all short one in many is timed; the long one among them, too,
/// whichever it is.
#[test]
fn a_long_call_among_short_ones_is_timed() {
    for how in ["wait", "handler", "poll", "copy"] {
        let out = folder(&format!("long-{how}"));
        let job =
            ltest::job("profiling/long", 2, how).env("LD_PRELOAD", profiler()).env("LAPIPROF_OUT", &out);
        // The target copies what comes in packets.
        let job = if how == "copy" { job.env("LAPI_SHM_BULK", "pipeline") } else { job };
        passed(&job.env("LAPIPROF_EVENTS", "1000000").run(), 2);
        let report = json(&out.join("report.json"));
        let call = if how == "poll" { "LAPI_Getcntr" } else { "LAPI_Waitcntr" };
        let rows = list(&report, "sites").iter();
        let rows = rows
            .filter(|row| row["call"] == call && row["site"].as_str().unwrap().starts_with("short_or_long"));
        let rows: Vec<&Value> = rows.collect();
        let sum = |what| rows.iter().map(|row| number(row, what)).sum::<u64>();
        assert!(sum("count") >= 4000, "{how}: {rows:?}");
        // Task 1 lets task 0 wait for 0.3 s, or its message does.
        let longest = rows.iter().map(|row| number(row, "longest")).max().unwrap();
        let least = if how == "copy" { 100_000 } else { 280_000_000 };
        assert!(longest >= least && sum("time") >= least, "{how}: {rows:?}");
        let trace = json(&out.join("trace.json"));
        let [kept, stand_for] = check_events(&trace);
        assert_eq!(stand_for, calls_and_handlers(&report));
        assert!(kept < stand_for, "{how}: all {kept} calls were timed");
        let long = list(&trace, "traceEvents").iter().filter(|event| event["name"] == call);
        let long = long.filter(|event| event["dur"].as_f64().is_some_and(|dur| dur * 1e3 >= least as f64));
        assert!(long.count() > 0, "{how}: the long call is not in the trace");
    }
}
