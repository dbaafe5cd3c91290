//! `lapi_info`: what it reports is true, and what it reports as failing fails.

use nix::libc;
use openlapi_tests::{Hosts, Job, Launcher, Outcome, compile, compile_plain, skipped, stage, workspace};
use serde_json::Value;

fn info() -> Job {
    Job::direct(stage().join("bin/lapi_info")).env_remove("SLURM_JOB_ID")
}

fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}\n{outcome}"))
}

fn report(job: Job) -> Value {
    json(&job.arg("--json").run())
}

/// The element of a list with this name.
fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    let list = list.as_array().expect("a list");
    list.iter().find(|element| element["name"] == name).unwrap_or_else(|| panic!("no {name} in {list:?}"))
}

fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    named(&named(&report["transports"], "shared memory")["checks"], name)
}

/// `lapi_info` to which the kernel refuses these system calls.
fn refused(error: i32, calls: &[i64]) -> Value {
    let refuse = compile_plain("info-refuse", &["tests/c/info/refuse.c"], &[]);
    let job =
        calls.iter().fold(Job::direct(refuse).arg(error.to_string()), |job, call| job.arg(call.to_string()));
    report(job.arg("--").arg(stage().join("bin/lapi_info")))
}

#[test]
fn it_tells_version_build_and_the_library_it_came_with() {
    let report = report(info());
    let manifest = std::fs::read_to_string(workspace().join("Cargo.toml")).expect("the manifest");
    let version = report["version"].as_str().expect("a version");
    assert!(manifest.contains(&format!("version = \"{version}\"")), "{version}");
    assert_eq!(report["build"]["profile"], "release");
    assert!(report["build"]["rustc"].as_str().expect("a compiler").starts_with("rustc "));
    let library = report["build"]["library"].as_str().expect("it is installed");
    assert_eq!(
        std::path::Path::new(library),
        stage().join("lib/liblapi_r.so.1").canonicalize().expect("the library")
    );
    let said = info().arg("--version").run();
    assert_eq!(said.ok().stdout, format!("lapi_info (OpenLAPI) {version}\n"));
}

#[test]
fn it_tells_the_machine() {
    let report = report(info());
    assert_eq!(report["schema"], 1);
    let machine = &report["machine"];
    let allowed = machine["allowed"].as_array().expect("a list").len();
    assert!(allowed > 0 && allowed as u64 <= machine["processors"].as_u64().expect("a number"), "{machine}");
    assert!(machine["memory"].as_u64().expect("a number") > 1 << 28, "{machine}");
    let pinned = Job::direct("taskset").arg("-c").arg("0").arg(stage().join("bin/lapi_info")).arg("--json");
    assert_eq!(json(&pinned.run())["machine"]["allowed"], serde_json::json!([0]));
    for limit in ["threads (ulimit -u)", "files (ulimit -f)"] {
        named(&report["limits"], limit);
    }
}

#[test]
fn the_short_form_has_a_line_for_each_thing() {
    let said = info().arg("--short").run();
    let lines: Vec<&str> = said.ok().stdout.lines().collect();
    assert_eq!(lines.len(), 5, "{said}");
    assert!(lines[0].starts_with("OpenLAPI ") && lines[1].starts_with("shared memory: usable: "), "{said}");
    assert_eq!(lines[4], "task 0 of 1, by no launcher");
    let wrong = info().arg("--short").env("LAPI_SPIN", "fast").env("LAPI_SIPN", "1").run();
    assert_eq!(wrong.status, Some(1), "{wrong}");
    for line in ["LAPI_Init would fail here: ", "LAPI_SIPN is set and has no effect"] {
        assert!(wrong.stdout.contains(line), "{wrong}");
    }
    let both = info().arg("--short").arg("--json").run();
    both.exited(2).says("lapi_info: --short is given alone");
}

#[test]
fn every_transport_is_built() {
    let report = report(info());
    for transport in report["transports"].as_array().expect("a list") {
        assert_eq!(transport["built"], true, "{transport}");
        assert!(!transport["reason"].as_str().expect("a reason").is_empty());
        assert!(!transport["checks"].as_array().expect("a list").is_empty(), "{transport}");
    }
    assert_eq!(named(&report["transports"], "shared memory")["usable"], true);
}

