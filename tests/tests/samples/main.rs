//! The samples, built by their own Makefiles with the installed wrapper and run with each
//! number of tasks that they allow. What they print is compared line by line, and with the
//! output in their README.

mod attributes;
mod checkpoint;
mod folder;

use attributes::{check_attributes, set_and_refused};
use folder::{Folder, PAIRS, check_lines};
use openlapi_tests as support;
use std::path::Path;

const ANY: &[usize] = &[1, 2, 3];

#[test]
fn init() {
    let folder = Folder::build("init", &["Init", "Addr", "Qenv_senv"]);
    folder.check("Init", ANY, |me, tasks| {
        let job = format!("the job has {tasks} task{}", if tasks == 1 { "" } else { "s" });
        vec![
            format!("task {me}: first handle, with an error handler: {job}"),
            format!("task {me}: the first handle after LAPI_Term: LAPI_ERR_HNDL_INVALID, as it should be"),
            format!("task {me}: second handle, instance 1: {job}"),
            format!("task {me}: third handle, instance 2: {job}"),
            format!("task {me}: the third handle works on without the second"),
            format!("task {me}: all handles are terminated"),
        ]
    });
    folder.check("Addr", ANY, |me, tasks| {
        let mut lines = vec![format!("task {me}: its own entries in the tables are its own addresses")];
        lines.extend((0..tasks).map(|task| {
            format!("task {me}: the variables of task {task} are {} and {}", 10 + task, 1_000_000 + task)
        }));
        lines.push(format!("task {me}: index 7 holds the address that was set"));
        lines
    });
    for &tasks in ANY {
        check_attributes(&folder.run("Qenv_senv", tasks), tasks);
    }
    for line in set_and_refused(2) {
        assert!(folder.promises(&line), "the README does not show \"{line}\"");
    }
    folder.clean();
}

#[test]
fn lapi_api() {
    let programs = [
        "Am", "Amv", "Get", "Getv", "Put", "Putv", "Rmw", "Rmw64", //
        "Amf", "Amvf", "Getf", "Getvf", "Putf", "Putvf", "Rmwf", "Rmw64f",
    ];
    let folder = Folder::build("lapi_api", &programs);
    folder.check_twins(["Am", "Amf"], PAIRS, |me, _| {
        if me % 2 == 0 {
            let handled = "has handled the message; completion counter after the wait: 0";
            vec![format!("task {me}: task {} {handled}", me + 1)]
        } else {
            vec![
                format!("task {me}: completion handler: the message is {}", numbers(100 * me..100 * me + 8)),
                format!("task {me}: the message is as it was sent"),
            ]
        }
    });
    folder.check_twins(["Amv", "Amvf"], PAIRS, |me, _| {
        if me % 2 == 0 {
            let handled = "has handled the message; completion counter after the wait: 0";
            vec![format!("task {me}: task {} {handled}", me + 1)]
        } else {
            let (head, tail) = (numbers(100 * me..100 * me + 4), numbers(100 * me + 4..100 * me + 10));
            vec![
                format!("task {me}: completion handler: the head is {head}, the tail {tail}"),
                format!("task {me}: the numbers are as they were sent"),
            ]
        }
    });
    folder.check_twins(["Get", "Getf"], PAIRS, |me, _| {
        if me % 2 == 0 {
            let letters: String =
                (0..26).map(|i| char::from(b'a' + u8::try_from((me + 1 + i) % 26).unwrap())).collect();
            vec![
                format!("task {me}: origin counter after the wait: 0; task {} keeps \"{letters}\"", me + 1),
                format!("task {me}: the copy is exact"),
            ]
        } else {
            vec![format!("task {me}: target counter after the wait: 0; the text has been read and is wiped")]
        }
    });
    folder.check_twins(["Getv", "Getvf"], PAIRS, |me, _| {
        if me % 2 == 0 {
            let from = me + 1;
            let fields =
                format!("\"gauge {from}\": {} values, the last {:.2}", 512 + from, from as f64 + 0.25);
            vec![
                format!("task {me}: origin counter after the wait: 0; {fields}"),
                format!("task {me}: the three fields are exact"),
            ]
        } else {
            vec![format!(
                "task {me}: target counter after the wait: 0; the record has been read and is wiped"
            )]
        }
    });
    folder.check_twins(["Put", "Putf"], PAIRS, |me, _| {
        if me % 2 == 0 {
            vec![format!("task {me}: has put 10 numbers into task {}", me + 1)]
        } else {
            let board: Vec<String> =
                (0..10u8).map(|i| format!("{:.4}", me as f64 + f64::from(i) / 16.0)).collect();
            vec![
                format!("task {me}: target counter after the wait: 0; the board is {}", board.join(" ")),
                format!("task {me}: the board is as it was put"),
            ]
        }
    });
    folder.check_twins(["Putv", "Putvf"], PAIRS, |me, _| {
        if me % 2 == 0 {
            let form = format!("the form of task {} is filled in", me + 1);
            vec![format!("task {me}: completion counter after the wait: 0; {form}")]
        } else {
            let form = format!("from task {:03} to task {me:03}: hello", me - 1);
            vec![
                format!("task {me}: target counter after the wait: 0; the form says \"{form}\""),
                format!("task {me}: the form is right"),
            ]
        }
    });
    folder.check_twins(["Rmw", "Rmwf"], PAIRS, |me, _| {
        if me % 2 == 0 {
            let target = me + 1;
            vec![
                format!("task {me}: FETCH_AND_ADD (3) at task {target}: 5"),
                format!("task {me}: FETCH_AND_OR (7) at task {target}: 8"),
                format!("task {me}: SWAP (-20) at task {target}: 15"),
                format!("task {me}: COMPARE_AND_SWAP (1, 2) at task {target}: 0"),
                format!("task {me}: COMPARE_AND_SWAP (-20, 42) at task {target}: 1"),
                format!("task {me}: the results are right"),
            ]
        } else {
            vec![format!("task {me}: at the end the variable is 42")]
        }
    });
    folder.check_twins(["Rmw64", "Rmw64f"], PAIRS, |me, _| {
        if me % 2 == 0 {
            vec![
                format!("task {me}: SWAP took 5000000020 from task {}", me + 1),
                format!("task {me}: COMPARE_AND_SWAP: swapped"),
                format!("task {me}: FETCH_AND_OR found 5000000020"),
            ]
        } else {
            vec![
                format!("task {me}: 20 tickets from 5000000000 on: each drawn once"),
                format!("task {me}: at the end the variable is 1104511627796"),
            ]
        }
    });
    folder.refuses_odd_numbers();
    folder.clean();
}

