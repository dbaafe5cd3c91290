//! libpmemobj and pmempool of the distribution, with a replica on another host: what was committed
//! survives the end of either side.

mod support;

use openlapi_tests::{Hosts, Job, Layout, Outcome, compile_plain, eventually, is_installed, skipped};
use std::fs;
use std::path::{Path, PathBuf};
use support::{Host, PART};

/// Transactions of each thread in the ordinary tests; `RPMEM_TRANSACTIONS` asks for others.
const TRANSACTIONS: u64 = 300;
/// How often a process is killed in them; `RPMEM_KILLS` asks for others, and for a tenth of them of
/// the daemon. `RPMEM_SEED` is the first seed, so that a long run can go on where one has ended.
const KILLS: u64 = 6;

/// A pool with two parts here and two at the host.
struct Pool {
    host: Host,
    program: PathBuf,
}

fn asked_for(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |count| count.parse().expect("a number"))
}

fn transactions() -> u64 {
    asked_for("RPMEM_TRANSACTIONS", TRANSACTIONS)
}

/// The seeds of `kills` kills. A long run says how far it has come.
fn seeds(of: &str, kills: u64) -> impl Iterator<Item = u64> {
    let first = asked_for("RPMEM_SEED", 1);
    (first..first + kills).inspect(move |seed| {
        if *seed != first && (seed - first).is_multiple_of(25) {
            println!("{of}: {} kills, the next seed is {seed}", seed - first);
        }
    })
}

/// The transaction in which a process is killed: each seed is another point before, within or after
/// it.
fn killed_at(seed: u64) -> u64 {
    TRANSACTIONS / 3 + seed % 97
}

impl Pool {
    /// `None`: the distribution's packages are missing, which is said.
    fn new(test: &str) -> Option<Self> {
        let header = Path::new("/usr/include/libpmemobj.h").exists();
        if !is_installed("pmempool") || !header {
            skipped(test, "pmdk-tools and libpmemobj-dev are not installed (ci/deps.sh doors)");
            return None;
        }
        let program = compile_plain(
            "rpmem_transactions",
            &["doors/rpmem/tests/c/transactions.c"],
            &["-lpmemobj", "-lpmem", "-pthread"],
        );
        let this = Self { host: Host::new(test), program };
        this.host.set("replica", "", 2);
        this.host.write("pool.set", &this.set("REPLICA host replica\n"));
        this.host.write("alone.set", &this.set(""));
        Some(this)
    }

    fn set(&self, more: &str) -> String {
        let parts = [0, 1].map(|part| format!("{PART} {}\n", self.part(part).display())).concat();
        format!("PMEMPOOLSET\n{parts}{more}")
    }

    fn part(&self, part: usize) -> PathBuf {
        self.host.path(&format!("part{part}"))
    }

    fn remove_parts(&self) {
        for part in [0, 1] {
            fs::remove_file(self.part(part)).expect("a part");
        }
    }

    /// `pmempool WORDS...`; words that end by `.set` are set files.
    fn pmempool(&self, words: &str) -> Outcome {
        let job = words.split(' ').fold(Job::direct("/usr/bin/pmempool"), |job, word| {
            if word.ends_with(".set") { job.arg(self.host.path(word)) } else { job.arg(word) }
        });
        self.host.reached_by(job).run()
    }

    fn create(&self) {
        self.pmempool("create --layout=transactions obj pool.set").ok();
    }

    fn job(&self, what: &str) -> Job {
        let job = Job::direct(&self.program).arg(what).arg(self.host.path("pool.set"));
        self.host.reached_by(job.arg(self.host.path("acks"))).deadline(3600)
    }

    fn run(&self, count: u64) {
        let outcome = self.job("run").arg(count.to_string()).run();
        assert!(outcome.ok().stdout.contains("committed"));
    }

    /// The state is that of the last transactions; how many there were.
    fn check(&self) -> u64 {
        let outcome = self.job("check").run();
        let lines: Vec<&str> = outcome.ok().stdout.lines().collect();
        assert_eq!(lines.last(), Some(&"checked"));
        lines[..4].iter().map(|line| line[2..].parse::<u64>().expect("a number")).sum()
    }

    /// All that is here is lost and restored from the replica; how many transactions there were.
    fn lose_and_restore(&self) -> u64 {
        self.remove_parts();
        self.pmempool("sync pool.set").ok();
        self.check()
    }

    /// pmempool finds no fault in the parts here. It looks at no set with a replica on another
    /// host, so the set is changed, and changed back.
    fn is_consistent(&self) {
        self.pmempool("transform pool.set alone.set").ok();
        assert!(!self.host.part("replica", 0).exists(), "the replica is not part of the pool any more");
        self.pmempool("check -v alone.set").ok();
        self.pmempool("transform alone.set pool.set").ok();
        assert!(self.host.part("replica", 1).exists());
    }
}

#[test]
fn a_pool_that_was_closed_is_restored_from_the_replica() {
    let Some(pool) = Pool::new("orderly") else { return };
    pool.create();
    pool.run(transactions());
    assert_eq!(pool.lose_and_restore(), 4 * transactions());
    pool.is_consistent();
    assert_eq!(pool.lose_and_restore(), 4 * transactions());
    // It goes on.
    pool.run(transactions() + 10);
    assert_eq!(pool.lose_and_restore(), 4 * (transactions() + 10));
}

