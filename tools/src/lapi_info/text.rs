//! The report for people: sections with aligned columns.

use std::fmt::Write;

use super::report::{Build, Domain, File, Machine, Report, Transport, Variable};
use openlapi::base::ranges::ranges;

/// Columns up to this number of characters wide are aligned; longer cells exceed it.
const WIDEST: usize = 28;

/// The whole text.
pub(super) fn write(report: &Report, verbose: bool) -> String {
    let mut out = String::new();
    let build = &report.build;
    let _ = writeln!(out, "OpenLAPI {}", report.version);
    table(
        &mut out,
        &[
            row(["build", &format!("{}, {}, {}", build.profile, build.target, build.rustc)]),
            row(["built", &built(build)]),
            row(["library", build.library.as_deref().unwrap_or("not installed beside this program")]),
        ],
    );

    let _ = writeln!(out, "\nMachine");
    write_machine(&mut out, &report.machine);

    let _ = writeln!(out, "\nTransports");
    for transport in &report.transports {
        write_transport(&mut out, transport);
    }

    let _ = writeln!(out, "\nLimits");
    let limits: Vec<Vec<String>> = report
        .limits
        .iter()
        .map(|limit| {
            let value =
                limit.value.map_or_else(|| "unlimited".to_owned(), |value| format!("{value} {}", limit.unit));
            row([limit.name, &value, &limit.meaning])
        })
        .collect();
    table(&mut out, &limits);

    let _ = writeln!(out, "\nFiles of settings");
    write_files(&mut out, &report.files);

    let _ = writeln!(out, "\nEnvironment variables");
    write_variables(&mut out, &report.variables, verbose);

    if !report.unknown.is_empty() {
        let _ = writeln!(out, "\nVariables that are set and have no effect");
        for unknown in &report.unknown {
            let guess =
                unknown.did_you_mean.map(|name| format!(": did you mean {name}?")).unwrap_or_default();
            let _ = writeln!(out, "  {}{guess}", unknown.name);
        }
    }

    let _ = writeln!(out, "\nThis process");
    match &report.place {
        Some(place) => table(
            &mut out,
            &[
                row(["launcher", place.launcher]),
                row(["task", &format!("{} of {}", place.task, place.tasks)]),
                row(["tasks on this machine", &place.tasks_on_this_machine.to_string()]),
                row(["job's key", &place.key]),
            ],
        ),
        None => {
            let _ = writeln!(out, "  the environment describes no valid place in a job");
        }
    }

    if !report.problems.is_empty() {
        let _ = writeln!(out, "\nLAPI_Init would fail here");
        for problem in &report.problems {
            let _ = writeln!(out, "  {problem}");
        }
    }
    out
}

/// A line for what matters most.
pub(super) fn short(report: &Report) -> String {
    let mut out = format!("OpenLAPI {}, {}\n", report.version, built(&report.build));
    for transport in &report.transports {
        let usable = if transport.usable { "usable" } else { "not usable" };
        let _ = writeln!(out, "{}: {usable}: {}", transport.name, transport.reason);
    }
    if let Some(place) = &report.place {
        let _ = writeln!(out, "task {} of {}, by {}", place.task, place.tasks, place.launcher);
    }
    for fault in report.files.iter().flat_map(|file| &file.faults) {
        let _ = writeln!(out, "{fault}");
    }
    for unknown in &report.unknown {
        let _ = writeln!(out, "{} is set and has no effect", unknown.name);
    }
    for problem in &report.problems {
        let _ = writeln!(out, "LAPI_Init would fail here: {problem}");
    }
    out
}

fn write_machine(out: &mut String, machine: &Machine) {
    let memory = |bytes: Option<u64>| {
        bytes.map_or_else(
            || "unknown".to_owned(),
            |bytes| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
        )
    };
    let mut rows = vec![
        row(["processors", &machine.processors.to_string()]),
        row(["of this process", &ranges(&machine.allowed)]),
        row(["memory", &memory(machine.memory)]),
    ];
    for Domain { number, processors, memory: bytes } in &machine.domains {
        rows.push(row([
            &format!("memory domain {number}"),
            &format!("processors {processors}, {}", memory(*bytes)),
        ]));
    }
    table(out, &rows);
}

/// When, from which commit and with which features.
fn built(build: &Build) -> String {
    let commit = if build.commit.is_empty() { String::new() } else { format!(", commit {}", build.commit) };
    let features =
        if build.features.is_empty() { String::new() } else { format!(", with {}", build.features) };
    format!("{}{commit}{features}", build.date)
}

fn write_transport(out: &mut String, transport: &Transport) {
    let usable = if transport.usable { "usable" } else { "not usable" };
    let _ = writeln!(out, "  {}: {usable}: {}", transport.name, transport.reason);
    let checks: Vec<Vec<String>> = transport
        .checks
        .iter()
        .map(|check| {
            let works = if check.works { "yes" } else { "no" };
            row([&format!("  {}", check.name), works, &check.detail])
        })
        .collect();
    table(out, &checks);
    let passed_over: Vec<Vec<String>> = transport
        .passed_over
        .iter()
        .map(|other| row([&format!("  not {}", other.name), "", other.reason]))
        .collect();
    table(out, &passed_over);
}

fn write_files(out: &mut String, files: &[File]) {
    if files.is_empty() {
        let _ = writeln!(out, "  none is read");
    }
    let there = |file: &File| if file.is_there { "read" } else { "not there" };
    let rows: Vec<_> = files.iter().map(|file| row([file.kind, &file.path, there(file)])).collect();
    table(out, &rows);
    for fault in files.iter().flat_map(|file| &file.faults) {
        let _ = writeln!(out, "  {fault}");
    }
}

fn write_variables(out: &mut String, variables: &[Variable], verbose: bool) {
    let mut rows = vec![row(["name", "value", "from", "default", "allowed"])];
    for variable in variables {
        rows.push(row([
            variable.name,
            variable.value.as_deref().unwrap_or("-"),
            match variable.source {
                "unset" => "-",
                source => source,
            },
            variable.default.unwrap_or("-"),
            &variable.allowed,
        ]));
    }
    let lines = aligned(&rows);
    let _ = writeln!(out, "  {}", lines[0]);
    for (variable, line) in variables.iter().zip(&lines[1..]) {
        let _ = writeln!(out, "  {line}");
        if verbose {
            let _ = writeln!(out, "      {}", variable.meaning);
        }
        if let Some(place) = &variable.place {
            let _ = writeln!(out, "      set in {place}");
        }
        if let Some(refused) = &variable.refused {
            let _ = writeln!(out, "      refused: {} ({})", refused.name, refused.code);
        }
    }
}

pub(super) fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).into()
}

pub(super) fn table(out: &mut String, rows: &[Vec<String>]) {
    for line in aligned(rows) {
        let _ = writeln!(out, "  {line}");
    }
}

/// A line for each row, every column as wide as its widest cell.
fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.filter(|&width| width <= WIDEST).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other() {
        let rows = [row(["a", "long value", "x"]), row(["longer", "b", "y"]), row(["c", "", ""])];
        assert_eq!(aligned(&rows), ["a       long value  x", "longer  b           y", "c"]);
    }

    #[test]
    fn one_very_long_cell_does_not_push_all_others_away() {
        let long = "x".repeat(100);
        let lines = aligned(&[row([&long, "1"]), row(["b", "2"])]);
        assert_eq!(lines, [format!("{long}  1"), "b  2".to_owned()]);
    }
}
