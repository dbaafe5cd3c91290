//! The findings of the check for people: a line for each direction, the slowest ones named.

use std::fmt::Write;

use super::{Findings, Pair};
use crate::lapi_info::text::{row, table};

/// A pair is named below the table when its round trip is this much longer than the middle one, or
/// its bandwidth this much less.
const SLOW: f64 = 2.0;

/// The whole text.
pub(super) fn write(findings: &Findings) -> String {
    let Findings { tasks, provider, networks, hosts, pairs } = findings;
    if *tasks == 1 {
        return "This is a job of one task: the check needs tasks on several hosts.\n\
                Start it as a job: poe -hostfile hosts lapi_info --network, or by another launcher.\n"
            .to_owned();
    }
    if pairs.is_empty() {
        let name = hosts.first().map_or("this host", |host| &host.name);
        return format!(
            "All {tasks} tasks are on one host, {name}, and use shared memory: there is no network to check.\n\
             Name several hosts (poe -hostfile), or set LAPI_USE_SHM=no to check the network of this one.\n"
        );
    }
    let name = |task: u32| {
        let same = |name: &str| hosts.iter().filter(|host| host.name == name).count() > 1;
        match hosts.iter().find(|host| host.task == task) {
            Some(host) if same(&host.name) => format!("{} (task {task})", host.name),
            Some(host) => host.name.clone(),
            None => format!("task {task}"),
        }
    };
    let count = match hosts.iter().any(|host| host.name != hosts[0].name) {
        true => format!("{tasks} tasks on {} hosts", hosts.len()),
        // Or hosts that have one name, which the task numbers in the table distinguish.
        false => format!("{tasks} tasks, {} of them take part", hosts.len()),
    };
    let provider = provider.as_deref().unwrap_or("unknown");
    let mut out = format!("{count}, provider {provider}: the addresses of the hosts\n\n");
    networks.iter().for_each(|line| {
        let _ = writeln!(out, "  {line}");
    });
    out += "\nLAPI_Put of 8 bytes until it is complete, and of 1 MiB\n\n";
    let mut rows = vec![row(["from", "to", "round trip", "bandwidth"])];
    rows.extend(pairs.iter().map(|pair| {
        let wrong = if pair.right { "" } else { "  WRONG DATA" };
        let bandwidth = format!("{:8.0} MB/s{wrong}", pair.bandwidth);
        row([&name(pair.from), &name(pair.to), &format!("{:8.1} us", pair.round_trip), &bandwidth])
    }));
    table(&mut out, &rows);
    let middle = |of: fn(&Pair) -> f64| {
        let mut values: Vec<f64> = pairs.iter().map(of).collect();
        values.sort_unstable_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let (trip, rate) = (middle(|pair| pair.round_trip), middle(|pair| pair.bandwidth));
    for pair in pairs.iter().filter(|pair| pair.round_trip > trip * SLOW || pair.bandwidth < rate / SLOW) {
        let _ = writeln!(
            out,
            "slow: {} to {} (in the middle: {trip:.1} us, {rate:.0} MB/s)",
            name(pair.from),
            name(pair.to)
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::HostTask;
    use super::*;

    fn findings(names: &[&str], pairs: &[(u32, u32, f64, f64)]) -> Findings {
        let place = |(task, name): (usize, &&str)| HostTask { name: (*name).to_owned(), task: task as u32 };
        let pair = |&(from, to, round_trip, bandwidth): &(u32, u32, f64, f64)| Pair {
            from,
            to,
            round_trip,
            bandwidth,
            right: from != 9,
        };
        Findings {
            tasks: names.len() as u32,
            provider: Some("tcp;ofi_rxm".to_owned()),
            networks: vec!["node0 (task 0)  eth0  10.0.0.1  10.0.0.0/24  used".to_owned()],
            hosts: names.iter().enumerate().map(place).collect(),
            pairs: pairs.iter().map(pair).collect(),
        }
    }

    #[test]
    fn slow_pairs_are_named() {
        let even = [(0, 1, 20.0, 900.0), (1, 0, 21.0, 950.0)];
        let text = write(&findings(&["node0", "node1"], &even));
        assert!(text.contains("2 tasks on 2 hosts, provider tcp;ofi_rxm"), "{text}");
        assert!(text.contains("\n  node0 (task 0)  eth0  10.0.0.1  10.0.0.0/24  used\n"), "{text}");
        assert!(text.contains("  node0  node1      20.0 us       900 MB/s\n"), "{text}");
        assert!(!text.contains("slow") && !text.contains("WRONG"), "{text}");
        let uneven = [(0, 1, 20.0, 900.0), (1, 0, 50.0, 950.0), (0, 2, 20.0, 100.0), (2, 0, 20.0, 900.0)];
        let text = write(&findings(&["a", "b", "c"], &uneven));
        assert!(text.contains("slow: b to a (in the middle: 20.0 us, 900 MB/s)"), "{text}");
        assert!(text.contains("slow: a to c") && text.matches("slow").count() == 2, "{text}");
    }

    #[test]
    fn equal_names_have_their_tasks() {
        let text = write(&findings(&["node0", "node0"], &[(0, 1, 1.0, 1.0), (1, 0, 1.0, 1.0)]));
        assert!(text.contains("node0 (task 0)  node0 (task 1)"), "{text}");
    }

    #[test]
    fn a_job_with_nothing_to_check_is_reported() {
        assert!(write(&findings(&["node0"], &[])).contains("job of one task"));
        let one = Findings { tasks: 4, ..findings(&["node0"], &[]) };
        assert!(write(&one).contains("All 4 tasks are on one host, node0"));
    }
}
