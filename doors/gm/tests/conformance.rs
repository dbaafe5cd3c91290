//! The statements about GM, by a program in C that is compiled as C and as C++: over shared memory
//! with a node for each host and for each task, over UDP, and between two hosts.

mod program;

use nix::sys::signal::Signal;
use openlapi_tests::{Hosts, Job, skipped};
use program::{Case, cases, compile, conformance, poe};

/// All cases with these variables.
fn all(compiler: &str, variables: &[(&str, &str)]) {
    let program = conformance(compiler);
    for Case { name, tasks, timeout } in cases(&program) {
        let job = poe(&program, tasks).arg(&name).env("LAPI_GM_TIMEOUT", timeout);
        let outcome = variables.iter().fold(job, |job, (name, value)| job.env(name, value)).run();
        let said = outcome.ok().stdout.matches(&format!("OK {name} ")).count();
        assert_eq!(said, tasks, "{name}\n{outcome}");
    }
}

#[test]
fn by_hosts_over_shared_memory() {
    all("cc", &[]);
}

#[test]
fn by_tasks_over_shared_memory_as_cpp() {
    all("c++", &[("LAPI_GM_NODES", "task")]);
}

#[test]
fn over_udp() {
    all("cc", &[("MP_EUILIB", "ip"), ("LAPI_USE_SHM", "no")]);
}

#[test]
fn between_two_hosts() {
    let what = "gm between two hosts";
    let Ok(hosts) = Hosts::new(2).map_err(|why| skipped(what, &why)) else { return };
    let program = conformance("cc");
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
    let program = conformance("cc");
    for nodes in ["task", "host"] {
        let job = poe(&program, 3).poe_arg("-on_death").poe_arg("continue").arg("death");
        let outcome = job.env("LAPI_GM_NODES", nodes).run();
        outcome.exited(137);
        assert_eq!(outcome.stdout.matches("PASS death").count(), 2, "{nodes}\n{outcome}");
    }
}

#[test]
fn small_messages_of_a_job_take_no_memory() {
    let program = compile("gm_heap", "cc", &["heap.c"], &["-Wextra", "-Werror"]);
    let outcome = poe(&program, 2).env("LAPI_GM_NODES", "task").run();
    // Of 2,000 messages: a look after the peers, which is due now and then, takes some.
    for node in ["heap 1: ", "heap 2: "] {
        let taken = outcome.ok().stdout.lines().find_map(|line| line.strip_prefix(node));
        assert!(taken.and_then(|taken| taken.parse().ok()).is_some_and(|taken: u32| taken < 20), "{outcome}");
    }
}

#[test]
fn a_sender_learns_that_its_message_is_delivered_though_the_target_looks_no_more() {
    let program = compile("gm_words", "cc", &["words.c"], &["-Wextra", "-Werror"]);
    for network in [&[][..], &[("MP_EUILIB", "ip"), ("LAPI_USE_SHM", "no")]] {
        for what in ["computes", "leaves", "late"] {
            let known = std::env::temp_dir().join(format!("gm-words-{}", std::process::id()));
            let job = poe(&program, 2).arg(what).arg(known.to_str().expect("a path"));
            let job = network
                .iter()
                .fold(job.env("LAPI_GM_NODES", "task"), |job, (name, value)| job.env(name, value));
            let outcome = job.run();
            let _ = std::fs::remove_file(&known);
            assert!(outcome.ok().stdout.contains("delivered\n"), "{what}, {network:?}\n{outcome}");
        }
    }
}

/// In the middle of any call, of which the process then makes no other one.
#[test]
fn a_signal_handler_may_exit() {
    let program = compile("gm_exits", "cc", &["exits.c"], &["-Wextra", "-Werror"]);
    let outcome = Job::direct(&program).arg("60").run();
    assert_eq!(outcome.ok().stdout, "all have left\n", "{outcome}");
}

#[test]
fn with_a_check_only_registered_memory_is_used() {
    let program = conformance("cc");
    let outcome = poe(&program, 2).arg("check").env("LAPI_GM_CHECK", "yes").run();
    assert_eq!(outcome.ok().stdout.matches("OK check").count(), 2, "{outcome}");
}

#[test]
fn helpers_say_what_they_are_to_say() {
    let program = conformance("cc");
    let outcome = Job::direct(&program).arg("helpers").run();
    let expected = "printed 5\n\
        00000000  4f 70 65 6e 4c 41 50 49 20 61 6e 64 20 47 4d 20  OpenLAPI and GM \n\
        00000010  69 6e 20 6f 6e 65 20 6c 69 6e 65                 in one line\n\
        end 5 second\nend 5 first\n";
    assert_eq!(outcome.exited(5).stdout, expected);
    assert!(outcome.stderr.contains("error 6\nperror: it is in use\n"), "{outcome}");
}

#[test]
fn an_abort_is_a_signal() {
    let outcome = Job::direct(conformance("cc")).arg("abort").run();
    assert_eq!((outcome.signal, &outcome.stdout[..]), (Some(Signal::SIGABRT as i32), ""), "{outcome}");
}

#[test]
fn a_wrong_variable_is_named() {
    let program = conformance("cc");
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