const UDP: &str = "UDP (MP_EUILIB=ip)";

#[test]
fn the_interfaces_that_udp_would_use_are_shown_with_those_passed_over() {
    // The loopback is on every machine, and tasks of one machine may use it.
    let job = || info().env("LAPI_USE_SHM", "no").env("MP_CHILD", "0").env("MP_PROCS", "2").arg("--json");
    let report = |job: Job| json(&job.run());
    let found = report(job().env("MP_EUILIB", "ip"));
    let udp = named(&found["transports"], UDP);
    assert_eq!((&udp["usable"], &udp["chosen"]), (&true.into(), &"lo".into()), "{udp}");
    let lo = named(&udp["checks"], "interface")["detail"].as_str().expect("an interface");
    assert!(lo.starts_with("lo, 127.0.0.1, network 127.0.0.0/8, datagrams of up to "), "{lo}");
    assert_eq!(named(&found["transports"], FABRIC)["usable"], false, "{found}");

    let udp = |job: Job| named(&report(job)["transports"], UDP).clone();
    // Elsewhere it reaches no task.
    let passed_over = udp(info().arg("--json"))["passed_over"].as_array().expect("a list").clone();
    let lo = passed_over.iter().find(|other| other["name"] == "lo, 127.0.0.1").expect("the loopback");
    assert_eq!(lo["reason"], "reaches this machine only");
    let by_fabric = udp(job().env("MP_EUILIB", "us"));
    assert_eq!((&by_fabric["usable"], &by_fabric["reason"]), (&false.into(), &"MP_EUILIB is us".into()));

    let refused = report(job().env("MP_EUILIB", "ip").env("MP_EUIDEVICE", "xy0"));
    let udp = named(&refused["transports"], UDP);
    assert_eq!((&udp["usable"], &udp["chosen"]), (&false.into(), &Value::Null), "{udp}");
    let why = udp["reason"].as_str().expect("a reason");
    assert!(
        why.starts_with("udp: MP_EUIDEVICE=xy0: no such interface with an address is up; there are: "),
        "{why}"
    );
    let problems = refused["problems"].as_array().expect("a list");
    assert!(
        problems.iter().any(|problem| problem.as_str().is_some_and(|text| text.contains(why))),
        "{refused}"
    );
}

const FABRIC: &str = "libfabric (MP_EUILIB=us)";

#[test]
fn the_provider_that_would_be_used_is_shown_with_those_passed_over() {
    // The loopback is on every machine, and tasks of one machine may use it.
    let job = info().env("LAPI_USE_SHM", "no").env("MP_CHILD", "0").env("MP_PROCS", "2");
    let report = json(&job.env("LAPI_FABRIC_PROVIDER", "tcp;ofi_rxm").arg("--json").run());
    let fabric = named(&report["transports"], FABRIC);
    let expected = (&true.into(), &"provider tcp;ofi_rxm".into());
    assert_eq!((&fabric["usable"], &fabric["reason"]), expected, "{fabric}");
    assert!(fabric["chosen"].as_str().expect("a choice").starts_with("tcp;ofi_rxm, domain "), "{fabric}");
    assert_eq!(named(&fabric["checks"], "provider")["detail"], fabric["chosen"]);
    assert!(named(&fabric["checks"], "libfabric")["detail"].as_str().expect("a version").contains('.'));
    let others = fabric["passed_over"].as_array().expect("a list");
    assert!(others.iter().any(|other| other["reason"] == "another provider was asked for"), "{fabric}");
    assert!(others.iter().all(|other| other["name"] != fabric["chosen"]), "{fabric}");

    let refused = |job: Job, words: &str| {
        let report = json(&job.arg("--json").run());
        let fabric = named(&report["transports"], FABRIC);
        assert_eq!((&fabric["usable"], &fabric["chosen"]), (&false.into(), &Value::Null), "{fabric}");
        assert!(fabric["reason"].as_str().expect("a reason").starts_with(words), "{fabric}");
    };
    refused(info().env("LAPI_FABRIC_PROVIDER", "psm9"), "libfabric has no provider psm9; it has ");
    refused(info().env("LAPI_FABRIC_DOMAIN", "xy0"), "libfabric has no domain xy0; it has ");
    // A file that is no library, found before the real one.
    let folder = openlapi_tests::build_dir().join("tests/no-libfabric");
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    std::fs::write(folder.join("libfabric.so.1"), "").expect("a file can be written");
    refused(
        info().env("LD_LIBRARY_PATH", &folder),
        "cannot open libfabric.so.1: please install libfabric (Debian: libfabric1)",
    );
}