#[test]
fn basic() {
    let folder = Folder::build(
        "basic",
        &["accumulate_and_return.Am", "accumulate_and_return.Put", "accumulate_and_return.Xfer"],
    );
    folder.check("accumulate_and_return.Am", PAIRS, |me, _| sums_by_handlers(me));
    for program in ["accumulate_and_return.Put", "accumulate_and_return.Xfer"] {
        folder.check(program, PAIRS, |me, _| {
            if me % 2 == 0 {
                sums(me)
            } else {
                vec![format!("task {me}: 6 numbers from task {}; the sums go back", me - 1)]
            }
        });
    }
    folder.refuses_odd_numbers();
    folder.clean();
}

#[test]
fn profiling() {
    let programs = ["test1", "Xfer_poll", "halo"];
    let folder = Folder::with_libraries("profiling", &programs, &["myprof_r", "proftime_r"]);
    folder.check("test1", ANY, |me, _| {
        vec![
            format!("task {me}: profiling layer: LAPI_Init has returned LAPI_SUCCESS"),
            format!("task {me}: the program knows nothing of the layer"),
            format!("task {me}: profiling layer: LAPI_Term is called"),
        ]
    });
    folder.check("Xfer_poll", ANY, |me, _| {
        vec![
            format!("task {me}: all 10 puts have come, and the values are right"),
            format!("task {me}: profiling layer: 10 calls of LAPI_Xfer took T us"),
            format!("task {me}: profiling layer: LAPI_Msgpoll took T us"),
        ]
    });
    folder.check("halo", ANY, |me, tasks| {
        let rows = if me == tasks - 1 { 256 } else { 128 };
        vec![format!("task {me}: 0 points are wrong after 1000 steps of {rows} rows")]
    });
    folder.clean();
}

