//! Processes that no launcher has started, by a map: over Unix sockets, and on two hosts.

mod program;

use nix::sys::signal::Signal;
use openlapi_tests::{Hosts, Job, Marked, Outcome, skipped};
use program::places::{Folder, node};
use program::{Case, cases, compile, conformance};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A process of the program of cases.
fn process(program: &Path, map: &Path, case: &Case, at: usize) -> Job {
    let job = node(program, map, at + 1).arg(&case.name).env("MP_CHILD", at.to_string());
    job.env("MP_PROCS", case.tasks.to_string()).env("LAPI_GM_TIMEOUT", &case.timeout)
}

/// Runs all of them at the same time.
fn all(jobs: Vec<Job>) -> Vec<Outcome> {
    std::thread::scope(|scope| {
        let running: Vec<_> = jobs.into_iter().map(|job| scope.spawn(move || job.run())).collect();
        running.into_iter().map(|job| job.join().expect("an outcome")).collect()
    })
}

#[test]
fn the_statements_hold_over_unix_sockets() {
    let program = conformance("cc");
    for case in cases(&program) {
        let folder = Folder::new(&case.name);
        let map = folder.map(case.tasks);
        let jobs = (0..case.tasks).map(|at| process(&program, &map, &case, at));
        for outcome in all(jobs.collect()) {
            assert!(outcome.ok().stdout.contains(&format!("OK {} ", case.name)), "{outcome}");
        }
    }
}

#[test]
fn the_statements_hold_on_two_hosts() {
    let what = "gm by hand on two hosts";
    let Ok(hosts) = Hosts::new(2).map_err(|why| skipped(what, &why)) else { return };
    let program = conformance("cc");
    let (key, map) = (hosts.folder().join("key"), hosts.folder().join("map"));
    fs::write(&key, "7".repeat(32)).expect("a file");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("a mode");
    let on_hosts = ["message", "order", "put", "long"];
    for case in cases(&program).iter().filter(|case| on_hosts.contains(&&*case.name)) {
        let line = |at: usize| format!("{} host{at} tcp:{}:7400\n", at + 1, hosts.address(at, 0));
        fs::write(&map, [0, 1].map(line).concat()).expect("a file");
        let job = |at: usize| process(&program, &map, case, at).env("LAPI_GM_KEY", &key);
        for outcome in all((0..2).map(|at| hosts.inside(at, job(at))).collect()) {
            assert!(outcome.ok().stdout.contains(&format!("OK {} ", case.name)), "{outcome}");
        }
    }
}

/// As in a job, and also where the process ends right after it has taken the message.
#[test]
fn a_sender_learns_by_hand_that_its_message_is_delivered() {
    let program = compile("gm_words", "cc", &["words.c"], &["-Wextra", "-Werror"]);
    for turn in 0..3 {
        for what in ["computes", "leaves", "late"] {
            let folder = Folder::new(&format!("words-{what}-{turn}"));
            let (map, known) = (folder.map(2), folder.path().join("known"));
            let job = |at: usize| node(&program, &map, at).arg(what).arg(known.to_str().expect("a path"));
            let outcomes = all(vec![job(1), job(2)]);
            for outcome in &outcomes {
                outcome.ok();
            }
            assert!(outcomes[0].stdout.contains("delivered\n"), "{what}\n{}", outcomes[0]);
        }
    }
}

/// The sample: clients come and go, and a server that was killed is replaced by another one.
#[test]
fn an_echo_server_and_its_clients() {
    let program = compile("gm_echo", "cc", &["../../samples/echo.c"], &["-Werror"]);
    let folder = Folder::new("echo");
    let map = folder.map(3);
    let call = |at: usize, text: &str| node(&program, &map, at).arg(text).run();
    for turn in 0..2 {
        let mut server = Marked::start(node(&program, &map, 1));
        assert_eq!(server.running().lines(1)[0].trim(), "serving");
        for at in [2, 3, 2] {
            let text = format!("client {at} of turn {turn}");
            assert_eq!(call(at, &text).ok().stdout.trim(), format!("echo: {text}"));
        }
        // By SIGKILL.
        drop(server);
        let outcome = call(2, "nobody");
        assert!(outcome.exited(1).stderr.contains("echo: the target's node cannot be reached"), "{outcome}");
    }
}

/// The map, whether or not the node's process runs, whose place the tool does not take.
#[test]
fn the_nodes_are_shown_beside_their_processes() {
    let program = compile("gm_echo", "cc", &["../../samples/echo.c"], &["-Werror"]);
    let folder = Folder::new("board");
    let map = folder.map(2);
    let mut server = Marked::start(node(&program, &map, 1));
    assert_eq!(server.running().lines(1)[0].trim(), "serving");
    let board = Path::new(env!("CARGO_BIN_EXE_gm_board_info"));
    for (at, marks) in [(1, [" (this node)", ""]), (2, ["", " (this node)"])] {
        let outcome = node(board, &map, at).run();
        let [one, other] = marks;
        let nodes = format!("gmID  host name\n   1  host1{one}\n   2  host2{other}\n");
        let said = &outcome.ok().stdout;
        assert!(said.contains(&format!("board 0: node {at} of 2\n")) && said.ends_with(&nodes), "{outcome}");
    }
    assert_eq!(node(&program, &map, 2).arg("hello").run().ok().stdout.trim(), "echo: hello");
    let outcome = node(board, &map, 3).run();
    assert!(outcome.exited(1).stderr.contains("the map has the nodes 1 to 2"), "{outcome}");
}