/// `lapi_info --network` as a job.
fn network(tasks: usize) -> Job {
    Job::new(stage().join("bin/lapi_info")).procs(tasks).arg("--network")
}

/// From where to where, of each pair; all of them are right.
fn pairs(outcome: &Outcome) -> Vec<(u64, u64)> {
    let findings = json(outcome);
    let pairs = findings["pairs"].as_array().expect("a list").iter();
    pairs
        .map(|pair| {
            assert_eq!(pair["right"], true, "{pair}");
            for what in ["round_trip", "bandwidth"] {
                assert!(pair[what].as_f64().expect("a number") > 0.0, "{pair}");
            }
            (pair["from"].as_u64().expect("a task"), pair["to"].as_u64().expect("a task"))
        })
        .collect()
}

#[test]
fn the_network_is_checked_between_tasks_without_shared_memory() {
    let outcome = network(3).arg("--json").env("LAPI_USE_SHM", "no").run();
    outcome.ok();
    assert_eq!(pairs(&outcome), [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]);
    let text = network(2).env("LAPI_USE_SHM", "no").run();
    assert_eq!(text.ok().stdout.matches(" MB/s\n").count(), 2, "{text}");
}

#[test]
fn one_host_has_no_network_to_check() {
    let alone = info().arg("--network").run();
    alone.exited(1);
    assert!(alone.stdout.contains("job of one task") && alone.stdout.contains("poe -hostfile"), "{alone}");
    let together = network(2).run();
    assert_ne!(together.status, Some(0));
    assert!(together.stdout.contains("All 2 tasks are on one host"), "{together}");
}

#[test]
fn the_network_is_checked_between_the_hosts_of_a_job() {
    let what = "lapi_info --network on two hosts";
    let hosts = match Hosts::new(2) {
        Ok(hosts) => hosts,
        Err(why) => return skipped(what, &why),
    };
    if Launcher::Hydra.command().is_none() {
        return skipped(what, "Hydra is not installed");
    }
    // One task of each host takes part.
    let job = network(3).arg("--json").poe_arg("-launcher").poe_arg("hydra");
    let outcome = hosts.poe_on(&hosts.host_file("node0:2\nnode1\n"), job).run();
    outcome.ok();
    assert_eq!(pairs(&outcome), [(0, 2), (2, 0)]);
    let found = json(&outcome);
    let hosts = found["hosts"].as_array().expect("a list").iter();
    assert_eq!(hosts.map(|host| &host["name"]).collect::<Vec<_>>(), ["node0", "node1"]);
}

/// Only the machine itself can forbid these system calls.
#[test]
fn a_copy_has_really_been_tried() {
    let attach = check(&report(info()), "cross-memory attach").clone();
    let detail = attach["detail"].as_str().expect("how it went");
    let expected = if attach["works"] == true { "both ways" } else { "refused" };
    assert!(detail.contains(expected), "{attach}");
}

#[test]
fn a_refused_copy_is_reported_with_its_reason_and_is_no_failure() {
    for call in [libc::SYS_process_vm_readv, libc::SYS_process_vm_writev] {
        let report = refused(libc::EPERM, &[call]);
        let attach = check(&report, "cross-memory attach");
        assert_eq!(attach["works"], false, "{attach}");
        let detail = attach["detail"].as_str().expect("a reason");
        for words in ["refused", "Operation not permitted", "seccomp filter", "through buffers"] {
            assert!(detail.contains(words), "{words}: {detail}");
        }
        let shared = named(&report["transports"], "shared memory");
        assert_eq!(shared["usable"], true, "{shared}");
        assert_eq!(shared["reason"], "works without: cross-memory attach");
        assert_eq!(report["problems"].as_array().expect("a list").len(), 0);
    }
}

