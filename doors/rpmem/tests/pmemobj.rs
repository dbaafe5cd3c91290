//! libpmemobj and pmempool of the distribution, with a replica on another host: what was committed
//! survives the end of either side. Short runs have both sides on this host; long ones
//! (`make soak-rpmem`) have them on two, which are network namespaces.

mod support;

use openlapi_tests::{Hosts, Job, Outcome, compile_plain, eventually, is_installed, skipped};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use support::{Host, PART};

/// Transactions of each thread in the ordinary tests; `RPMEM_TRANSACTIONS` asks for others.
const TRANSACTIONS: u64 = 300;
/// How often a process is killed in them; `RPMEM_KILLS` asks for others, and for a tenth of them of
/// the daemon. `RPMEM_SEED` is the first seed, so that a long run can go on where one has ended.
const KILLS: u64 = 6;

fn asked_for(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|count| count.parse().expect("a number"))
}

fn transactions() -> u64 {
    asked_for("RPMEM_TRANSACTIONS").unwrap_or(TRANSACTIONS)
}

/// The seeds of `kills` kills. A long run says how far it has come.
fn seeds(of: &str, kills: u64) -> impl Iterator<Item = u64> {
    let first = asked_for("RPMEM_SEED").unwrap_or(1);
    (first..first + kills).inspect(move |seed| {
        if *seed != first && (seed - first).is_multiple_of(25) {
            println!("{of}: {} kills, the next seed is {seed}", seed - first);
        }
    })
}

/// Says by which seed a test fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("RPMEM_SEED={}, {:?}", self.0, Point::of(self.0));
        }
    }
}

/// Where a process is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Point {
    /// In the program's own code: before (0), within (1) or after (2) a transaction.
    Transaction { number: u64, place: u64 },
    /// Where a call of rpmem_persist begins or ends, as the program is opened or within the
    /// commits of one of its first transactions, while other threads are anywhere in theirs.
    /// Counted from 1.
    Persist(u64),
}

/// How many moments of calls there are to choose from: those of about 100 transactions. Prime, so
/// that different seeds are different moments.
const MOMENTS: u64 = 6007;

impl Point {
    /// The point of a seed: two of three are within commits.
    fn of(seed: u64) -> Self {
        let turn = seed / 3;
        match seed % 3 {
            0 => Self::Transaction { number: TRANSACTIONS / 3 + turn / 3, place: turn % 3 },
            _ => Self::Persist(1 + seed * 1009 % MOMENTS),
        }
    }
}

#[test]
fn seeds_are_different_points() {
    let points: HashSet<Point> = (1..=MOMENTS).map(Point::of).collect();
    assert_eq!(points.len() as u64, MOMENTS);
}

/// A pool with two parts here and two at the host.
struct Pool {
    host: Host,
    program: PathBuf,
    /// What kills at moments of calls.
    kills: PathBuf,
    /// The hosts, of which the second one has the replica; `None`: this one has both.
    hosts: Option<Hosts>,
}

impl Pool {
    /// A pool whose replica is on this host, and in a long run on another one. `None`: something is
    /// missing, which is said.
    fn new(test: &str) -> Option<Self> {
        match ["RPMEM_TRANSACTIONS", "RPMEM_KILLS"].iter().any(|name| asked_for(name).is_some()) {
            // Nobody asks for that and wants it skipped.
            true => Self::with(test, Some(Hosts::new(2).expect("two hosts"))),
            false => Self::with(test, None),
        }
    }

    fn on_two_hosts(test: &str) -> Option<Self> {
        match Hosts::new(2) {
            Ok(hosts) => Self::with(test, Some(hosts)),
            Err(why) => {
                skipped(test, &why);
                None
            }
        }
    }

    fn with(test: &str, hosts: Option<Hosts>) -> Option<Self> {
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
        let kills =
            compile_plain("rpmem_kills", &["doors/rpmem/tests/c/kills.c"], &["-shared", "-fPIC", "-Wextra"]);
        let mut host = Host::new(test);
        if let Some(hosts) = &hosts {
            host.ssh = hosts.ssh();
        }
        let this = Self { host, program, kills, hosts };
        for (set, replica) in [("pool", "replica"), ("copy", "replica_copy")] {
            this.host.set(replica, "", 2);
            this.host.write(&format!("{set}.set"), &this.set(set, true));
            this.host.write(&format!("{set}_alone.set"), &this.set(set, false));
        }
        Some(this)
    }

