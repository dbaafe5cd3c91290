//! The statements about GM, by a program in C that is compiled as C and as C++: over shared memory
//! with a node for each host and for each task, over UDP, and between two hosts.

mod program;

use openlapi_tests::{Hosts, Job, skipped};
use program::{compile, poe};

/// The cases, and how many tasks each has.
const CASES: &[(&str, usize)] = &[
    ("open", 2),
    ("message", 2),
    ("order", 2),
    ("wait", 2),
    ("turns", 3),
    ("resume", 2),
    ("drop", 2),
    ("rejected", 2),
    ("closed", 2),
    ("put", 2),
    ("sent", 2),
    ("long", 2),
    ("datagram", 2),
    ("tokens", 1),
    ("alarm", 1),
    ("blocking", 2),
    ("threads", 1),
    ("busy", 2),
    ("names", 2),
    ("left", 3),
    ("reopened", 2),
    ("absurd", 2),
];

/// LAPI_GM_TIMEOUT: short where a case awaits that it passes.
fn timeout(case: &str) -> &'static str {
    match case {
        "resume" | "drop" | "left" => "1",
        // Other things happen in less.
        "closed" => "8",
        _ => "60",
    }
}

/// All cases with these variables.
fn all(name: &str, compiler: &str, variables: &[(&str, &str)]) {
    let program = compile(name, compiler, &["conformance.c", "desk.c"], &["-pthread"]);
    for (case, tasks) in CASES {
        let job = poe(&program, *tasks).arg(case).env("LAPI_GM_TIMEOUT", timeout(case));
        let outcome = variables.iter().fold(job, |job, (name, value)| job.env(name, value)).run();
        let said = outcome.ok().stdout.matches(&format!("OK {case} ")).count();
        assert_eq!(said, *tasks, "{case}\n{outcome}");
    }
}

#[test]
fn by_hosts_over_shared_memory() {
    all("gm_c", "cc", &[]);
}

#[test]
fn by_tasks_over_shared_memory_as_cpp() {
    all("gm_cpp", "c++", &[("LAPI_GM_NODES", "task")]);
}

#[test]
fn over_udp() {
    all("gm_c", "cc", &[("MP_EUILIB", "ip"), ("LAPI_USE_SHM", "no")]);
}

#[test]
fn between_two_hosts() {
    let what = "gm between two hosts";
    let Ok(hosts) = Hosts::new(2).map_err(|why| skipped(what, &why)) else { return };
    let program = compile("gm_c", "cc", &["conformance.c", "desk.c"], &["-pthread"]);
    let Some(launcher) = openlapi_tests::Launcher::installed(what).next() else { return };
    for case in ["message", "order", "put", "long", "wait", "names"] {
        let lines: String = [0, 1].map(|host| hosts.name(host).to_owned() + "\n").concat();
        let file = hosts.host_file(&lines);
        let job = poe(&program, 2).arg(case).poe_arg("-launcher").poe_arg(launcher.name());
        let outcome = hosts.poe_on(&file, job).run();
        assert_eq!(outcome.ok().stdout.matches(&format!("OK {case} ")).count(), 2, "{case}\n{outcome}");
    }
}

#[test]
fn a_death_ends_what_waits_for_it_and_nothing_else() {
    let program = compile("gm_c", "cc", &["conformance.c", "desk.c"], &["-pthread"]);
    for nodes in ["task", "host"] {
        let job = poe(&program, 3).poe_arg("-on_death").poe_arg("continue").arg("death");
        let outcome = job.env("LAPI_GM_NODES", nodes).run();
        outcome.exited(137);
        assert_eq!(outcome.stdout.matches("PASS death").count(), 2, "{nodes}\n{outcome}");
    }
}

#[test]
fn with_a_check_only_registered_memory_is_used() {
    let program = compile("gm_c", "cc", &["conformance.c", "desk.c"], &["-pthread"]);
    let outcome = poe(&program, 2).arg("check").env("LAPI_GM_CHECK", "yes").run();
    assert_eq!(outcome.ok().stdout.matches("OK check").count(), 2, "{outcome}");
}

#[test]
fn helpers_say_what_they_are_to_say() {
    let program = compile("gm_c", "cc", &["conformance.c", "desk.c"], &["-pthread"]);
    let outcome = Job::direct(&program).arg("helpers").run();
    let expected = "printed 5\n\
        00000000  4f 70 65 6e 4c 41 50 49 20 61 6e 64 20 47 4d 20  OpenLAPI and GM \n\
        00000010  69 6e 20 6f 6e 65 20 6c 69 6e 65                 in one line\n\
        end 5 second\nend 5 first\n";
    assert_eq!(outcome.exited(5).stdout, expected);
    assert!(outcome.stderr.contains("error 6\nperror: it is in use\n"), "{outcome}");
}

#[test]
fn a_wrong_variable_is_named() {
    let program = compile("gm_c", "cc", &["conformance.c", "desk.c"], &["-pthread"]);
    let outcome = Job::direct(&program).arg("tokens").env("LAPI_GM_NODES", "port").run();
    assert!(!outcome.stdout.contains("OK"), "{outcome}");
    assert!(outcome.stderr.contains("gm_init: LAPI_GM_NODES is \"port\"; valid: host, task"), "{outcome}");
}

#[test]
fn types_and_versions_are_the_programs_choice() {
    let last = ["-DEXPECTED=0x20010"];
    let others = [
        ["-DGM_API_VERSION=0x100", "-DEXPECTED=0x100"],
        ["-DGM_API_VERSION=GM_API_VERSION_1_6", "-DEXPECTED=0x106"],
        ["-DGM_STRONG_TYPES=0", "-DEXPECTED=0x20010"],
    ];
    let all = std::iter::once(&last[..]).chain(others.iter().map(|flags| &flags[..]));
    for (number, flags) in all.enumerate() {
        for (compiler, standard) in [("cc", "-std=c99"), ("cc", "-std=c11"), ("c++", "-std=c++11")] {
            let flags = [flags, &[standard, "-pedantic", "-Werror", "-Wextra"]].concat();
            let name = format!("gm_types_{number}_{compiler}_{standard}");
            Job::direct(compile(&name, compiler, &["types.c"], &flags)).run().ok();
        }
    }
}