#[test]
fn other_refusals_are_reported() {
    for (call, name, error, words) in [
        (libc::SYS_pidfd_open, "process descriptors", libc::EPERM, "Operation not permitted"),
        (libc::SYS_membarrier, "asymmetric barriers", libc::ENOSYS, "Function not implemented"),
    ] {
        let report = refused(error, &[call]);
        let found = check(&report, name);
        assert_eq!((&found["works"], &found["needed"]), (&false.into(), &false.into()), "{found}");
        assert!(found["detail"].as_str().expect("a reason").contains(words), "{found}");
    }
    for (call, name) in
        [(libc::SYS_memfd_create, "memory files with seals"), (libc::SYS_eventfd2, "event descriptors")]
    {
        let report = refused(libc::EPERM, &[call]);
        let found = check(&report, name);
        assert_eq!((&found["works"], &found["needed"]), (&false.into(), &true.into()), "{found}");
        let shared = named(&report["transports"], "shared memory");
        assert_eq!(shared["usable"], false);
        assert!(shared["reason"].as_str().expect("a reason").contains(name), "{shared}");
    }
}

#[test]
fn a_job_without_shared_memory_needs_a_network_and_a_launcher() {
    let job = || info().env("MP_CHILD", "0").env("MP_PROCS", "2").env("LAPI_USE_SHM", "no");
    let outcome = job().run();
    outcome.exited(1);
    let words = "the network, which this job of 2 tasks needs: no launcher offers PMI, PMIx or Slurm";
    assert!(outcome.stdout.contains(words), "{outcome}");
    let outcome = job().env("LAPI_FABRIC_PROVIDER", "psm9").run();
    outcome.exited(1);
    let words = "the network, which this job of 2 tasks needs: libfabric has no provider psm9";
    assert!(outcome.stdout.contains(words), "{outcome}");
    Job::new(stage().join("bin/lapi_info")).procs(2).env("LAPI_USE_SHM", "no").run().ok();
    info().env("LAPI_USE_SHM", "no").run().ok();
}

#[test]
fn attach_that_is_switched_off_is_reported() {
    for setting in ["no", "deny"] {
        let report = report(info().env("LAPI_SHM_ATTACH", setting));
        let attach = check(&report, "cross-memory attach");
        assert_eq!(attach["works"], false);
        let detail = attach["detail"].as_str().expect("a reason");
        assert!(
            detail.contains(&format!("LAPI_SHM_ATTACH is {setting}")) || detail.contains("refused"),
            "{detail}"
        );
    }
}

#[test]
fn every_variable_of_the_documents_is_listed() {
    let report = report(info());
    let text = |file: &str| std::fs::read_to_string(workspace().join(file)).expect("a document");
    let (readme, page) = (text("README.md"), text("packaging/man/man7/lapi.7"));
    let known: Vec<_> =
        report["variables"].as_array().expect("a list").iter().map(|v| v["name"].clone()).collect();
    let configuration =
        readme.split("## Configuration").nth(1).expect("a section").split("\n## ").next().unwrap_or_default();
    let rows = configuration.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let of_poe = ["MP_LABELIO"];
    for name in rows.filter(|name| !of_poe.contains(name)) {
        assert!(known.iter().any(|listed| listed == name), "lapi_info does not list {name}");
    }
    for variable in report["variables"].as_array().expect("a list") {
        let name = variable["name"].as_str().expect("a name");
        let launchers = ["OMPI_", "PMI_", "PMIX_", "SLURM_", "SLURMD_", "MPI_"]
            .iter()
            .any(|start| name.starts_with(start));
        assert!(launchers || page.contains(&format!(".It Ev {name}")), "{name} is not in lapi(7)");
        if name == "LAPI_CONFIG" {
            // The tests set it.
            continue;
        }
        assert_eq!(variable["value"], variable["default"], "{variable}");
        assert_eq!(variable["source"], if variable["default"].is_null() { "unset" } else { "default" });
        assert!(variable["refused"].is_null());
        assert!(variable["meaning"].as_str().expect("a meaning").ends_with('.'));
        assert!(!variable["allowed"].as_str().expect("values").is_empty());
    }
}

#[test]
fn values_and_where_they_come_from() {
    let report = report(info().env("LAPI_SPIN", " 17 ").env("MP_INFOLEVEL", ""));
    let spin = named(&report["variables"], "LAPI_SPIN");
    assert_eq!((&spin["value"], &spin["source"]), (&"17".into(), &"environment".into()));
    assert_eq!(spin["default"], "auto");
    let level = named(&report["variables"], "MP_INFOLEVEL");
    assert_eq!((&level["value"], &level["source"]), (&"1".into(), &"default".into()));
}

