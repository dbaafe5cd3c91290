//! Jobs over the network: alone on one machine, and beside shared memory on two hosts.
//!
//! `make test-net` (ci/test-net.sh) runs the other test files the same way, by `TEST_TRANSPORT`;
//! here are the tests that need a network, and a few programs of each family, so that `make test`
//! sees both transports.

#[expect(dead_code, reason = "every job here chooses its transport")]
mod ltest;

use ltest::{job, passed, program};
use openlapi_tests::{
    Hosts, Job, Launcher, Layout, Network, Outcome, has_fabric, long_form, on_network, skipped,
};

const PROVIDER: &str = "tcp;ofi_rxm";
const NO_ENV_VAR: u32 = 510;
const SHM_SETUP: u32 = 439;
const CSS_LOAD_FAILED: u32 = 404;

/// Programs of each family that take a second or two, with arguments.
const SELECTION: [(&str, &str); 13] = [
    ("data/sizes", "put 262144"),
    ("data/sizes", "get 262144"),
    ("data/sizes", "am 262144"),
    ("data/sizes", "xput 262144"),
    ("data/align", "put 9001"),
    ("data/rmw", "values"),
    ("data/rmw", "storm"),
    ("stress/storm", "11 1000 1000 1 65536"),
    ("fence/fence", "gfence 500"),
    ("fence/fence", "mixed 60"),
    ("address/address", "exchange"),
    ("env/query", "statistics"),
    ("env/query", "defaults"),
];

/// Whether libfabric is here and the tests may choose the transport; says so where not.
fn can(what: &str) -> bool {
    if !has_fabric() {
        skipped(what, "libfabric.so.1 is not installed");
        return false;
    }
    !on_network(what, "the test chooses the transport itself")
}

/// Two hosts, or a loud end of the test.
fn hosts(what: &str, own_tmp: bool) -> Option<Hosts> {
    Network::Fabric.hosts_of(what, Layout { hosts: 2, rails: 1, own_tmp })
}

/// The job on the network of this machine.
fn fabric(job: Job) -> Job {
    job.env("LAPI_USE_SHM", "no").env("LAPI_FABRIC_PROVIDER", PROVIDER).env("TEST_TRANSPORT", "fabric")
}

/// The job of this many tasks on two hosts.
fn hybrid(hosts: &Hosts, tasks: usize, job: Job) -> Job {
    hosts.place(tasks, job.env("LAPI_FABRIC_PROVIDER", PROVIDER).env("TEST_TRANSPORT", "hybrid"))
}

/// A job whose LAPI_Init must return this code in each task.
fn refused(code: u32, tasks: usize) -> Job {
    job("init/init", tasks, &format!("code {code}")).env("MP_INFOLEVEL", "1")
}

#[test]
fn a_selection_on_one_machine() {
    if can("programs on the network of one machine") {
        for (name, args) in SELECTION {
            for tasks in [2, 4] {
                passed(&fabric(job(name, tasks, args)).deadline(120).run(), tasks);
            }
        }
    }
}

#[test]
fn a_selection_on_two_hosts() {
    let Some(hosts) = hosts("programs on two hosts", false) else { return };
    for (name, args) in SELECTION {
        for tasks in [2, 4] {
            passed(&hybrid(&hosts, tasks, job(name, tasks, args)).deadline(120).run(), tasks);
        }
    }
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}

/// The messages of several peers share the buffers of a receiver, and arrive in pieces, those of
/// one peer between those of another.
#[test]
fn messages_of_many_peers_that_arrive_in_pieces() {
    let Some(hosts) = hosts("messages in pieces", false) else { return };
    hosts.set_socket_memory(16_384);
    for seed in 1..6 {
        let storm = job("stress/storm", 6, &format!("{seed} 600 600 1 262144 1"));
        passed(&hosts.place(6, fabric(storm).env("MP_USE_BULK_XFER", "no")).deadline(200).run(), 6);
    }
}

/// 2 and 3 tasks: on the second host there is one task, which shares memory with no other.
/// Puts that the origin makes alone: their target is informed, and none has an effect when
/// it comes late.
#[test]
fn puts_that_need_no_target() {
    if !can("puts by the origin alone") {
        return;
    }
    for len in [8, 5000, 200_000] {
        passed(&fabric(job("progress/msgpoll", 2, &format!("written {len} 30"))).run(), 2);
    }
    for seed in 1..=2 {
        let bulk = ["no", "yes"][seed % 2];
        passed(
            &fabric(job("recovery/stopped", 3, &format!("3 {seed}"))).env("MP_USE_BULK_XFER", bulk).run(),
            3,
        );
    }
}