#[test]
fn xfer() {
    let folder = Folder::build("xfer", &["Am_xfer", "Put_xfer", "Put_xferf"]);
    folder.check("Am_xfer", PAIRS, |me, _| {
        if me % 2 == 0 {
            let handled = "has handled the greeting; completion counter after the wait: 0";
            vec![format!("task {me}: task {} {handled}", me + 1)]
        } else {
            vec![
                format!("task {me}: completion handler: \"greetings to task {me} from task {}\"", me - 1),
                format!("task {me}: the greeting is as it was sent"),
            ]
        }
    });
    folder.check_twins(["Put_xfer", "Put_xferf"], PAIRS, |me, _| {
        if me % 2 == 0 {
            vec![
                format!("task {me}: origin counter after the wait: 0"),
                format!("task {me}: completion counter after the wait: 0"),
                format!("task {me}: the send completion handler was called with LAPI_SUCCESS"),
            ]
        } else {
            let last = (me + 4095) * (me + 4095);
            vec![
                format!("task {me}: target counter after the wait: 0; 4096 squares, the last {last}"),
                format!("task {me}: the squares are right"),
            ]
        }
    });
    folder.refuses_odd_numbers();
    folder.clean();
}

#[test]
fn vector() {
    let folder = Folder::build("vector", &["accumulate_and_return.Amv", "matrix", "strided"]);
    folder.check("accumulate_and_return.Amv", PAIRS, |me, _| sums_by_handlers(me));
    folder.check("matrix", PAIRS, |me, _| {
        if me % 2 == 0 {
            return vec![format!(
                "task {me}: completion counter after the wait: 0; task {} has the block",
                me + 1
            )];
        }
        let mut lines = vec![format!("task {me}: completion handler: 3 rows of 4 at row 2, column 1")];
        for row in 0..5 {
            let cell = |column| match (row, column) {
                (2.., 1..=4) => 100 * me + 10 * (row - 1) + column + 2,
                _ => 0,
            };
            let cells: String = (0..6).map(|column| format!(" {:3}", cell(column))).collect();
            lines.push(format!("task {me}:{cells}"));
        }
        lines.push(format!("task {me}: the matrix is right"));
        lines
    });
    folder.check("strided", PAIRS, |me, _| {
        if me % 2 == 0 {
            vec![
                format!("task {me}: origin counter after the wait: 0; the matrix is wiped"),
                format!("task {me}: completion counter after the wait: 0; task {} has the columns", me + 1),
            ]
        } else {
            let column = |column| numbers((0..4).map(|row| 100 * (me - 1) + 10 * row + column));
            vec![
                format!("task {me}: completion handler: the columns are {} and {}", column(3), column(4)),
                format!("task {me}: the columns are right, the free one is untouched"),
            ]
        }
    });
    folder.refuses_odd_numbers();
    folder.clean();
}

#[test]
fn dgsp() {
    let mut folder = Folder::build("dgsp", &["Dgsp_simple", "Dgsp_accumulate"]);
    for verify in ["no", "yes"] {
        folder.set("LAPI_VERIFY_DGSP", verify);
        folder.check("Dgsp_simple", PAIRS, |me, _| {
            if me % 2 == 0 {
                let handled = "has handled the message; completion counter after the wait: 0";
                vec![format!("task {me}: task {} {handled}", me + 1)]
            } else {
                let readings: Vec<String> =
                    (0..8u8).map(|i| format!("{:.3}", me as f64 + f64::from(i) / 8.0)).collect();
                vec![
                    format!("task {me}: completion handler: the readings are {}", readings.join(" ")),
                    format!("task {me}: the readings are as they were sent"),
                ]
            }
        });
        folder.check("Dgsp_accumulate", PAIRS, |me, _| {
            if me % 2 == 0 {
                let combined = "has combined the block; completion counter after the wait: 0";
                vec![format!("task {me}: task {} {combined}", me + 1); 2]
            } else {
                // The existing value is 1 or -5000, in turn.
                let sent = |i: i64| 1000 * (me as i64 - 1) + 111 + i;
                let added = numbers((0..4).map(|i| sent(i) + if i % 2 == 0 { 1 } else { -5000 }));
                let greater = numbers((0..4).map(|i| sent(i) + 1 - i % 2));
                let first = "the first row is";
                vec![
                    format!("task {me}: completion handler: added; {first} {added}"),
                    format!("task {me}: completion handler: the greater ones taken; {first} {greater}"),
                    format!("task {me}: the block is right, nothing around it has changed"),
                ]
            }
        });
    }
    folder.refuses_odd_numbers();
    folder.clean();
}