/// LAPI_Init refuses the values that are reported as refused, with the same code.
#[test]
fn refused_values_are_reported_with_the_error_that_lapi_init_returns() {
    for (name, value, error) in [
        ("LAPI_SPIN", "never", "LAPI_ERR_UNKNOWN"),
        ("MP_MSG_API", "mpi", "LAPI_ERR_MSG_API"),
        ("LAPI_USE_SHM", "perhaps", "LAPI_ERR_SHM_SETUP"),
        ("MP_UDP_PACKET_SIZE", "1", "LAPI_ERR_UDP_PKT_SZ"),
        ("LAPI_JOB_SECRET", "open sesame", "LAPI_ERR_NO_ENV_VAR"),
    ] {
        let outcome = info().env(name, value).arg("--json").run();
        outcome.exited(1);
        let report = json(&outcome);
        let variable = named(&report["variables"], name);
        assert_eq!(variable["refused"]["name"], error);
        let problems = report["problems"].as_array().expect("a list");
        assert!(
            problems.len() == 1 && problems[0].as_str().expect("a sentence").starts_with(error),
            "{problems:?}"
        );

        let text = info().env(name, value).run();
        text.exited(1);
        assert!(text.stdout.contains(&format!("refused: {error} (")), "{text}");

        let init = compile("init-sample", &["samples/init/Init.c"], &[]);
        let failed = Job::direct(init).env(name, value).env("MP_INFOLEVEL", "1").run();
        assert!(failed.status != Some(0) && failed.stderr.contains(error), "{failed}");
    }
}

#[test]
fn two_network_statements_are_a_problem_together() {
    let job = info().env("MP_LAPI_NETWORK", "@1:4,sn0").env("MP_LAPI_INET_ADDR", "@1:10.0.0.1,en0");
    let outcome = job.run();
    outcome.exited(1);
    assert!(outcome.stdout.contains("LAPI_ERR_BOTH_NETSTR_SET"), "{outcome}");
}

#[test]
fn secrets_are_not_shown() {
    let secret = "00112233445566778899aabbccddeeff";
    for argument in ["--json", "--verbose"] {
        let outcome = info().env("LAPI_JOB_SECRET", secret).arg(argument).run();
        outcome.ok();
        assert!(!outcome.stdout.contains("0011223344"), "{outcome}");
        assert!(outcome.stdout.contains("(hidden)"), "{outcome}");
    }
    let wrong = info().env("LAPI_JOB_SECRET", "my-own-password").run();
    wrong.exited(1);
    assert!(!format!("{wrong}").contains("my-own-password"), "{wrong}");
}

