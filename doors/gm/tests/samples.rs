//! The samples, and gm_board_info.

mod program;

use openlapi_tests::Job;
use program::{compile, libraries, poe};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::process::Command;

#[test]
fn a_ring() {
    let program = compile("gm_ring", "cc", &["../../samples/ring.c"], &["-Werror"]);
    for nodes in ["host", "task"] {
        let outcome = poe(&program, 4).env("LAPI_GM_NODES", nodes).run();
        assert_eq!(outcome.ok().stdout.trim(), "the message has passed 4 tasks", "{nodes}");
    }
}

#[test]
fn a_ring_with_the_static_library() {
    // Compiled again when the library changes.
    let mut hash = DefaultHasher::new();
    fs::read(libraries().join("libgm.a")).expect("the static library").hash(&mut hash);
    let library = format!("-DLIBRARY={}", hash.finish());
    let flags = "-Wl,-Bstatic -lgm -Wl,-Bdynamic -Wl,--as-needed -ldl -lm -lpthread";
    let flags: Vec<&str> = flags.split(' ').chain([&*library]).collect();
    let program = compile("gm_static_ring", "cc", &["../../samples/ring.c"], &flags);
    let needed = Command::new("readelf").arg("-d").arg(&program).output().expect("readelf");
    let needed = String::from_utf8_lossy(&needed.stdout).into_owned();
    assert!(needed.contains("libc.so") && !needed.contains("libgm"), "{needed}");
    assert_eq!(poe(&program, 3).run().ok().stdout.trim(), "the message has passed 3 tasks");
}

#[test]
fn all_to_all() {
    let program = compile("gm_alltoall", "cc", &["../../samples/alltoall.c"], &["-Werror"]);
    let outcome = poe(&program, 3).run();
    let said = outcome.ok().stdout.matches("has received 30 messages, whose sum is 60").count();
    assert_eq!(said, 3, "{outcome}");
}

#[test]
fn the_board_shows_ports_and_nodes() {
    let outcome = Job::direct(env!("CARGO_BIN_EXE_gm_board_info")).run();
    let said = &outcome.ok().stdout;
    for line in ["board 0: node 1 of 1", "  port 1: GM's own", "  port 2: free", "(this node)"] {
        assert!(said.contains(line), "{outcome}");
    }
    // A node is a host, whether or not its tasks share memory.
    let board = Path::new(env!("CARGO_BIN_EXE_gm_board_info"));
    let outcome = poe(board, 2).env("MP_EUILIB", "ip").env("LAPI_USE_SHM", "no").run();
    assert_eq!(outcome.ok().stdout.matches("board 0: node 1 of 1").count(), 2, "{outcome}");
    let outcome = Job::direct(env!("CARGO_BIN_EXE_gm_board_info")).arg("-x").run();
    assert!(outcome.exited(2).stdout.starts_with("usage:"), "{outcome}");
}