#[test]
fn lock_sharing() {
    let folder = Folder::build("lock_sharing", &["Latency"]);
    folder.check("Latency", PAIRS, |me, _| {
        let shares = format!("task {me}: this library shares its lock");
        let measured = format!("task {me}: one way without sharing T us, with sharing T us");
        let counted = format!("task {me}: every message was counted");
        if me % 2 == 0 {
            vec![shares, measured.clone(), measured.clone(), measured, counted]
        } else {
            vec![shares, counted]
        }
    });
    folder.refuses_odd_numbers();
    folder.clean();
}

#[test]
fn tutorial() {
    let folder = Folder::build("tutorial", &["hello", "put", "message", "work"]);
    let lines = |program: &str, tasks: usize, expected: &dyn Fn(usize) -> String| {
        let outcome = folder.run(program, tasks);
        let mut printed: Vec<_> = outcome.stdout.lines().map(str::to_owned).collect();
        let mut wanted: Vec<_> = (0..tasks).map(expected).collect();
        printed.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(printed, wanted, "{program} with {tasks} tasks\n{outcome}");
        if tasks == 2 {
            wanted.iter().for_each(|line| assert!(folder.promises(line), "{program}: \"{line}\""));
        }
    };
    for tasks in [1, 2, 4] {
        lines("hello", tasks, &|me| format!("task {me} of {tasks}"));
        lines("put", tasks, &|me| {
            format!("task {me}: my neighbour has written {}", 100 + (me + tasks - 1) % tasks)
        });
        lines("message", tasks, &|me| format!("task {me} writes: {me} plus {me} is {}", 2 * me));
        folder.check("work", &[tasks], |me, _| {
            if me == 0 { vec!["task 0: 20 of 20 pieces are done".to_owned()] } else { Vec::new() }
        });
    }
    folder.clean();
}

#[test]
fn coll() {
    let folder = Folder::build("coll", &["statistics"]);
    folder.check("statistics", &[1, 2, 3, 10], |me, tasks| {
        // As many as eight, in turn.
        let count = |task: usize| 1 + task % 8;
        let all: usize = (0..tasks).map(count).sum();
        let values = (0..tasks).flat_map(|task| (0..count(task)).map(move |i| 0.5 * (task + i) as f64));
        let (sum, most) =
            values.fold((0.0, 0.0), |(sum, most): (f64, f64), value| (sum + value, most.max(value)));
        let (count_here, mean) = (count(me), sum / all as f64);
        let mut lines = vec![format!(
            "task {me}: {count_here} of {all} measurements; mean {mean:.2}, from 0.00 to {most:.2}"
        )];
        if me == 0 {
            lines.push(format!("task 0: measurements by task: {}", numbers((0..tasks).map(count))));
        }
        lines.push(format!("task {me}: the note says {}", 100 + (me + tasks - 1) % tasks));
        lines
    });
    folder.clean();
}

/// Tasks that a shell script starts one by one, with only variables.
#[test]
fn standalone() {
    let folder = Folder::build("standalone", &["Sum", "Udp"]);
    let expected = |task: usize, tasks: usize| {
        let mut lines = vec![format!("task {task}: has added {}", task + 1)];
        if task == 0 {
            let sum = tasks * (tasks + 1) / 2;
            lines.push(format!("task 0: the sum of {tasks} tasks is {sum}, as it should be"));
        }
        lines
    };
    for &tasks in ANY {
        let outcome = support::Job::direct(folder.path().join("run.sh"))
            .arg("./Sum")
            .arg(tasks.to_string())
            .dir(folder.path())
            .run();
        assert!(outcome.ok().stderr.is_empty(), "{outcome}");
        check_lines(&outcome, "Sum", tasks, expected);
    }
    standalone_on_hosts(&folder);
    for line in (0..2).flat_map(|task| expected(task, 2)) {
        assert!(folder.promises(&line), "the README does not show \"{line}\"");
    }
    folder.clean();
}