#[test]
fn misspelt_names_are_found() {
    let report = report(
        info().env("LAPI_USE_SMH", "no").env("LAPI_XYZZY", "1").env("MP_INFOLEVLE", "2").env("MP_PULSE", "1"),
    );
    let unknown = &report["unknown"];
    let names: Vec<&str> =
        unknown.as_array().expect("a list").iter().map(|it| it["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["LAPI_USE_SMH", "LAPI_XYZZY", "MP_INFOLEVLE"]);
    assert_eq!(named(unknown, "LAPI_USE_SMH")["did_you_mean"], "LAPI_USE_SHM");
    assert!(named(unknown, "LAPI_XYZZY")["did_you_mean"].is_null());
    assert_eq!(named(unknown, "MP_INFOLEVLE")["did_you_mean"], "MP_INFOLEVEL");
    let text = info().env("LAPI_USE_SMH", "no").run();
    assert!(text.ok().stdout.contains("LAPI_USE_SMH: did you mean LAPI_USE_SHM?"), "{text}");
}

#[test]
fn its_place_is_that_of_a_task() {
    let alone = report(info());
    assert_eq!(alone["place"]["launcher"], "no launcher");
    assert_eq!((&alone["place"]["task"], &alone["place"]["tasks"]), (&0.into(), &1.into()));

    let outcome = Job::new(stage().join("bin/lapi_info"))
        .procs(3)
        .arg("--json")
        .poe_arg("-stdoutmode")
        .poe_arg("ordered")
        .run();
    outcome.ok();
    let reports: Vec<Value> = serde_json::Deserializer::from_str(&outcome.stdout)
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("{error}\n{outcome}"));
    assert_eq!(reports.len(), 3);
    for (task, report) in reports.iter().enumerate() {
        let place = &report["place"];
        assert_eq!(place["launcher"], "MP_CHILD and MP_PROCS");
        assert_eq!((&place["task"], &place["tasks"]), (&task.into(), &3.into()));
        assert_eq!(place["tasks_on_this_machine"], 3);
        assert_eq!(place["key"], reports[0]["place"]["key"]);
        assert_eq!(named(&report["variables"], "LAPI_JOB_SECRET")["value"], "(hidden)");
    }
}

#[test]
fn half_a_place_is_a_problem() {
    let outcome = info().env("MP_CHILD", "1").arg("--json").run();
    outcome.exited(1);
    let report = json(&outcome);
    assert!(report["place"].is_null());
    let problem = report["problems"][0].as_str().expect("a sentence");
    assert!(
        problem.starts_with("LAPI_ERR_NO_ENV_VAR") && problem.contains("MP_PROCS is not set"),
        "{problem}"
    );
}

/// The limits are those that a program finds.
#[test]
fn limits_are_those_of_lapi_qenv() {
    let report = report(info());
    let program = compile("env-query", &["tests/c/env/query.c", "tests/c/common/ltest.c"], &[]);
    for (limit, attribute) in [("user header", 2), ("instances", 9), ("address table", 13)] {
        let value = &named(&report["limits"], limit)["value"];
        let outcome =
            Job::new(&program).arg("attribute").arg(attribute.to_string()).arg(value.to_string()).run();
        outcome.ok();
    }
    let open = named(&report["limits"], "open files (ulimit -n)");
    assert!(open["value"].as_u64().is_some_and(|files| files > 0), "{open}");
}

#[test]
fn the_limit_of_the_stack_is_shown_with_that_of_handlers() {
    for (limit, value, meaning) in [
        ("8192", serde_json::json!(8 << 20), "handlers that run on LAPI's threads have 8.0 MiB"),
        ("33554432", serde_json::json!(1_u64 << 35), "handlers that run on LAPI's threads have 64.0 MiB"),
        ("unlimited", serde_json::json!(null), ""),
    ] {
        let script = format!(r#"ulimit -s {limit} && exec "$0" --json"#);
        let outcome = Job::direct("sh").arg("-c").arg(script).arg(stage().join("bin/lapi_info")).run();
        if outcome.stderr.contains("ulimit") {
            skipped(&format!("a stack of {limit} KiB"), "the hard limit is lower");
            continue;
        }
        let report = json(&outcome);
        let stack = named(&report["limits"], "stack (ulimit -s)");
        assert_eq!((&stack["value"], &stack["meaning"]), (&value, &serde_json::json!(meaning)), "{stack}");
    }
}

#[test]
fn text_is_aligned_and_complete() {
    let outcome = info().run();
    let text = &outcome.ok().stdout;
    for title in ["OpenLAPI ", "Transports", "Limits", "Environment variables", "This process"] {
        assert!(text.lines().any(|line| line.starts_with(title)), "{title}\n{outcome}");
    }
    let header = text.lines().find(|line| line.trim_start().starts_with("name ")).expect("a header");
    for (name, column) in [("LAPI_SPIN", "value"), ("LAPI_SPIN", "allowed"), ("MP_CHILD", "allowed")] {
        let line =
            text.lines().find(|line| line.trim_start().starts_with(&format!("{name} "))).expect("a line");
        let at = header.find(column).expect("a column");
        assert!(
            line.is_char_boundary(at) && line[at - 2..].starts_with("  ") && !line[at..].starts_with(' '),
            "{line}"
        );
    }
    let verbose = info().arg("-v").run();
    assert!(
        verbose.ok().stdout.contains("How many times a waiting call polls before it yields."),
        "{verbose}"
    );
}

#[test]
fn help_and_wrong_arguments() {
    let help = info().arg("--help").run();
    assert!(help.ok().stdout.contains("usage: lapi_info"), "{help}");
    let wrong = info().arg("--jsn").run();
    wrong.exited(2).says("unknown argument --jsn");
    assert!(wrong.stdout.is_empty());
}
