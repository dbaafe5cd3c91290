//! The table that a task prints.

use super::data::{Moved, Part, SiteRow, SizeCount, TaskPair};
use std::fmt::Write;

/// How many places, peers and handlers are shown; the rest is counted.
const SHOWN: usize = 20;

/// The table, ended by a line break.
pub fn table(part: &Part) -> String {
    let mut text = String::new();
    let (handlers, mut calls): (Vec<&SiteRow>, Vec<&SiteRow>) =
        part.sites.iter().partition(|row| row.class == "handler");
    calls.sort_by_key(|row| (u64::MAX - row.time, &row.call, &row.site));
    let count: u64 = calls.iter().map(|row| row.count).sum();
    let time: u64 = calls.iter().map(|row| row.time).sum();
    let _ = writeln!(
        text,
        "lapiprof: task {} of {}: {count} calls in {:.3} s, {:.3} s of it inside LAPI, in {} thread{}",
        part.task,
        part.tasks,
        seconds(part.wall),
        seconds(time),
        part.threads,
        if part.threads == 1 { "" } else { "s" }
    );
    rows(&mut text, "call", "called from", &calls);
    if !handlers.is_empty() {
        rows(&mut text, "handler", "function", &handlers);
    }
    links(&mut text, &part.links);
    ways(&mut text, &part.links);
    sizes(&mut text, &part.links);
    text
}

fn rows(text: &mut String, what: &str, place: &str, rows: &[&SiteRow]) {
    let _ = writeln!(
        text,
        "  {what:<23} {:>10} {:>14} {:>11} {:>9} {:>9} {:>6}  {place}",
        "count", "bytes", "time ms", "mean us", "max us", "errors"
    );
    for row in rows.iter().take(SHOWN) {
        let _ = writeln!(
            text,
            "  {:<23} {:>10} {:>14} {:>11.3} {:>9.3} {:>9.1} {:>6}  {}{}{}",
            row.call,
            row.count,
            row.bytes,
            row.time as f64 / 1e6,
            row.time as f64 / 1e3 / row.count.max(1) as f64,
            row.longest as f64 / 1e3,
            row.errors,
            if row.line.is_empty() { String::new() } else { format!("{} ", row.line) },
            row.site,
            if row.object.is_empty() { String::new() } else { format!(" ({})", row.object) }
        );
    }
    if rows.len() > SHOWN {
        let _ = writeln!(text, "  and {} more", rows.len() - SHOWN);
    }
}

fn links(text: &mut String, links: &[TaskPair]) {
    for link in links.iter().take(SHOWN) {
        let way = if link.network { " (network)" } else { "" };
        let _ = write!(text, "  with task {}{way}:", link.target);
        let kinds = [("put", link.put), ("get", link.get), ("am", link.am), ("rmw", link.rmw)];
        for (kind, Moved { count, bytes, .. }) in kinds.into_iter().filter(|(_, moved)| moved.count != 0) {
            let _ = write!(text, " {kind} {count} of {bytes} bytes;");
        }
        text.pop();
        text.push('\n');
    }
    if links.len() > SHOWN {
        let _ = writeln!(text, "  and with {} tasks more", links.len() - SHOWN);
    }
}

/// Local and remote traffic apart, where there is remote traffic.
fn ways(text: &mut String, links: &[TaskPair]) {
    if !links.iter().any(|link| link.network) {
        return;
    }
    for (way, network) in [("shared memory", false), ("the network", true)] {
        let of_way = links.iter().filter(|link| link.network == network);
        let (count, bytes) = of_way
            .flat_map(TaskPair::moved)
            .fold((0, 0), |sum, moved| (sum.0 + moved.count, sum.1 + moved.bytes));
        let _ = writeln!(text, "  by {way}: {count} transfers of {bytes} bytes");
    }
}

fn sizes(text: &mut String, links: &[TaskPair]) {
    let mut sum = std::collections::BTreeMap::new();
    for SizeCount { from, count } in links.iter().flat_map(|link| &link.sizes) {
        *sum.entry(*from).or_insert(0) += *count;
    }
    if sum.is_empty() {
        return;
    }
    let _ = write!(text, "  sizes from:");
    for (from, count) in sum {
        let _ = write!(text, " {from}: {count},");
    }
    text.pop();
    text.push('\n');
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