    /// The text of a set file.
    fn set(&self, name: &str, is_replicated: bool) -> String {
        let parts = [0, 1].map(|part| format!("{PART} {}\n", self.host.part(name, part).display())).concat();
        let more = match (is_replicated, name) {
            (false, _) => String::new(),
            (true, "copy") => format!("REPLICA {} replica_copy\n", self.replicas()),
            (true, _) => format!("REPLICA {} replica\n", self.replicas()),
        };
        format!("PMEMPOOLSET\n{parts}{more}")
    }

    /// The name of the host that has the replica.
    fn replicas(&self) -> String {
        self.hosts.as_ref().map_or_else(|| "host".to_owned(), |hosts| hosts.name(1))
    }

    fn remove_parts(&self, name: &str) {
        for part in [0, 1] {
            fs::remove_file(self.host.part(name, part)).expect("a part");
        }
    }

    /// The job, on the host that has the pool. The number of the daemon stands in a file.
    fn reaching(&self, job: Job) -> Job {
        let command = format!("echo $$ >{}; exec {}", self.daemon().display(), self.host.command());
        let job = self.host.reached_by(job).env("RPMEM_CMD", command);
        match &self.hosts {
            Some(hosts) => hosts.inside(0, job),
            None => job,
        }
    }

    /// The file with the number of the last daemon.
    fn daemon(&self) -> PathBuf {
        self.host.path("daemon")
    }

    /// `pmempool WORDS...`; words that end by `.set` are set files.
    fn pmempool(&self, words: &str) -> Outcome {
        let job = words.split(' ').fold(Job::direct("/usr/bin/pmempool"), |job, word| {
            if word.ends_with(".set") { job.arg(self.host.path(word)) } else { job.arg(word) }
        });
        self.reaching(job).run()
    }

    fn create(&self) {
        self.pmempool("create --layout=transactions obj pool.set").ok();
    }

    fn job(&self, what: &str) -> Job {
        let job = Job::direct(&self.program).arg(what).arg(self.host.path("pool.set"));
        self.reaching(job.arg(self.host.path("acks"))).deadline(7200)
    }

    fn run(&self, count: u64) {
        let outcome = self.job("run").arg(count.to_string()).run();
        assert!(outcome.ok().stdout.contains("committed"));
    }

    /// Runs until this point, where the program kills itself or its daemon.
    fn run_until(&self, point: Point, kills_daemon: bool) -> Outcome {
        let job = self.job("run").arg("1000000").env("RPMEM_LOG_LEVEL", "1");
        let job = match point {
            Point::Transaction { number, place } => {
                let job = job.arg(number.to_string()).arg(place.to_string());
                if kills_daemon { job.arg(self.daemon()) } else { job }
            }
            Point::Persist(moment) => {
                let job = job.env("LD_PRELOAD", &self.kills).env("KILL_AT", moment.to_string());
                if kills_daemon { job.env("KILL_FILE", self.daemon()) } else { job }
            }
        };
        job.run()
    }

    /// The state is that of the last transactions; how many there were.
    fn check(&self) -> u64 {
        let outcome = self.job("check").run();
        let lines: Vec<&str> = outcome.ok().stdout.lines().collect();
        assert_eq!(lines.last(), Some(&"checked"));
        lines[..4].iter().map(|line| line[2..].parse::<u64>().expect("a number")).sum()
    }

    /// All that is here is lost and restored from the replica, and pmempool finds no fault; how
    /// many transactions there were.
    fn lose_and_restore(&self) -> u64 {
        self.remove_parts("pool");
        self.pmempool("sync pool.set").ok();
        self.is_consistent();
        self.check()
    }