/// Whoever leaves is not held up by peers that go on to send.
#[test]
fn a_process_leaves_while_others_send_to_it() {
    let program = compile("gm_flood", "cc", &["flood.c"], &["-Wextra", "-Werror"]);
    let folder = Folder::new("flood");
    let map = folder.map(3);
    let _others = [2, 3].map(|at| Marked::start(node(&program, &map, at)));
    let outcome = node(&program, &map, 1).run();
    assert_eq!(outcome.ok().stdout, "left\n", "{outcome}");
}

/// In the middle of any call, with any lock of the library.
#[test]
fn a_signal_handler_may_exit() {
    let program = compile("gm_exits", "cc", &["exits.c"], &["-Wextra", "-Werror"]);
    let folder = Folder::new("exits");
    let outcome = node(&program, &folder.map(1), 1).arg("60").run();
    assert_eq!(outcome.ok().stdout, "all have left\n", "{outcome}");
}

/// The child has a copy of the socket at which its parent has listened, and closes it.
#[test]
fn the_place_of_a_process_is_free_though_a_child_of_it_lives() {
    let program = compile("gm_forks", "cc", &["forks.c"], &["-Wextra", "-Werror"]);
    let folder = Folder::new("forks");
    let map = folder.map(1);
    for job in [node(&program, &map, 1).arg("child"), node(&program, &map, 1)] {
        assert_eq!(job.run().ok().stdout, "it has its place\n");
    }
}

/// A client whose process takes the place of one that says nothing any more, and whose session is
/// not over for the server: its host has lost its power, say.
#[test]
fn a_client_that_begins_anew_is_served_though_the_one_before_was_not_found_dead() {
    let server = compile("gm_echo", "cc", &["../../samples/echo.c"], &["-Werror"]);
    let client = compile("gm_anew", "cc", &["anew.c"], &["-Werror"]);
    let folder = Folder::new("anew");
    let map = folder.map(2);
    let mut server = Marked::start(node(&server, &map, 1));
    assert_eq!(server.running().lines(1)[0].trim(), "serving");
    let mut silent = Vec::new();
    for _ in 0..3 {
        let mut one = Marked::start(node(&client, &map, 2));
        assert_eq!(one.running().lines(1)[0].trim(), "3 answers");
        let pid = rustix::process::Pid::from_raw(one.running().pid()).expect("a process");
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("it is there");
        fs::remove_file(folder.path().join("2")).expect("the client's place");
        silent.push(one);
    }
}

/// A listener without descriptors says so once, and takes peers again when there are some.
#[test]
fn a_process_without_descriptors() {
    let server = compile("gm_full", "cc", &["full.c"], &["-Wextra", "-Werror"]);
    let client = compile("gm_anew", "cc", &["anew.c"], &["-Werror"]);
    let folder = Folder::new("full");
    let map = folder.map(2);
    let limited = Job::direct("sh").without_launchers().arg("-c").arg("ulimit -n 256; exec \"$0\"");
    let limited = limited.arg(&server).env("LAPI_GM_MAP", &map).env("LAPI_GM_NODE", "1");
    let mut server = Marked::start(limited);
    assert_eq!(server.running().lines(1)[0].trim(), "full");
    let waiting = UnixStream::connect(folder.path().join("1")).expect("it listens");
    let complaint = "gm: a peer could not connect: ";
    server.running().until_it_says(complaint);
    // It looks again every 50 ms.
    std::thread::sleep(Duration::from_millis(500));
    let said = server.running().stderr_so_far();
    assert_eq!(said.matches(complaint).count(), 1, "{said}");
    drop(waiting);
    server.running().signal(Signal::SIGUSR1);
    let mut client = Marked::start(node(&client, &map, 2));
    assert_eq!(client.running().lines(1)[0].trim(), "3 answers");
}

/// A process for which the system has no thread goes on: nothing is sent and no peer taken until
/// there are some again.
#[test]
fn a_process_without_threads() {
    let server = compile("gm_alone", "cc", &["alone.c"], &["-Wextra", "-Werror", "-ldl"]);
    let client = compile("gm_echo", "cc", &["../../samples/echo.c"], &["-Werror"]);
    let folder = Folder::new("alone");
    let map = folder.map(3);
    let mut server = Marked::start(node(&server, &map, 1));
    assert_eq!(server.running().lines(1)[0].trim(), "nobody: GM_SEND_TARGET_NODE_UNREACHABLE");
    server.running().until_it_says("gm: nothing is sent to node 3: ");
    let call = || node(&client, &map, 2).arg("hello").run();
    let outcome = call();
    assert!(outcome.exited(1).stderr.contains("echo: the target's node cannot be reached"), "{outcome}");
    server.running().until_it_says("gm: a peer could not connect: ");
    server.running().signal(Signal::SIGUSR1);
    assert_eq!(server.running().lines(2)[1].trim(), "serving");
    assert_eq!(call().ok().stdout.trim(), "echo: hello");
}

#[test]
fn a_wrong_map_is_named() {
    let program = conformance("cc");
    let folder = Folder::new("wrong");
    let map = folder.map(2);
    let said = |map: &Path, at: usize| node(&program, map, at).arg("message").run().stderr;
    assert!(said(&map, 3).contains("gm_init: LAPI_GM_NODE is \"3\"; the map has the nodes 1 to 2"));
    let absent = folder.path().join("absent");
    assert!(said(&absent, 1).contains(&format!("gm_init: LAPI_GM_MAP: {}: ", absent.display())));
    fs::write(&map, "1 one unix\n").expect("a file");
    assert!(said(&map, 1).contains("line 1: an address begins with unix: or tcp:"));
    fs::write(&map, format!("1 one unix:{}/1\n", folder.path().display())).expect("a file");
    let _taken = std::os::unix::net::UnixListener::bind(folder.path().join("1")).expect("a socket");
    assert!(said(&map, 1).contains("gm_init: unix:"), "the place is taken");
}
