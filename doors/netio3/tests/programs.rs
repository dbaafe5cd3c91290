//! C++ programs that use the headers, as two processes: on this host, and on two hosts, which are
//! network namespaces.

use nix::sys::signal::Signal;
use openlapi_tests::{Hosts, Job, Marked, Running, compile_with, has_fabric, skipped, workspace};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where cargo has put the library that belongs to these tests.
fn library() -> PathBuf {
    std::env::current_exe().expect("this program").with_file_name("libopenlapi_netio3.so")
}

/// A program of a source in the door's folder, in which all warnings are errors.
fn compiled(name: &str, source: &str) -> PathBuf {
    let (library, source) = (library(), format!("doors/netio3/{source}"));
    // The soname has no file in cargo's folder. An earlier run may have made this one.
    let _ = symlink(&library, library.with_extension("so.0"));
    let path = format!("-Wl,-rpath,{}", library.parent().expect("a folder").display());
    let library = library.display().to_string();
    let warnings = ["-std=c++20", "-Wextra", "-Wpedantic", "-Werror", "-pthread"];
    let flags = [&warnings[..], &["-Idoors/netio3/include", &path, &library]].concat();
    compile_with(Path::new("g++"), name, &[&source], &flags)
}

fn job(program: &Path, words: &[&str]) -> Job {
    words.iter().fold(Job::direct(program).without_launchers(), |job, word| job.arg(word))
}

fn checks(words: &[&str]) -> Job {
    job(&compiled("netio3_checks", "tests/checks.cpp"), words)
}

fn ways() -> Vec<&'static str> {
    ["1", "2", "4"].into_iter().filter(|way| *way != "2" || has_fabric()).collect()
}

/// Where a receiver listens: a socket, which a receiver that is killed leaves and this removes.
struct Socket(PathBuf);

