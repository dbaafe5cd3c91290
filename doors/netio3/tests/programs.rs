//! C++ programs that use the headers, as two processes: on this host, and on two hosts, which are
//! network namespaces.

use openlapi_tests::{Hosts, Job, Marked, has_fabric, skipped, workspace};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

fn door() -> PathBuf {
    workspace().join("doors/netio3")
}

/// Where cargo has put the library that belongs to these tests.
fn library() -> PathBuf {
    let own = std::env::current_exe().expect("this program");
    own.parent().expect("a folder").join("libopenlapi_netio3.so")
}

/// A program of a source in the door's folder, compiled with all warnings as errors, and with the
/// flags of `TEST_CFLAGS`.
fn compiled(source: &str) -> PathBuf {
    let name = source.replace(['/', '.'], "-");
    let folder = library().with_file_name("netio3");
    fs::create_dir_all(&folder).expect("a folder");
    // The soname has no file in cargo's folder. An earlier run may have made this one.
    let _ = symlink(library(), folder.join("libopenlapi_netio3.so.0"));
    let program = folder.join(format!("{name}-{}", std::process::id()));
    let more = std::env::var("TEST_CFLAGS").unwrap_or_default();
    let output = Command::new("g++")
        .args(["-std=c++20", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread"])
        .args(more.split_whitespace())
        .arg("-I")
        .arg(door().join("include"))
        .arg(door().join(source))
        .arg(library())
        .arg(format!("-Wl,-rpath,{}", folder.display()))
        .arg("-o")
        .arg(&program)
        .output()
        .expect("g++");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn checks() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compiled("tests/checks.cpp"))
}

/// A running program, which does not outlive the test.
struct Running {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Goes after the program.
    socket: Option<Address>,
}

impl Running {
    fn start(program: &PathBuf, words: &[&str]) -> Self {
        let mut child = Command::new(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a program");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, input, output, socket: None }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("text");
        line.trim_end().to_owned()
    }

    fn go(&mut self) {
        self.input.write_all(b"\n").expect("it reads");
    }

    /// All that it says until its end, which is in order.
    fn ends(mut self) -> String {
        let mut text = String::new();
        self.output.read_to_string(&mut text).expect("text");
        let status = self.child.wait().expect("its end");
        assert!(status.success(), "{status}: {text}");
        text
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ways() -> Vec<&'static str> {
    ["1", "2", "4"].into_iter().filter(|way| *way != "2" || has_fabric()).collect()
}

/// Where a receiver listens: a socket, which a receiver that is killed leaves and this removes.
struct Address(PathBuf);

impl Address {
    fn new() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("netio3-{}-{number}", std::process::id())))
    }

    fn word(&self) -> String {
        format!("unix:{}", self.0.display())
    }
}