#[test]
fn hosts_with_different_numbers_of_tasks() {
    let Some(hosts) = hosts("hosts with different numbers of tasks", false) else { return };
    for (name, args) in [("env/query", "defaults"), ("env/query", "statistics"), ("data/sizes", "put 65536")]
    {
        for tasks in [3, 5] {
            passed(&hybrid(&hosts, tasks, job(name, tasks, args)).run(), tasks);
        }
    }
}

#[test]
fn no_shared_memory_on_two_hosts() {
    let Some(hosts) = hosts("LAPI_USE_SHM=no on two hosts", false) else { return };
    for args in ["defaults", "statistics"] {
        let job = hosts.place(4, fabric(job("env/query", 4, args)));
        passed(&job.run(), 4);
    }
}

#[test]
fn shared_memory_alone_is_refused_on_two_hosts() {
    let Some(hosts) = hosts("LAPI_USE_SHM=only on two hosts", false) else { return };
    let outcome = hybrid(&hosts, 4, refused(SHM_SETUP, 4).env("LAPI_USE_SHM", "only")).run();
    passed(&outcome, 4);
    outcome.says("2 hosts for 4 tasks, and LAPI_USE_SHM=only");
}

#[test]
fn an_unknown_provider_is_refused() {
    let unknown = |tasks| refused(CSS_LOAD_FAILED, tasks).env("LAPI_FABRIC_PROVIDER", "psm9").deadline(15);
    let check = |outcome: &Outcome| {
        passed(outcome, 2);
        outcome.says("psm9");
        outcome.says(PROVIDER);
    };
    if can("an unknown provider") {
        check(&unknown(2).env("LAPI_USE_SHM", "no").run());
    }
    if let Some(hosts) = hosts("an unknown provider on two hosts", false) {
        check(&hosts.place(2, unknown(2)).run());
    }
}

/// In a namespace of processes of its own, with its own /tmp, each task is process 1.
#[test]
fn containers_on_one_machine_use_the_network() {
    let what = "containers";
    let Some(hosts) = hosts(what, true) else { return };
    if Launcher::Hydra.command().is_none() {
        return skipped(what, "mpiexec.hydra is not installed");
    }
    let contained = |program| {
        let job = hosts.launch(Launcher::Hydra, 2, "unshare").env("LAPI_FABRIC_PROVIDER", PROVIDER);
        ["--pid", "--fork", "--mount-proc", "--kill-child"].iter().fold(job, Job::arg).arg(program)
    };
    let possible = contained("true".into()).run();
    if possible.status != Some(0) {
        return skipped(what, &format!("no namespaces of processes here: {}", possible.stderr.trim()));
    }
    let query = |args: &str| contained(program("env/query")).env("TEST_TRANSPORT", "hybrid").arg(args);
    for args in ["defaults", "statistics"] {
        passed(&query(args).run(), 2);
    }
    let outcome = query("statistics").env("MP_INFOLEVEL", "2").run();
    passed(&outcome, 2);
    outcome.says(&format!("network: {PROVIDER}"));
}

#[test]
fn a_wrong_secret_is_refused() {
    let Some(hosts) = hosts("a wrong secret", false) else { return };
    let program = program("init/init");
    let script = format!(
        "test $MP_CHILD = 0 || export LAPI_JOB_SECRET=00112233445566778899aabbccddeeff\nexec '{}' code {NO_ENV_VAR}",
        program.display()
    );
    let job = Job::new("sh").procs(2).env("MP_NOARGLIST", "yes").env("MP_INFOLEVEL", "1");
    let outcome = hosts.place(2, job.arg("-c").arg(script)).run();
    passed(&outcome, 2);
    outcome.says("LAPI_JOB_SECRET: it differs between tasks");
}

