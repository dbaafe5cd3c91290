//! The samples, built by their own Makefiles with the installed wrapper and run with each number of tasks that
//! they allow. What they print is compared line by line, and with what their README promises.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use openlapi_tests as support;
use support::{Job, Outcome};

/// What a task of a job of so many tasks has to print, in this order.
type Expected = fn(task: usize, tasks: usize) -> Vec<String>;

const PAIRS: &[usize] = &[2, 4];
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
    let folder = Folder::build("lapi_api", &["Am", "Get", "Put", "Rmw", "Rmw64"]);
    folder.check("Am", PAIRS, |me, _| {
        let words: Vec<String> = (0..8).map(|i| (100 * me + i).to_string()).collect();
        if me % 2 == 0 {
            let handled = "has handled the message; completion counter after the wait: 0";
            vec![format!("task {me}: task {} {handled}", me + 1)]
        } else {
            vec![
                format!("task {me}: completion handler: the message is {}", words.join(" ")),
                format!("task {me}: the message is as it was sent"),
            ]
        }
    });
    folder.check("Get", PAIRS, |me, _| {
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
    folder.check("Put", PAIRS, |me, _| {
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
    folder.check("Rmw", PAIRS, |me, _| {
        if me % 2 == 0 {
            let target = me + 1;
            vec![
                format!("task {me}: FETCH_AND_ADD (3) at task {target}: 5"),
                format!("task {me}: FETCH_AND_OR (7) at task {target}: 8"),
                format!("task {me}: SWAP (-20) at task {target}: 15"),
                format!("task {me}: COMPARE_AND_SWAP (1, 2) at task {target}: 0"),
                format!("task {me}: COMPARE_AND_SWAP (-20, 42) at task {target}: 1"),
                format!("task {me}: the answers are right"),
            ]
        } else {
            vec![format!("task {me}: at the end the variable is 42")]
        }
    });
    folder.check("Rmw64", PAIRS, |me, _| {
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
    folder.check("accumulate_and_return.Am", PAIRS, |me, _| {
        if me % 2 == 0 {
            let from = me + 1;
            let mut lines = vec![format!("task {me}: completion handler: 6 sums from task {from}")];
            lines.extend(sums(me));
            lines
        } else {
            let from = me - 1;
            vec![format!("task {me}: completion handler: 6 numbers from task {from}; the sums go back")]
        }
    });
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
fn xfer() {
    let folder = Folder::build("xfer", &["Am_xfer", "Put_xfer"]);
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
    folder.check("Put_xfer", PAIRS, |me, _| {
        if me % 2 == 0 {
            vec![
                format!("task {me}: origin counter after the wait: 0"),
                format!("task {me}: completion counter after the wait: 0"),
                format!("task {me}: the send completion handler was told LAPI_SUCCESS"),
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

/// What the even task `me` prints at the end of each accumulate_and_return.
fn sums(me: usize) -> Vec<String> {
    let sums: Vec<String> = (0..6).map(|i| (10 * (me + 1) + i + 10 * (me + 2) + i).to_string()).collect();
    vec![format!("task {me}: the sums: {}", sums.join(" ")), format!("task {me}: the sums are right")]
}

/// What Qenv_senv prints of the attributes: all of them, and those with the manual's value that have one.
fn check_attributes(outcome: &Outcome, tasks: usize) {
    assert_complaints(outcome, "Qenv_senv", tasks);
    let answers: Vec<(&str, &str)> = outcome
        .stdout
        .lines()
        .take_while(|line| *line != "--- what can be set")
        .filter_map(|line| line.split_once(' '))
        .map(|(name, value)| (name, value.trim()))
        .collect();
    let answer = |name: &str| {
        let found = answers.iter().find(|(found, _)| *found == name);
        found.unwrap_or_else(|| panic!("{name} is not among what was printed\n{outcome}")).1
    };
    let number = |name: &str| -> i64 {
        answer(name).parse().unwrap_or_else(|_| panic!("{name} is no number\n{outcome}"))
    };

    assert_eq!(number("TASK_ID"), 0, "{outcome}");
    assert_eq!(number("NUM_TASKS"), tasks as i64, "{outcome}");
    assert_eq!(number("QUERY_SHM_NUM_TASKS"), tasks as i64, "{outcome}");
    let everybody: Vec<String> = (0..tasks).map(|task| task.to_string()).collect();
    assert_eq!(answer("QUERY_SHM_TASKS"), everybody.join(" "), "{outcome}");
    for (name, value) in [
        ("ERROR_CHK", 0),
        ("TIMEOUT", 900),
        ("MIN_TIMEOUT", 10),
        ("MAX_TIMEOUT", 86_400),
        ("INTERRUPT_SET", 1),
        ("NUM_REX_BUFS", 128),
        ("REX_BUF_SZ", 16_384),
        ("BUF_CP_SIZE", 128),
        ("ACK_THRESHOLD", 30),
        ("MAX_DATA_SZ", i64::from(i32::MAX)),
        ("BULK_XFER", 0),
        ("BULK_MIN_MSG_SIZE", 150 * 1024),
    ] {
        assert_eq!(number(name), value, "{name}\n{outcome}");
    }
    for (name, least) in [
        ("MAX_UHDR_SZ", 1024),
        ("MAX_PORTS", 0),
        ("MAX_PKT_SZ", 1024),
        ("LOC_ADDRTBL_SZ", 8),
        ("MAX_ATOM_SIZE", 1),
        ("MAX_PKTS_OUT", 1),
        ("EPOCH_NUM", 0),
        ("USE_THRESH", 0),
        ("RCV_FIFO_SIZE", 0),
        ("QUERY_SHM_ENABLED", i64::from(tasks > 1)),
    ] {
        assert!(number(name) >= least, "{name} is below {least}\n{outcome}");
    }
    for name in ["QUERY_STATISTICS", "QUERY_SHM_STATISTICS", "QUERY_LOCAL_SEND_STATISTICS"] {
        assert!(answer(name).ends_with("bytes received"), "{name}\n{outcome}");
    }
    answer("PRINT_STATISTICS");
    let mut lines: Vec<String> = set_and_refused(tasks);
    lines.extend((0..tasks).map(|task| format!("task {task}: all attributes behave")));
    for line in lines {
        let times = outcome.stdout.lines().filter(|printed| *printed == line).count();
        assert_eq!(times, 1, "\"{line}\"\n{outcome}");
    }
    for way in ["network", "shared memory", "local"] {
        let begin = format!("task 0: {way}: packets sent ");
        assert!(outcome.stdout.lines().any(|line| line.starts_with(&begin)), "{begin}\n{outcome}");
    }
}

/// What Qenv_senv prints of setting attributes.
fn set_and_refused(tasks: usize) -> Vec<String> {
    vec![
        "ACK_THRESHOLD                30, set to 10, set back to 30".to_owned(),
        "ERROR_CHK                    0, set to 1, set back to 0".to_owned(),
        "INTERRUPT_SET                1, set to 0, set back to 1".to_owned(),
        "TIMEOUT                      900, set to 600, set back to 900".to_owned(),
        "TIMEOUT                      to 9: LAPI_ERR_SET_VAL".to_owned(),
        format!("NUM_TASKS                    to {}: LAPI_ERR_QUERY_TYPE", tasks + 1),
    ]
}

/// Standard error holds a message from each task for each call that the program makes in vain, and nothing else.
fn assert_complaints(outcome: &Outcome, program: &str, tasks: usize) {
    let refused: &[&str] = match program {
        "Init" => &["LAPI_Gfence: LAPI_ERR_HNDL_INVALID (417)"],
        "Qenv_senv" => &["LAPI_Senv: LAPI_ERR_SET_VAL (464)", "LAPI_Senv: LAPI_ERR_QUERY_TYPE (460)"],
        _ => &[],
    };
    for &call in refused {
        let said = outcome.stderr.lines().filter(|line| line.contains(call)).count();
        assert_eq!(said, tasks, "{program} with {tasks} tasks: {call}\n{outcome}");
    }
    assert_eq!(
        outcome.stderr.lines().count(),
        tasks * refused.len(),
        "{program} with {tasks} tasks\n{outcome}"
    );
}

/// A copy of a folder of samples, built.
struct Folder {
    path: PathBuf,
    programs: Vec<String>,
    readme: String,
}

impl Folder {
    /// Copies a folder as a user would, so that the source tree stays clean, and runs `make` in it.
    fn build(name: &str, programs: &[&str]) -> Self {
        let source = support::workspace().join("samples").join(name);
        let path = support::build_dir().join("tests/samples").join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("the copy's folder can be made");
        for program in programs {
            copy(&source, &path, &format!("{program}.c"));
        }
        copy(&source, &path, "Makefile");
        let readme = fs::read_to_string(source.join("README")).expect("every folder has a README");
        let programs = programs.iter().map(|&program| program.to_owned()).collect();
        let folder = Self { path, programs, readme };
        folder.make("all");
        folder
    }

    /// Runs a target of the folder's Makefile with the installed wrapper first on the PATH.
    fn make(&self, target: &str) {
        let mut path = vec![support::stage().join("bin")];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let made = Command::new("make")
            .arg(target)
            .arg("CFLAGS=-O2 -Wall -Wextra -Werror")
            .current_dir(&self.path)
            .env("PATH", std::env::join_paths(path).expect("no folder on the PATH has a colon in its name"))
            // A make that runs these tests must not hand its own flags and variables on.
            .env_remove("MAKEFLAGS")
            .env_remove("MAKELEVEL")
            .env_remove("LAPI_CC")
            .output()
            .expect("make can be run");
        assert!(
            made.status.success(),
            "make {target} in {} failed:\n{}{}",
            self.path.display(),
            String::from_utf8_lossy(&made.stdout),
            String::from_utf8_lossy(&made.stderr)
        );
    }

    fn run(&self, program: &str, tasks: usize) -> Outcome {
        assert!(self.programs.iter().any(|built| built == program));
        let outcome = Job::new(self.path.join(program)).procs(tasks).dir(&self.path).run();
        outcome.ok();
        outcome
    }

    /// Runs a program with each number of tasks, and compares what every task prints. Lines of different tasks
    /// may come in any order.
    fn check(&self, program: &str, numbers_of_tasks: &[usize], expected: Expected) {
        for &tasks in numbers_of_tasks {
            let outcome = self.run(program, tasks);
            assert_complaints(&outcome, program, tasks);
            for task in 0..tasks {
                let mark = format!("task {task}: ");
                let printed: Vec<&str> =
                    outcome.stdout.lines().filter(|line| line.starts_with(&mark)).collect();
                assert_eq!(printed, expected(task, tasks), "{program} with {tasks} tasks\n{outcome}");
            }
        }
        // For any number of tasks the README shows task 0 alone.
        let shown = if numbers_of_tasks == PAIRS { 2 } else { 1 };
        for line in (0..shown).flat_map(|task| expected(task, 2)) {
            assert!(self.promises(&line), "{program}: the README does not show \"{line}\"");
        }
    }

    /// Whether the README shows this line as output.
    fn promises(&self, line: &str) -> bool {
        self.readme.lines().any(|shown| shown.strip_prefix("    ") == Some(line))
    }

    fn refuses_odd_numbers(&self) {
        for program in &self.programs {
            let outcome = Job::new(self.path.join(program)).procs(3).dir(&self.path).run();
            outcome.exited(1).says(&format!("{program} needs an even number of tasks, not 3"));
        }
    }

    /// Runs `make clean`, which must take away all that was built, and removes the copy.
    fn clean(self) {
        self.make("clean");
        for program in &self.programs {
            assert!(!self.path.join(program).exists(), "make clean leaves {program} behind");
        }
        fs::remove_dir_all(&self.path).expect("the copy can be removed");
    }
}

fn copy(from: &Path, to: &Path, name: &str) {
    fs::copy(from.join(name), to.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
}
