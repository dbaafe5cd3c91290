//! `lapi_perf`: latency, bandwidth and rate of LAPI's operations between the tasks of a job.
//!
//! It measures the installed library by its C calls, as a program uses it, so that a profiler or
//! another version of the library can take part. Task 0 makes the plan, and every task follows
//! it row by row.

mod catalog;
mod compare;
mod error;
pub(crate) mod flags;
mod histogram;
mod lapi;
mod measure;
mod options;
mod plan;
mod plot;
mod report;
mod sizes;
mod table;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use openlapi::abi::{ERROR_CHK, INTERRUPT_SET};
use openlapi::base::patient;
use openlapi::job::Identity;
use openlapi_runtime::environment::process_env;

use compare::{Comparison, differs, nearer};
use error::{Failure, Result};
use lapi::{CacheLine, Side, Sizes, Task};
use measure::Role;
use options::{Json, Mode, Options, Request};
use plan::Plan;
use report::Report;

use crate::said::say;

/// The exit status when `--fail-above` has found a slower row.
const SLOWER: u8 = 3;
/// How many times more a row is measured that differs from what it is compared with: what differs
/// every time is no noise.
const REPEATS: usize = 4;
/// What carries messages within a host.
const SHARED_MEMORY: &str = "shared memory";

/// Runs `lapi_perf` with the arguments that follow its name, and returns the exit status: 0, 1 when
/// the measurement failed or data arrived wrong, 2 when the arguments are invalid, 3 when
/// `--fail-above` finds a slower row.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    match run(arguments) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            let (status, once) = match &failure {
                Failure::Usage(_) => (2, true),
                Failure::Failed(_) => (1, false),
                Failure::Reported(status) => return ExitCode::from(*status),
            };
            // All tasks have the same arguments: one of them says what is wrong with them.
            if !once || is_first() {
                say("lapi_perf", failure);
            }
            ExitCode::from(status)
        }
    }
}

/// Whether this is task 0, or no task.
fn is_first() -> bool {
    Identity::from_env(&process_env).is_ok_and(|identity| identity.task == 0)
}

fn run(arguments: Vec<OsString>) -> Result<u8> {
    match options::parse(arguments)? {
        Request::Help => print_once(&flags::help()),
        Request::Version => print_once(&format!("lapi_perf (OpenLAPI) {}\n", env!("CARGO_PKG_VERSION"))),
        Request::List => print_once(&catalog::list()),
        Request::Run(options) => match &options.compare {
            Some((old, Some(new))) => {
                let comparison = Comparison::of(&Report::read(old)?, &Report::read(new)?, &options);
                print_once(&comparison.table())?;
                Ok(if comparison.is_slower()? { SLOWER } else { 0 })
            }
            _ => measure(&options),
        },
    }
}

fn print_once(text: &str) -> Result<u8> {
    if is_first() { print(text).map(|()| 0) } else { Ok(0) }
}

fn print(text: &str) -> Result<()> {
    patient::print(text).map_err(|why| Failure::failed(format!("standard output: {why}")))
}

/// The job: every task comes here.
fn measure(options: &Options) -> Result<u8> {
    let mut task = Task::open(options.library.as_deref())?;
    let old = match &options.compare {
        Some((old, None)) if task.me == 0 => Some(Report::read(old)),
        _ => None,
    };
    let (plan, old) = match old.transpose() {
        Ok(old) => (plan(&task, options, old.as_ref()), old),
        Err(failure) => (Err(failure), None),
    };
    // Without a plan every task ends, and task 0 has said why.
    let plan = agree(&task, plan)?;
    prepare(&mut task, &plan)?;
    let mut report = Report::new(task.library(), task.tasks, transport(&task, &plan)?, plan);
    let shows_table = task.me == 0 && options.json != Some(Json::Output) && old.is_none();
    if shows_table {
        print(&table::head(&report))?;
    }
    let line = cache_line(&task, &report)?;
    for row in report.plan.rows.clone() {
        let before = line.as_ref().map(|line| line.time(&task)).transpose()?;
        let mut result = measure::row(&task, &report.plan, &row)?;
        for _ in 0..REPEATS {
            // Task 0 decides; the others have no result.
            let differs =
                result.as_ref().zip(old.as_ref()).is_some_and(|(row, old)| differs(old, row, options));
            if task.exchange(u64::from(differs))?[0] == 0 {
                break;
            }
            let again = measure::row(&task, &report.plan, &row)?;
            result = result
                .zip(again)
                .zip(old.as_ref())
                .map(|((one, other), old)| nearer(old, one, other, options));
        }
        let after = line.as_ref().map(|line| line.time(&task)).transpose()?;
        if let Some(mut result) = result {
            result.cache_line_ns = before.zip(after).map(<[f64; 2]>::from);
            if shows_table {
                print(&table::row(&result))?;
                if options.histogram {
                    print(&table::distribution(&result))?;
                }
            }
            report.results.push(result);
        }
    }
    let status = if task.me == 0 { conclude(&report, old.as_ref(), options) } else { Ok(0) };
    // The others do not wait for task 0 in vain, whatever it says.
    task.close()?;
    status
}