    /// pmempool finds no fault in the parts here, as they are. It looks at no set with a replica on
    /// another host, so a copy of the pool is made one without.
    fn is_consistent(&self) {
        for (name, copy) in [("pool", "copy"), ("replica", "replica_copy")] {
            for part in [0, 1] {
                fs::copy(self.host.part(name, part), self.host.part(copy, part)).expect("a copy");
            }
        }
        self.pmempool("transform copy.set copy_alone.set").ok();
        let is_left = self.host.part("replica_copy", 0).exists();
        assert!(!is_left, "the replica is not part of the pool any more");
        let checked = self.pmempool("check -v copy_alone.set");
        assert!(checked.ok().stdout.contains("consistent"), "{}", checked.stdout);
        self.remove_parts("copy");
    }
}

/// What a process that was killed at this point had committed before, at least.
fn committed(before: u64, point: Point) -> u64 {
    match point {
        // Each of the four threads may be within its transaction.
        Point::Transaction { number, .. } => before + number - 4,
        Point::Persist(_) => before,
    }
}

#[test]
fn a_pool_that_was_closed_is_restored_from_the_replica() {
    let Some(pool) = Pool::new("orderly") else { return };
    pool.create();
    pool.run(transactions());
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
    for seed in seeds("the program", asked_for("RPMEM_KILLS").unwrap_or(KILLS)) {
        let (_replayed_by, point) = (Seed(seed), Point::of(seed));
        let killed = pool.run_until(point, false);
        assert_eq!(killed.signal, Some(9), "{point:?}: {killed:?}");
        assert!(eventually(|| pool.host.is_free("replica")), "the daemon is left");
        let found = pool.lose_and_restore();
        assert!(found >= committed(before, point), "{found} after {before}, killed at {point:?}");
        before = found;
    }
}

#[test]
fn a_daemon_that_is_killed_ends_the_program_and_sync_repairs_the_replica() {
    let Some(pool) = Pool::new("daemon") else { return };
    pool.create();
    let mut before = 0;
    for seed in seeds("the daemon", asked_for("RPMEM_KILLS").map_or(KILLS, |kills| (kills / 10).max(KILLS))) {
        let (_replayed_by, point) = (Seed(seed), Point::of(seed));
        let ended = pool.run_until(point, true);
        assert!(ended.status != Some(0) && !ended.timed_out, "{point:?}: {ended:?}");
        ended.says("the daemon is lost");
        // The parts here have what was committed; the replica is made again from them.
        if seed % 2 == 0 {
            fs::remove_file(pool.host.part("replica", 1)).expect("a part");
        }
        pool.pmempool("sync pool.set").ok();
        pool.is_consistent();
        let found = pool.check();
        assert!(found >= committed(before, point), "{found} after {before}, killed at {point:?}");
        assert_eq!(pool.lose_and_restore(), found);
        before = found;
    }
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
    // Without its replica, and with a new one.
    pool.pmempool("transform pool.set pool_alone.set").ok();
    assert!(!part.exists());
    pool.pmempool("check -v pool_alone.set").ok();
    pool.pmempool("transform pool_alone.set pool.set").ok();
    assert!(pool.host.part("replica", 1).exists());
    pool.is_consistent();
    // Sets that do not fit.
    let size = 32 << 20;
    pool.host.write("wide.set", &pool.set("wide", true).replace(&PART.to_string(), &size.to_string()));
    assert_ne!(pool.pmempool("create obj wide.set").status, Some(0));
    pool.pmempool("rm pool.set").ok();
    assert!(!part.exists() && !pool.host.part("pool", 0).exists());
    let again = pool.pmempool("sync pool.set");
    assert_ne!(again.status, Some(0), "no replica is left");
}

/// By the network that two hosts have.
#[test]
fn a_replica_on_another_host() {
    let Some(pool) = Pool::on_two_hosts("hosts") else { return };
    pool.create();
    let run = pool.job("run").arg((TRANSACTIONS / 3).to_string()).env("RPMEM_LOG_LEVEL", "3").run();
    run.ok().says("a session with");
    assert!(!run.complaints().contains("shared memory"), "{}", run.complaints());
    assert_eq!(pool.lose_and_restore(), 4 * (TRANSACTIONS / 3));
    assert!(pool.hosts.as_ref().is_some_and(Hosts::are_empty), "a daemon is left");
}
