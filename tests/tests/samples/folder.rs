//! A folder of samples in the hands of a user: copied, built by its own Makefile, run under
//! poe, and read.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{self, Job, Outcome};

/// The expected output of a task of a job of this number of tasks, in this order.
pub type Expected = fn(task: usize, tasks: usize) -> Vec<String>;

/// Numbers of tasks for programs whose tasks work in pairs.
pub const PAIRS: &[usize] = &[2, 4];

/// How the sources of samples end: C and Fortran.
const ENDINGS: [&str; 2] = [".c", ".F"];

/// A copy of a folder of samples, built.
pub struct Folder {
    path: PathBuf,
    programs: Vec<String>,
    readme: String,
    environment: Vec<(String, String)>,
}

impl Folder {
    /// Copies a folder as a user would, so that the source tree stays clean, and runs `make` in it.
    /// `programs` are all of its programs.
    pub fn build(name: &str, programs: &[&str]) -> Self {
        Self::with_libraries(name, programs, &[])
    }

    /// Builds programs, with sources that are compiled to libraries of them.
    pub fn with_libraries(name: &str, programs: &[&str], libraries: &[&str]) -> Self {
        let source = support::workspace().join("samples").join(name);
        let all = [programs, libraries].concat();
        assert_eq!(sources(&source), sorted(&all), "the programs in samples/{name}");
        let path = support::build_dir().join("tests/samples").join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("the copy's folder can be made");
        for program in all {
            let ending = ENDINGS.iter().find(|ending| source.join(format!("{program}{ending}")).exists());
            copy(&source, &path, &format!("{program}{}", ending.expect("a source in one of the languages")));
        }
        copy(&source, &path, "Makefile");
        for ending in [".sh", ".h"] {
            for file in files(&source, ending) {
                copy(&source, &path, &format!("{file}{ending}"));
            }
        }
        let readme = fs::read_to_string(source.join("README")).expect("every folder has a README");
        let programs = programs.iter().map(|&program| program.to_owned()).collect();
        let folder = Self { path, programs, readme, environment: Vec::new() };
        folder.make("all");
        folder
    }

    /// Runs the programs from now on with a variable in their environment.
    pub fn set(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
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
            // A make that runs these tests must not pass on its own flags and variables.
            .env_remove("MAKEFLAGS")
            .env_remove("MAKELEVEL")
            .env_remove("LAPI_CC")
            .env_remove("LAPI_FC")
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

    /// Where the copy is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn run(&self, program: &str, tasks: usize) -> Outcome {
        assert!(self.programs.iter().any(|built| built == program));
        let mut job = Job::new(self.path.join(program)).procs(tasks).dir(&self.path);
        for (name, value) in &self.environment {
            job = job.env(name, value);
        }
        let outcome = job.run();
        outcome.ok();
        outcome
    }

    /// Runs a program with each number of tasks, and compares what every task prints. Lines of
    /// different tasks may come in any order.
    pub fn check(&self, program: &str, numbers_of_tasks: &[usize], expected: Expected) {
        for &tasks in numbers_of_tasks {
            let outcome = self.run(program, tasks);
            assert_complaints(&outcome, program, tasks);
            check_lines(&outcome, program, tasks, expected);
        }
        // For any number of tasks the README shows task 0 alone.
        let shown = if numbers_of_tasks == PAIRS { 2 } else { 1 };
        for line in (0..shown).flat_map(|task| expected(task, 2)) {
            assert!(self.promises(&line), "{program}: the README does not show \"{line}\"");
        }
    }

    /// Checks a program in C and its twin in Fortran, which print the same.
    pub fn check_twins(&self, twins: [&str; 2], numbers_of_tasks: &[usize], expected: Expected) {
        for program in twins {
            self.check(program, numbers_of_tasks, expected);
        }
    }

    /// Whether the README shows this line as output.
    pub fn promises(&self, line: &str) -> bool {
        self.readme.lines().any(|shown| shown.strip_prefix("    ") == Some(line))
    }

    pub fn refuses_odd_numbers(&self) {
        for program in &self.programs {
            let outcome = Job::new(self.path.join(program)).procs(3).dir(&self.path).run();
            outcome.exited(1).says(&format!("{program} needs an even number of tasks, not 3"));
        }
    }

    /// Runs `make clean`, which must remove all that was built, and removes the copy.
    pub fn clean(self) {
        self.make("clean");
        for program in &self.programs {
            assert!(!self.path.join(program).exists(), "make clean leaves {program} behind");
        }
        fs::remove_dir_all(&self.path).expect("the copy can be removed");
    }
}

/// Compares what each task has printed.
pub fn check_lines(
    outcome: &Outcome,
    program: &str,
    tasks: usize,
    expected: impl Fn(usize, usize) -> Vec<String>,
) {
    for task in 0..tasks {
        let mark = format!("task {task}: ");
        let printed: Vec<String> =
            outcome.stdout.lines().filter(|line| line.starts_with(&mark)).map(without_times).collect();
        assert_eq!(printed, expected(task, tasks), "{program} with {tasks} tasks\n{outcome}");
    }
}

/// The line with a T for each time in microseconds that is more than nothing.
fn without_times(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let is_time = |at: usize| {
        let unit = words.get(at + 1).is_some_and(|next| next.trim_end_matches(',') == "us");
        unit && words[at].parse().is_ok_and(|time: f64| time > 0.0 && time.is_finite())
    };
    let shown: Vec<&str> = (0..words.len()).map(|at| if is_time(at) { "T" } else { words[at] }).collect();
    shown.join(" ")
}

/// Standard error holds a message for each call of the program that is refused, and nothing else.
/// Of several tasks poe shows it once, as a rule, and names the others.
pub fn assert_complaints(outcome: &Outcome, program: &str, tasks: usize) {
    let refused: &[&str] = match program {
        "Qenv_senv" => &["LAPI_Senv: LAPI_ERR_SET_VAL (464)", "LAPI_Senv: LAPI_ERR_QUERY_TYPE (460)"],
        _ => &[],
    };
    for &call in refused {
        let said = outcome.stderr.lines().filter(|line| line.contains(call)).count();
        assert!((1..=tasks).contains(&said), "{program} with {tasks} tasks: {call}\n{outcome}");
    }
    let folded = |line: &str| tasks > 1 && line.starts_with("poe: the same from task");
    let expected = |line: &str| refused.iter().any(|call| line.contains(call)) || folded(line);
    assert!(outcome.complaints().lines().all(expected), "{program} with {tasks} tasks\n{outcome}");
    let named = refused.is_empty() || tasks == 1 || outcome.stderr.lines().any(folded);
    assert!(named, "{program} with {tasks} tasks\n{outcome}");
}

/// The names of the programs in a folder, without their ending.
fn sources(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = ENDINGS.iter().flat_map(|ending| files(folder, ending)).collect();
    names.sort();
    names
}

/// The names of the files in a folder that end so, without that ending.
fn files(folder: &Path, ending: &str) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<String> = files
        .map(|file| file.expect("a folder can be read to its end").file_name().into_string())
        .filter_map(|name| Some(name.expect("names of files are ASCII").strip_suffix(ending)?.to_owned()))
        .collect();
    names.sort();
    names
}

fn sorted(names: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    names.sort();
    names
}

fn copy(from: &Path, to: &Path, name: &str) {
    fs::copy(from.join(name), to.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
}