impl Drop for Address {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A side that receives, and one that does this; both over one way.
fn pair(what: &str, way: &str, wait: &[&str]) -> (Running, Running) {
    let socket = Address::new();
    let address = socket.word();
    let mut server = Running::start(checks(), &[&["serve", &address, way][..], wait].concat());
    assert_eq!(server.line(), address);
    let caller = Running::start(checks(), &[what, &address, way]);
    server.socket = Some(socket);
    (server, caller)
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
        let (server, caller) = pair("pieces", way, &[]);
        assert_eq!(caller.ends(), "done\n");
        assert_eq!(server.ends(), received(), "over {way}");
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
    let job = |words: &[&str]| {
        words.iter().fold(Job::direct(checks()).without_launchers(), |job, word| job.arg(word))
    };
    // 0: the best way, which is libfabric where there is one.
    for (port, way) in (4711..).zip(["0", "4"]) {
        let listens = format!("tcp:{}:{port}", hosts.address(0, 0));
        let address = format!("{listens}@{}", right.display());
        let mut server = Marked::start(hosts.inside(0, job(&["serve", &address, way])));
        assert_eq!(server.running().lines(1), [&*listens]);
        // By the name of the host.
        let place = format!("tcp:{}:{port}", hosts.name(0));
        for (what, key) in [("refused", &wrong), ("pieces", &right)] {
            let caller = job(&[what, &format!("{place}@{}", key.display()), way]);
            assert_eq!(hosts.inside(1, caller).run().ok().stdout, "done\n");
        }
        let said = server.over();
        assert!(said.ok().stdout.ends_with(&received()), "by {way}: {said}");
    }
}

#[test]
fn what_cannot_be_sent_is_refused_and_nothing_is_lost() {
    let (server, caller) = pair("misuse", "1", &[]);
    assert_eq!(caller.ends(), "done\n");
    assert_eq!(server.ends(), "fine: 8 bytes, 8\nclosed\n");
}

#[test]
fn without_a_free_slot_a_sender_tries_again_later() {
    for way in ways() {
        let (mut server, mut caller) = pair("slots", way, &["wait"]);
        assert_eq!(server.line(), "accepted");
        caller.go();
        assert_eq!(caller.line(), "full");
        server.go();
        assert_eq!(caller.ends(), "done\n");
        let mut expected: String = (0..256).map(|number| format!("{number}: 70000 bytes, 70000\n")).collect();
        expected += "again: 1 bytes, 1\nclosed\n";
        assert!(server.ends() == expected, "over {way}");
    }
}

/// A message is passed by fewer than the other side keeps.
#[test]
fn short_messages_that_pass_a_long_one_come_after_it() {
    for way in ways() {
        let (server, caller) = pair("passing", way, &["long"]);
        let said = caller.ends();
        let sent: usize = said.lines().next().and_then(|line| line.parse().ok()).expect("a number");
        let expected =
            format!("long: {0} bytes, {0}\n", (256 << 20) - 4) + &"short: 0 bytes, 0\n".repeat(sent);
        assert!(server.ends() == expected + "closed\n", "over {way}, {said}");
    }
}

#[test]
fn a_killed_receiver_leaves_the_keys_of_what_it_has_not_taken() {
    for way in ways() {
        let (mut server, mut caller) = pair("loss", way, &["wait"]);
        assert_eq!(server.line(), "accepted");
        caller.go();
        assert_eq!(caller.line(), "full");
        drop(server);
        let said = caller.ends();
        assert!(said.contains("the peer is lost") && said.ends_with("done\n"), "over {way}: {said}");
    }
}

#[test]
fn an_endpoint_that_ends_frees_the_shared_slots_and_its_connection() {
    let (mut server, mut caller) = pair("shared", "1", &["wait"]);
    assert_eq!(server.line(), "accepted");
    caller.go();
    assert_eq!(caller.ends(), "done\n");
    server.go();
    assert!(server.ends().contains("lost: the peer is lost"));
}

#[test]
fn the_samples_send_and_receive() {
    let [send, receive] = ["samples/send.cpp", "samples/receive.cpp"].map(compiled);
    let socket = Address::new();
    let address = socket.word();
    let mut receiver = Running::start(&receive, &[&address]);
    assert_eq!(receiver.line(), address);
    assert_eq!(Running::start(&send, &[&address, "1000"]).ends(), "1000 fragments were sent\n");
    assert_eq!(receiver.ends(), "1000 fragments, 100000000 bytes\n");
}

/// Binaries rely on every one, and on none beside these.
#[test]
fn the_symbols_are_those_of_the_list() {
    let output = Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(library()).output();
    let text = String::from_utf8(output.expect("nm").stdout).expect("names");
    let names: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    let list = fs::read_to_string(door().join("packaging/symbols.txt")).expect("the list");
    assert_eq!(names, list.lines().collect::<Vec<_>>());
    let header = fs::read_to_string(door().join("include/netio3/openlapi_netio3.h")).expect("the header");
    for name in names {
        assert!(header.contains(&format!("{name}(")), "{name} is not declared");
    }
}