/// The sample without a launcher on two hosts, whose addresses the program knows, with a key that
/// the user has made.
fn standalone_on_hosts(folder: &Folder) {
    let expected = |task: usize, tasks: usize| {
        let sum = tasks * (tasks + 1) / 2;
        vec![format!("task {task}: the numbers of all {tasks} tasks add up to {sum}")]
    };
    let run = |addresses: &[String], way: &str, rsh: &str, home: &Path| {
        std::fs::write(folder.path().join("addresses"), addresses.join("\n") + "\n").expect("a file");
        let job = support::Job::direct(folder.path().join("udp.sh")).dir(folder.path());
        let outcome = job.arg("./Udp").arg("addresses").arg(way).env("RSH", rsh).env("HOME", home).run();
        outcome.ok();
        check_lines(&outcome, "Udp", addresses.len(), expected);
    };
    let loopback: Vec<String> = (7300..7303).map(|port| format!("127.0.0.1 {port}")).collect();
    run(&loopback, "list", "false", folder.path());
    run(&loopback, "any-list", "false", folder.path());
    if std::net::UdpSocket::bind("[::1]:0").is_ok() {
        let six: Vec<String> = (7300..7303).map(|port| format!("::1 {port}")).collect();
        for way in ["any-list", "any-handler"] {
            run(&six, way, "false", folder.path());
        }
    }
    match support::Hosts::new(2) {
        Err(why) => support::skipped("samples/standalone on two hosts", &why),
        Ok(hosts) => {
            let key = support::Job::direct(support::stage().join("bin/lapi_info")).arg("--make-key");
            key.env("HOME", hosts.folder()).run().ok();
            let at = |task: u16| format!("{} {}", hosts.address(usize::from(task % 2), 0), 7300 + task);
            let addresses: Vec<String> = (0..3).map(at).collect();
            let ssh = hosts.ssh().display().to_string();
            for way in ["list", "handler"] {
                run(&addresses, way, &ssh, hosts.folder());
            }
        }
    }
    for line in (0..2).flat_map(|task| expected(task, 2)) {
        assert!(folder.promises(&line), "the README does not show \"{line}\"");
    }
    std::fs::remove_file(folder.path().join("addresses")).expect("it was written");
}

/// Two programs of one source in one job; of 32 and 64 bits where there is a 32-bit library, of 64
/// bits both where not.
#[test]
fn interop() {
    let folder = Folder::build("interop", &["Interop"]);
    let bits = |name: &str| {
        let elf = std::fs::read(folder.path().join(name)).expect("it was built");
        // The class in an ELF header: 1 is 32 bits, 2 is 64.
        32 * usize::from(elf[4])
    };
    let bits = [bits("Interop.64"), bits("Interop.32")];
    let expected = |me: usize, _: usize| {
        let other = 1 - me;
        let widths =
            format!("task {me}: addresses have {} bits here, and {} in task {other}", bits[me], bits[other]);
        if me == 0 {
            vec![widths, "task 0: has put 131072 numbers into task 1".to_owned()]
        } else {
            vec![widths, "task 1: what was put and what was got back is the same".to_owned()]
        }
    };
    for attach in ["yes", "deny"] {
        let job = support::Job::poe().procs(2).dir(folder.path()).env("LAPI_SHM_ATTACH", attach);
        let outcome = ["-pgmmodel", "mpmd", "-cmdfile", "mixed.cmd"]
            .into_iter()
            .fold(job, |job, word| job.poe_arg(word))
            .run();
        outcome.ok();
        check_lines(&outcome, "Interop", 2, expected);
    }
    for line in (0..2).flat_map(|task| expected(task, 2)) {
        assert!(folder.promises(&line), "the README does not show \"{line}\"");
    }
    for made in ["Interop.64", "Interop.32", "mixed.cmd"] {
        assert!(folder.path().join(made).exists(), "{made}");
    }
    folder.clean();
}

/// What a task prints where completion handlers add and send back.
fn sums_by_handlers(me: usize) -> Vec<String> {
    if me.is_multiple_of(2) {
        let mut lines = vec![format!("task {me}: completion handler: 6 sums from task {}", me + 1)];
        lines.extend(sums(me));
        lines
    } else {
        vec![format!("task {me}: completion handler: 6 numbers from task {}; the sums go back", me - 1)]
    }
}

/// What the even task `me` prints at the end of each accumulate_and_return.
fn sums(me: usize) -> Vec<String> {
    let sums: Vec<String> = (0..6).map(|i| (10 * (me + 1) + i + 10 * (me + 2) + i).to_string()).collect();
    vec![format!("task {me}: the sums: {}", sums.join(" ")), format!("task {me}: the sums are right")]
}

fn numbers(numbers: impl IntoIterator<Item = impl ToString>) -> String {
    let words: Vec<String> = numbers.into_iter().map(|number| number.to_string()).collect();
    words.join(" ")
}