#[test]
fn a_program_that_is_killed_leaves_a_committed_state_at_the_replica() {
    let Some(pool) = Pool::new("killed") else { return };
    pool.create();
    let mut before = 0;
    for seed in seeds("the program", asked_for("RPMEM_KILLS", KILLS)) {
        let at = killed_at(seed);
        let killed = pool.job("run").arg("1000000").arg("self").arg(at.to_string()).run();
        assert_eq!(killed.signal, Some(9), "{killed:?}");
        assert!(eventually(|| pool.host.is_free("replica")), "the daemon is left");
        let found = pool.lose_and_restore();
        assert!(found + 4 >= before + at, "{found} after {before}, killed at {at}");
        before = found;
    }
    pool.is_consistent();
    assert_eq!(pool.check(), before);
}

#[test]
fn a_daemon_that_is_killed_ends_the_program_and_sync_repairs_the_replica() {
    let Some(pool) = Pool::new("daemon") else { return };
    pool.create();
    let number = pool.host.path("daemon");
    let script =
        format!("echo $$ >{}\nfor command; do :; done\nexec sh -c \"exec $command\"\n", number.display());
    pool.host.script("ssh", &script);
    let mut before = 0;
    for seed in seeds("the daemon", (asked_for("RPMEM_KILLS", KILLS) / 10).max(KILLS)) {
        let at = killed_at(seed);
        let job = pool.job("run").arg("1000000").arg("peer").arg(at.to_string()).arg(&number);
        let ended = job.env("RPMEM_LOG_LEVEL", "1").run();
        assert!(ended.status != Some(0) && !ended.timed_out, "{ended:?}");
        ended.says("the daemon is lost");
        // The parts here have what was committed; the replica is made again from them.
        if seed % 2 == 0 {
            fs::remove_file(pool.host.part("replica", 1)).expect("a part");
        }
        pool.pmempool("sync pool.set").ok();
        let found = pool.check();
        assert!(found + 4 >= before + at, "{found} after {before}, killed at {at}");
        assert_eq!(pool.lose_and_restore(), found);
        before = found;
    }
    pool.is_consistent();
}

#[test]
fn commands_of_pmempool() {
    let Some(pool) = Pool::new("commands") else { return };
    pool.create();
    let info = pool.pmempool("info pool.set");
    let info = &info.ok().stdout;
    assert!(
        info.contains("pool set                 : replica")
            && info.contains("Last shutdown            : clean")
    );
    // The replica's files are a pool of their own format at the other host.
    let part = pool.host.part("replica", 0);
    let there = Job::direct("/usr/bin/pmempool").arg("info").arg(&part).run();
    assert!(
        there.ok().stdout.contains("Checksum                 : ") && !there.stdout.contains("[ERROR]"),
        "{}",
        there.stdout
    );
    pool.pmempool("sync pool.set").ok();
    pool.is_consistent();
    // Sets that do not fit.
    let size = 32 << 20;
    let wide = pool.set("REPLICA host replica\n").replace(&PART.to_string(), &size.to_string());
    pool.host.write("wide.set", &wide.replace("part", "wide"));
    assert_ne!(pool.pmempool("create obj wide.set").status, Some(0));
    pool.pmempool("rm pool.set").ok();
    assert!(!part.exists() && !pool.part(0).exists());
    let again = pool.pmempool("sync pool.set");
    assert_ne!(again.status, Some(0), "no replica is left");
}

/// Each network: the same over UDP and over libfabric between two hosts.
#[test]
fn a_replica_on_another_host() {
    let hosts = Hosts::with(Layout { hosts: 2, rails: 1, own_tmp: false });
    let hosts = match hosts {
        Ok(hosts) => hosts,
        Err(why) => return skipped("a replica on another host", &why),
    };
    let Some(mut pool) = Pool::new("hosts") else { return };
    // The name of the host that has the replica.
    pool.host.write("pool.set", &pool.set(&format!("REPLICA {} replica\n", hosts.name(1))));
    pool.host.ssh = hosts.ssh();
    let inside = |job: Job| hosts.inside(0, job);
    let pmempool = |words: &[&str]| {
        let job = words.iter().fold(Job::direct("/usr/bin/pmempool"), |job, word| job.arg(word));
        inside(pool.host.reached_by(job.arg(pool.host.path("pool.set")))).run()
    };
    pmempool(&["create", "--layout=transactions", "obj"]).ok();
    let count = transactions() / 3;
    let run = inside(pool.job("run").arg(count.to_string())).env("RPMEM_LOG_LEVEL", "3").run();
    run.ok().says("a session with");
    assert!(!run.complaints().contains("shared memory"), "{}", run.complaints());
    pool.remove_parts();
    pmempool(&["sync"]).ok();
    let checked = inside(pool.job("check")).run();
    assert!(checked.ok().stdout.contains("checked"));
    assert!(hosts.are_empty(), "a daemon is left");
}