impl Socket {
    fn new(test: &str) -> (Self, String) {
        let path = std::env::temp_dir().join(format!("netio3-{test}-{}", std::process::id()));
        let address = format!("unix:{}", path.display());
        (Self(path), address)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A side that receives, in this way, and one that does this; both over one way of the data.
fn pair(what: &str, way: &str, how: &str) -> (Running, Running, Socket) {
    let (socket, address) = Socket::new(what);
    let mut server = checks(&["serve", &address, way, how]).start();
    server.until_it_says(&address);
    (server, checks(&[what, &address, way]).start(), socket)
}

/// Two sides of which one has sent all that it can, and the other one takes nothing before it gets
/// a signal.
fn full(what: &str, way: &str, how: &str) -> (Running, Running, Socket) {
    let (mut server, mut caller, socket) = pair(what, way, how);
    server.until_it_says("accepted");
    caller.signal(Signal::SIGUSR1);
    caller.until_it_says("full");
    (server, caller, socket)
}

/// What a program says until its end, which is in order.
fn said(program: Running) -> String {
    program.wait().ok().stdout.clone()
}

/// What a side says that has received `pieces`.
fn received() -> String {
    let longest = "x".repeat(512);
    format!(
        "one: 10 bytes, 10\nthree: 200005 bytes, 200005\nnone: 0 bytes, 0\n: 0 bytes, 0\n\
         {longest}: 1048064 bytes, 1048064\nclosed\n"
    )
}

#[test]
fn messages_have_their_header_first_and_come_in_order() {
    for way in ways() {
        let (server, caller, _socket) = pair("pieces", way, "");
        assert_eq!(said(caller), "done\n");
        assert_eq!(said(server), received(), "over {way}");
    }
}

#[test]
fn two_hosts_meet_at_a_port_by_a_key() {
    let hosts = Hosts::new(2).map_err(|why| skipped("netio3 between two hosts", &why));
    let Ok(hosts) = hosts else { return };
    let [right, wrong] = ['7', '8'].map(|digit| {
        let path = hosts.folder().join(format!("key{digit}"));
        fs::write(&path, digit.to_string().repeat(32)).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
        path
    });
    // 0: the best way, which is libfabric where there is one.
    for (port, way) in (4711..).zip(["0", "4"]) {
        let listens = format!("tcp:{}:{port}", hosts.address(0, 0));
        let address = format!("{listens}@{}", right.display());
        let mut server = Marked::start(hosts.inside(0, checks(&["serve", &address, way])));
        server.running().until_it_says(&listens);
        // By the name of the host.
        let place = format!("tcp:{}:{port}", hosts.name(0));
        for (what, key) in [("refused", &wrong), ("pieces", &right)] {
            let caller = checks(&[what, &format!("{place}@{}", key.display()), way]);
            assert_eq!(hosts.inside(1, caller).run().ok().stdout, "done\n");
        }
        assert_eq!(server.over().ok().stdout, received(), "by {way}");
    }
}

#[test]
fn what_cannot_be_sent_is_refused_and_nothing_is_lost() {
    let (server, caller, _socket) = pair("misuse", "1", "");
    assert_eq!(said(caller), "done\n");
    assert_eq!(said(server), "fine: 8 bytes, 8\nclosed\n");
}

#[test]
fn without_a_free_slot_a_sender_tries_again_later() {
    for way in ways() {
        let (server, caller, _socket) = full("slots", way, "wait");
        server.signal(Signal::SIGUSR1);
        assert_eq!(said(caller), "done\n");
        let mut expected: String = (0..256).map(|number| format!("{number}: 70000 bytes, 70000\n")).collect();
        expected += "again: 1 bytes, 1\nclosed\n";
        assert!(said(server) == expected, "over {way}");
    }
}

/// A message is passed by fewer than the other side keeps.
#[test]
fn short_messages_that_pass_a_long_one_come_after_it() {
    for way in ways() {
        let (server, caller, _socket) = pair("passing", way, "long");
        let said_of_sends = said(caller);
        let sent: usize = said_of_sends.lines().next().and_then(|line| line.parse().ok()).expect("a number");
        let expected =
            format!("long: {0} bytes, {0}\n", (256 << 20) - 4) + &"short: 0 bytes, 0\n".repeat(sent);
        assert!(said(server) == expected + "closed\n", "over {way}, {sent} were sent");
    }
}

#[test]
fn a_killed_receiver_leaves_the_keys_of_what_it_has_not_taken() {
    for way in ways() {
        let (server, caller, _socket) = full("loss", way, "wait");
        drop(server);
        let said = said(caller);
        assert!(said.contains("the peer is lost") && said.ends_with("done\n"), "over {way}: {said}");
    }
}

#[test]
fn an_endpoint_that_ends_frees_the_shared_slots_and_its_connection() {
    let (server, caller, _socket) = full("shared", "1", "two");
    assert_eq!(said(caller), "done\n");
    server.signal(Signal::SIGUSR1);
    assert!(said(server).contains("lost: the peer is lost"));
}

#[test]
fn the_samples_send_and_receive() {
    let [send, receive] =
        ["send", "receive"].map(|name| compiled(&format!("netio3_{name}"), &format!("samples/{name}.cpp")));
    let (_socket, address) = Socket::new("samples");
    let mut receiver = job(&receive, &[&address]).start();
    assert_eq!(receiver.lines(1), [&*address]);
    assert_eq!(said(job(&send, &[&address, "1000"]).start()), "1000 fragments were sent\n");
    assert_eq!(said(receiver), format!("{address}\n1000 fragments, 100000000 bytes\n"));
}

/// Binaries rely on every one, and on none beside these.
#[test]
fn the_symbols_are_those_of_the_list() {
    let output = Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(library()).output();
    let text = String::from_utf8(output.expect("nm").stdout).expect("names");
    let names: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    let read = |file| fs::read_to_string(workspace().join("doors/netio3").join(file)).expect("a file");
    assert_eq!(names, read("packaging/symbols.txt").lines().collect::<Vec<_>>());
    let header = read("include/netio3/openlapi_netio3.h");
    for name in names {
        assert!(header.contains(&format!("{name}(")), "{name} is not declared");
    }
}
