//! Hosts that are network namespaces, and jobs that launchers start on them.

use std::collections::BTreeSet;
use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use openlapi_tests::{Hosts, Job, Launcher, Layout, Marked, Outcome, eventually, skipped, stage};

/// The hosts, or a loud end of the test.
fn hosts(what: &str, layout: Layout) -> Option<Hosts> {
    Hosts::with(layout).map_err(|why| skipped(what, &why)).ok()
}

fn simple(hosts: usize) -> Layout {
    Layout { hosts, rails: 1, own_tmp: false }
}

/// A shell on a host.
fn shell(hosts: &Hosts, host: usize, script: &str) -> Outcome {
    hosts.inside(host, Job::direct("sh").arg("-c").arg(script)).run()
}

/// Whether a packet from one host reaches an address: a port on which no process listens refuses.
fn reaches(hosts: &Hosts, from: usize, to: usize, rail: usize) -> bool {
    let script = format!("exec 3<>/dev/tcp/{}/9", hosts.address(to, rail));
    let job = Job::direct("timeout").arg("5").arg("bash").arg("-c").arg(script);
    hosts.inside(from, job).run().stderr.contains("refused")
}

#[test]
fn each_host_has_its_own_name_and_network() {
    for count in [2, 3] {
        let Some(hosts) = hosts("hosts and their links", Layout { rails: 2, ..simple(count) }) else {
            return;
        };
        let mut networks = BTreeSet::new();
        for host in 0..count {
            let outcome = shell(&hosts, host, "hostname; readlink /proc/self/ns/net; ls /sys/class/net");
            let lines: Vec<&str> = outcome.ok().stdout.lines().collect();
            assert_eq!(lines, [&*hosts.name(host), &*hosts.network(host), "lo", "rail0", "rail1"]);
            networks.insert(hosts.network(host));
            for (other, rail) in [0, 1, 2].into_iter().take(count).flat_map(|other| [(other, 0), (other, 1)])
            {
                assert!(reaches(&hosts, host, other, rail), "{host} reaches {other} on rail {rail}");
            }
        }
        assert_eq!(networks.len(), count);
    }
}

#[test]
fn a_link_goes_down_and_comes_up() {
    for count in [2, 3] {
        let Some(hosts) = hosts("links that go down", Layout { rails: 2, ..simple(count) }) else { return };
        hosts.set_link(1, 0, false);
        assert!(!reaches(&hosts, 0, 1, 0));
        assert!(reaches(&hosts, 0, 1, 1), "the other rail is up");
        hosts.set_link(1, 0, true);
        assert!(eventually(|| reaches(&hosts, 0, 1, 0)));
    }
}

#[test]
fn hosts_may_share_tmp() {
    for own_tmp in [false, true] {
        let Some(hosts) = hosts("folders of hosts", Layout { own_tmp, ..simple(2) }) else { return };
        let file = shell(&hosts, 0, "mktemp /tmp/lapi-hosts-XXXXXX").ok().stdout.trim().to_owned();
        let seen = shell(&hosts, 1, &format!("test -e {file}")).status == Some(0);
        shell(&hosts, 0, &format!("rm {file}")).ok();
        assert_eq!(seen, !own_tmp);
        // A clone in /tmp is there on every host.
        let here = stage();
        assert!(here.is_dir(), "{}", here.display());
        shell(&hosts, 1, &format!("test -d '{}'", here.display())).ok();
    }
}

#[test]
fn nothing_is_left_of_hosts() {
    let Some(hosts) = hosts("the end of hosts", simple(2)) else { return };
    let job = Job::direct("sh").arg("-c").arg("setsid sleep 300 & echo $!; exec sleep 300");
    let mut running = Marked::start(hosts.inside(1, job));
    let pid = running.running().lines(1)[0].parse().expect("a process number");
    assert!(hosts.processes().contains(&pid));
    let (folder, network) = (hosts.folder().to_owned(), hosts.network(0));
    drop(hosts);
    running.over();
    assert!(!folder.exists());
    assert!(kill(Pid::from_raw(pid), None::<Signal>).is_err() || eventually(|| !openlapi_tests::alive(pid)));
    let kept = || {
        let all = fs::read_dir("/proc").expect("/proc is mounted").flatten();
        all.filter_map(|entry| fs::read_link(entry.path().join("ns/net")).ok())
            .any(|other| other.display().to_string() == network)
    };
    assert!(eventually(|| !kept()), "a process is left in {network}");
}

/// Prints the launcher's number of a task and the host on which it runs.
const PLACE: &str = "echo \"${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${PMIX_RANK:-$SLURM_PROCID}}} $(hostname) \
                     $(readlink /proc/self/ns/net)\"";

/// Fails unless the first half of four tasks was on the first host, and the second half
/// on the second.
#[track_caller]
fn half_and_half(hosts: &Hosts, outcome: &Outcome) {
    let mut lines: Vec<&str> = outcome.ok().stdout.lines().collect();
    lines.sort_unstable();
    let expected: Vec<String> =
        (0..4).map(|task| format!("{task} {} {}", hosts.name(task / 2), hosts.network(task / 2))).collect();
    assert_eq!(lines, expected, "{outcome}");
}

fn starts_tasks_on_both_hosts(launcher: Launcher) {
    let what = format!("jobs of {launcher:?} on two hosts");
    if launcher.command().is_none() {
        return skipped(&what, "it is not installed");
    }
    for own_tmp in [false, true] {
        let Some(hosts) = hosts(&what, Layout { own_tmp, ..simple(2) }) else { return };
        let job = |script: &str| hosts.launch(launcher, 4, "sh").arg("-c").arg(script);
        half_and_half(&hosts, &Marked::start(job(PLACE)).over_by(launcher.name()));
        let failed = Marked::start(job("exit 3")).over_by(launcher.name());
        assert!(!failed.timed_out && failed.status != Some(0), "{failed}");
        assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
    }
}

#[test]
fn hydra_starts_tasks_on_both_hosts() {
    starts_tasks_on_both_hosts(Launcher::Hydra);
}

#[test]
fn open_mpi_starts_tasks_on_both_hosts() {
    starts_tasks_on_both_hosts(Launcher::OpenMpi);
}

#[test]
fn slurm_starts_tasks_on_both_hosts() {
    let what = "jobs of Slurm on two hosts";
    let Some(hosts) = hosts(what, Layout { own_tmp: true, ..simple(2) }) else { return };
    let cluster = match hosts.slurm() {
        Ok(cluster) => cluster,
        Err(why) => return skipped(what, &why),
    };
    for way in ["none", "pmi2", "pmix"] {
        if cluster.knows(way) {
            let job = cluster.srun(way, 4, "sh").arg("-c").arg(PLACE);
            half_and_half(&hosts, &Marked::start(job).over());
        } else {
            skipped(&format!("srun --mpi={way} on two hosts"), "this Slurm does not have it");
        }
    }
    // Two clusters at the same time, on one machine.
    let Some(more) = self::hosts(what, simple(2)) else { return };
    let other = more.slurm().expect("a second cluster starts");
    let job = other.srun("none", 4, "sh").arg("-c").arg(PLACE);
    half_and_half(&more, &Marked::start(job).over());
    other.stop();
    cluster.stop();
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}