/// With `TEST_LONG=yes` in the environment 5 GiB too, over libfabric and UDP: both tasks together
/// need that much memory.
#[test]
fn messages_of_a_gib_on_two_hosts() {
    let Some(hosts) = hosts("messages of a GiB", false) else { return };
    let long = long_form();
    let all = [("1", "us"), ("5", "us"), ("5", "ip")];
    for (gib, network) in if long { &all[..] } else { &all[..1] } {
        let job = job("data/huge", 2, gib).env("MP_EUILIB", network);
        // libfabric takes a third of this for 5 GiB each way; it must not go by packets alone.
        let outcome = hybrid(&hosts, 2, job).deadline(if *network == "us" { 180 } else { 400 }).run();
        passed(&outcome, 2);
        outcome
            .stdout
            .lines()
            .filter(|line| line.contains("SKIP"))
            .for_each(|line| skipped("data/huge", line));
    }
}

/// Vectors and gather/scatter programs by bulk transfer, and in packets: each with its
/// number of packets.
fn pieces(place: impl Fn(Job) -> Job) {
    let bulk = |job: Job| job.env("MP_USE_BULK_XFER", "yes").deadline(180);
    for kind in ["putv", "getv", "amv"] {
        let vectors = |way: &str| place(job("vectors/bulk", 2, &format!("{kind} {way}")));
        passed(&bulk(vectors("none keys")).run(), 2);
        passed(&vectors("use keys").deadline(180).run(), 2);
        passed(&bulk(vectors("not packets")).run(), 2);
        passed(&vectors("none packets").deadline(180).run(), 2);
    }
    let program = |way| place(job("dgsp/bulk", 2, way));
    passed(&bulk(program("keys")).run(), 2);
    passed(&program("packets").deadline(180).run(), 2);
}

/// With `TEST_LONG=yes` in the environment: two hosts have the same way.
#[test]
fn long_pieces_go_by_bulk_transfer_on_one_machine() {
    if long_form() && can("bulk transfer of long pieces on one machine") {
        pieces(fabric);
    }
}

#[test]
fn long_pieces_go_by_bulk_transfer_on_two_hosts() {
    let Some(hosts) = hosts("bulk transfer of long pieces on two hosts", false) else { return };
    pieces(|job| hybrid(&hosts, 2, job));
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}

/// Every shape of the tests of vectors and of gather/scatter programs, with the least number of
/// bytes for bulk transfer.
#[test]
fn every_shape_by_bulk_transfer() {
    if !can("every shape by bulk transfer") {
        return;
    }
    let wanted = |job| fabric(job).env("MP_USE_BULK_XFER", "yes").env("MP_BULK_MIN_MSG_SIZE", "4096");
    for (name, args, tasks) in [
        ("vectors/shapes", "xputv 100000000", 2),
        ("vectors/shapes", "xgetv 100000000", 2),
        ("vectors/shapes", "xamv 100000000", 2),
        ("vectors/shapes", "putv 10000000", 3),
        ("vectors/random", "7 100", 3),
        ("vectors/handler", "generic", 2),
        ("vectors/handler", "unwanted", 2),
        ("vectors/handler", "drop", 3),
        ("vectors/calls", "fence", 3),
        ("vectors/calls", "copied", 2),
        ("dgsp/transfer", "layouts", 2),
        ("dgsp/transfer", "large", 2),
        ("dgsp/transfer", "bytes", 2),
        ("dgsp/random", "8 60", 2),
        ("dgsp/ddm", "sums", 3),
        ("dgsp/ddm", "random 6 60", 2),
        ("data/sizes", "xam 2097152", 2),
    ] {
        passed(&wanted(job(name, tasks, args)).deadline(300).run(), tasks);
    }
}

/// A task is killed while long pieces are under way, as their origin and as their target:
/// the others go on.
#[test]
fn a_task_dies_with_long_pieces_under_way() {
    let Some(hosts) = hosts("a death in bulk transfer", false) else { return };
    for (case, delay) in [("origin", 5_300), ("origin", 23_100), ("target", 5_300), ("target", 41_000)] {
        let job = job("failure/survive", 4, &format!("{case} 1 {delay}"));
        let job = job.env("MP_USE_BULK_XFER", "yes").env("MP_BULK_MIN_MSG_SIZE", "65536");
        let job = ["-on_death", "continue", "-infolevel", "0"].into_iter().fold(job, Job::poe_arg);
        let outcome = hybrid(&hosts, 4, job).deadline(120).run();
        let said = outcome.exited(137).stdout.lines().filter(|line| line.contains("PASS")).count();
        assert_eq!(said, 3, "every survivor prints one PASS\n{outcome}");
    }
    assert!(hosts.are_empty(), "left behind: {:?}", hosts.processes());
}