/// The plan of task 0; the others have none yet.
fn plan(task: &Task, options: &Options, old: Option<&Report>) -> Result<Option<Plan>> {
    if task.me != 0 {
        return Ok(None);
    }
    let plan = match old {
        // Rows that are named take the place of those of the file.
        Some(old) if !options.names_rows() => old.plan.clone().again(options, task.tasks)?,
        _ => Plan::of(options, task.tasks)?,
    };
    let longest = task.longest_header()?;
    if plan.has_header() && plan.header > longest {
        return Err(Failure::usage(format!(
            "-H {}: a user header has at most {longest} bytes here",
            plan.header
        )));
    }
    for file in
        [&options.plot, &options.json.as_ref().and_then(Json::file).map(Path::to_owned)].into_iter().flatten()
    {
        // Before the time is spent.
        std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(file)
            .map_err(|why| Failure::usage(format!("{}: {why}", file.display())))?;
    }
    Ok(Some(plan))
}

/// Collective: the plan of task 0 in all tasks, or its failure.
fn agree(task: &Task, plan: Result<Option<Plan>>) -> Result<Plan> {
    let sent = match &plan {
        Ok(plan) => serde_json::to_vec(plan).map_err(|why| Failure::failed(why.to_string()))?,
        Err(Failure::Usage(_)) => b"2".to_vec(),
        Err(_) => b"1".to_vec(),
    };
    let sent = task.broadcast(&sent)?;
    if sent.len() == 1 {
        task.leave()?;
        let status = sent[0] - b'0';
        return Err(plan.err().unwrap_or(Failure::Reported(status)));
    }
    serde_json::from_slice(&sent).map_err(|why| Failure::failed(format!("the plan of task 0: {why}")))
}

/// Memory and settings for all rows.
fn prepare(task: &mut Task, plan: &Plan) -> Result<()> {
    let slots = if plan.mode == Mode::Incast { u64::from(plan.pairs) } else { 1 };
    let header = if plan.has_header() { plan.header } else { 0 };
    task.share(Sizes { header, extent: plan.extent(), slots })?;
    if let Some(on) = plan.interrupt {
        task.switch(INTERRUPT_SET, on)?;
    }
    if let Some(on) = plan.error_check {
        task.switch(ERROR_CHK, on)?;
    }
    Ok(())
}

/// Collective: what carries the messages of the pairs.
fn transport(task: &Task, plan: &Plan) -> Result<String> {
    let shares = match Role::of(task.me, task.tasks, plan.mode, plan.pairs) {
        Role::Origin { peer, .. } => Some(task.sharing()?.contains(&peer)),
        _ => None,
    };
    let all = task.exchange(match shares {
        None => 0,
        Some(false) => 1,
        Some(true) => 2,
    })?;
    Ok(match (all.contains(&2), all.contains(&1)) {
        (true, true) => format!("{SHARED_MEMORY} and {}", task.network()),
        (false, true) => task.network().to_owned(),
        _ => SHARED_MEMORY.to_owned(),
    })
}

/// Collective: the cache line that is timed between the tasks of the pair, if it is.
fn cache_line(task: &Task, report: &Report) -> Result<Option<CacheLine>> {
    if !report.plan.cache_line {
        return Ok(None);
    }
    if report.transport != SHARED_MEMORY {
        task.leave()?;
        return Err(Failure::usage(format!(
            "--cache-line: the tasks of the pair share no memory here (transport: {})",
            report.transport
        )));
    }
    let side = match Role::of(task.me, task.tasks, report.plan.mode, report.plan.pairs) {
        Role::Origin { .. } => Side::First,
        Role::Target { origin, .. } => Side::Second(origin),
        Role::Idle => Side::Neither,
    };
    CacheLine::share(task, side).map(Some)
}

/// What task 0 does with the results.
fn conclude(report: &Report, old: Option<&Report>, options: &Options) -> Result<u8> {
    let mut slower = Ok(false);
    if let Some(old) = old {
        let comparison = Comparison::of(old, report, options);
        if options.json != Some(Json::Output) {
            print(&comparison.table())?;
        }
        slower = comparison.is_slower();
    }
    let write = |file: &Path, text: &str| {
        std::fs::write(file, text).map_err(|why| Failure::failed(format!("{}: {why}", file.display())))
    };
    match &options.json {
        Some(Json::Output) => print(&report.json()?)?,
        Some(Json::File(file)) => write(file, &report.json()?)?,
        None => {}
    }
    if let Some(file) = &options.plot {
        write(file, &plot::svg(report))?;
    }
    let wrong: Vec<&str> =
        report.results.iter().filter(|row| row.right == Some(false)).map(|row| &*row.test).collect();
    if !wrong.is_empty() {
        return Err(Failure::failed(format!(
            "data has arrived wrong in {} rows: {}",
            wrong.len(),
            wrong.join(", ")
        )));
    }
    Ok(if slower? { SLOWER } else { 0 })
}
