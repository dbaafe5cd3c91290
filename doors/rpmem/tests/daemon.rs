//! The daemon: its part files, its command line, and peers that send what librpmem does not.

mod support;

use openlapi::job::start_up::greeting::{By, Called, Heard};
use openlapi::wire::VERSION as CORE;
use openlapi_session::{Error, Routes, Session, Settings, accept, connect};
use openlapi_tests::{compile_plain, eventually, skipped};
use rpmem::wire::{Answer, Depth, NO_LANE, Range, Request, VERSION, WHOLE};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use support::{Host, PART, built};

/// The pool of two parts.
const TWO: u64 = 2 * PART - 4096;

/// A file that is in place but has no space of its own gets it when the pool is created.
#[test]
fn a_part_has_its_space() {
    let host = Host::new("sparse");
    host.set("two", "", 2);
    let part = File::create(host.part("two", 1)).expect("a file");
    part.set_len(PART).expect("its size");
    assert_eq!(host.try_call("create", "two", TWO).0, "OK");
    let blocks = part.metadata().expect("a part").blocks();
    assert!(blocks * 512 >= PART, "{blocks} blocks of 512 bytes");
}

/// A pool that was created or removed is so after a power failure, too: its parts are synchronised,
/// and the folder that has their names.
#[test]
fn what_was_created_or_removed_is_durable() {
    // Shells load it, too, which have no sanitizer's runtime.
    let flags = ["-shared", "-fPIC", "-Wextra", "-fno-sanitize=all"];
    let syncs = compile_plain("rpmem_syncs", &["doors/rpmem/tests/c/syncs.c"], &flags);
    let host = Host::new("durable");
    let log = host.path("syncs");
    let names = format!("export LD_PRELOAD={} SYNCS={}\n", syncs.display(), log.display());
    host.script("ssh", &format!("{names}for command; do :; done\nexec sh -c \"$command\"\n"));
    host.set("two", "", 2);
    let parts = [host.part("two", 0), host.part("two", 1)];
    let folder = parts[0].parent().expect("a folder").to_path_buf();
    let synced = || {
        let said = fs::read_to_string(&log).unwrap_or_default();
        let _ = fs::remove_file(&log);
        said.lines().map(PathBuf::from).collect::<Vec<_>>()
    };
    assert_eq!(host.try_call("create", "two", TWO).0, "OK");
    let found = synced();
    assert!(parts.iter().chain([&folder]).all(|path| found.contains(path)), "{found:?}");
    assert_eq!(host.try_call("remove", "two", TWO).0, "OK");
    let found = synced();
    assert!(!parts[0].exists() && found.contains(&folder), "{found:?}");
}

/// With force, too, no part goes that is in use.
#[test]
fn force_respects_locks() {
    let host = Host::new("force");
    host.set("two", "", 2);
    let part = File::create(host.part("two", 1)).expect("a file");
    part.lock().expect("a lock");
    assert_eq!(host.try_call("force", "two", TWO).0, "EBUSY");
    assert!(host.part("two", 1).exists());
    drop(part);
    assert_eq!(host.try_call("force", "two", TWO).0, "OK");
    assert!(!host.part("two", 1).exists());
    assert_eq!(host.try_call("force", "two", TWO).0, "OK");
    // A folder is no part that could be removed.
    fs::create_dir(host.part("two", 0)).expect("a folder");
    assert_eq!(host.try_call("force", "two", TWO).0, "EOPNOTSUPP");
    assert!(host.part("two", 0).exists());
}

/// A daemon waits for the lock of a part, which is removed meanwhile: that file is none any more.
#[test]
fn a_part_that_is_removed_before_it_is_locked() {
    let host = Host::new("removed");
    host.set("one", "", 1);
    let path = host.part("one", 0);
    for (call, expected) in [("create", "OK"), ("open", "ENOENT")] {
        loop {
            if !path.exists() {
                assert_eq!(host.try_call("create", "one", PART).0, "OK");
            }
            let part = File::open(&path).expect("a part");
            part.lock().expect("a lock");
            let outcome = std::thread::scope(|scope| {
                let caller = scope.spawn(|| host.try_call(call, "one", PART).0);
                assert!(eventually(|| has_open("rpmemd", &path)), "no daemon waits");
                fs::remove_file(&path).expect("a part");
                drop(part);
                caller.join().expect("a call")
            });
            // The daemon may have lost its patience before the file was removed.
            if outcome != "EBUSY" {
                assert_eq!(outcome, expected, "{call}");
                assert_eq!(path.exists(), call == "create");
                break;
            }
        }
    }
}

/// Whether a process of this program has the file open.
fn has_open(program: &str, file: &Path) -> bool {
    let processes = fs::read_dir("/proc").expect("processes").filter_map(std::result::Result::ok);
    let mut found = processes.filter(|process| {
        fs::read_to_string(process.path().join("comm")).is_ok_and(|name| name.trim() == program)
    });
    found.any(|process| {
        let descriptors = fs::read_dir(process.path().join("fd")).into_iter().flatten();
        descriptors
            .filter_map(std::result::Result::ok)
            .any(|one| fs::read_link(one.path()).is_ok_and(|target| target == file))
    })
}

/// The daemon by itself: what it says to a command line, by its exit status.
#[test]
fn what_the_daemon_refuses() {
    let host = Host::new("daemon");
    host.set("two", "", 2);
    let run = |words: &[&str]| {
        let mut daemon = Command::new(built().join("rpmemd"));
        daemon.args(words).env("HOME", host.path("sets")).current_dir(host.path("sets"));
        daemon.output().expect("the daemon runs")
    };
    assert_eq!(run(&["--remove", "two"]).status.code(), Some(libc::ENOENT));
    for set in ["../sets/two", "/two", "..", ""] {
        assert_eq!(run(&["--remove", set]).status.code(), Some(libc::EINVAL), "{set:?}");
    }
    // A configuration that cannot be read.
    fs::create_dir(host.path("sets/.rpmemd.conf")).expect("a folder");
    let refused = run(&["--remove", "two"]);
    assert_eq!(refused.status.code(), Some(libc::EINVAL));
    assert!(String::from_utf8_lossy(&refused.stderr).contains(".rpmemd.conf"), "{refused:?}");
}

#[test]
fn version_and_help() {
    let said = |word: &str| {
        let output = Command::new(built().join("rpmemd")).arg(word).output().expect("the daemon runs");
        assert!(output.status.success() && output.stderr.is_empty(), "{word}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    for word in ["-V", "--version"] {
        assert_eq!(said(word), concat!("rpmemd ", env!("CARGO_PKG_VERSION"), "\n"));
    }
    let help = said("--help");
    assert_eq!(said("-h"), help);
    for option in ["-c, --config", "-r, --remove", "-f, --force", "-s, --pool-set", "-t, --nthreads"] {
        assert!(help.contains(option), "{option}: {help}");
    }
}

/// Syslog unless the configuration says otherwise, and then a file of the machine. The daemon runs
/// where /var/log is this test's, and with a syslog of the test's.
#[test]
fn where_the_log_goes() {
    let flags = ["-shared", "-fPIC", "-Wextra", "-fno-sanitize=all"];
    let syslog = compile_plain("rpmem_syslog", &["doors/rpmem/tests/c/syslog.c"], &flags);
    let host = Host::new("syslog");
    let lines = host.path("lines");
    let folder = host.path("logs");
    fs::create_dir(&folder).expect("a folder");
    let run = |start: &str, setting: &str| {
        host.write("rpmemd.conf", &format!("poolset-dir = {}\n{setting}\n", host.path("sets").display()));
        let script = format!("{start} exec {} --remove none", host.command());
        let script = Command::new("unshare")
            .args(["-rm", "sh", "-c", &script])
            .env("SYSLOG", &lines)
            .output()
            .expect("a shell");
        assert_eq!(script.status.code(), Some(libc::ENOENT), "{script:?}");
        fs::read_to_string(&lines).unwrap_or_default()
    };
    let mount = format!("mount --bind {} /var/log && ", folder.display());
    let is_possible = Command::new("unshare").args(["-rm", "sh", "-c", &format!("{mount} true")]).output();
    if !is_possible.is_ok_and(|output| output.status.success()) {
        return skipped("where_the_log_goes", "no namespace of mounts can be made");
    }
    let preload = format!("{mount} LD_PRELOAD={}", syslog.display());
    let files = || fs::read_dir(&folder).expect("a folder").count();
    // LOG_DAEMON and LOG_ERR.
    let first = run(&preload, "");
    assert!(first.starts_with("27 rpmemd: ") && first.contains("none"), "{first}");
    let second = run(&preload, "use-syslog = yes\nlog-file = /var/log/other");
    assert_eq!((second, files()), (first.repeat(2), 0));
    assert_eq!(run(&preload, "use-syslog = no"), first.repeat(2));
    let log = fs::read_to_string(folder.join("rpmemd.log")).expect("the log");
    assert!(log.contains("none") && files() == 1, "{log}");
}

/// Without --config the machine's file is read, and then the user's, which has the last word. The
/// daemon runs where /etc is this test's.
#[test]
fn configuration_files() {
    let alone = "unshare -rm sh -c 'mount -t tmpfs none /etc";
    let is_possible = Command::new("sh").args(["-c", &format!("{alone}'")]).output();
    if !is_possible.is_ok_and(|output| output.status.success()) {
        return skipped("configuration_files", "no namespace of mounts can be made");
    }
    let host = Host::new("files");
    host.set("two", "", 2);
    let home = host.path("");
    let home = home.display();
    let machine = format!("{home}/machine.conf");
    host.write(
        "machine.conf",
        &format!("poolset-dir = {home}/none\nuse-syslog = no\nlog-file = {home}/log\n"),
    );
    host.write(".rpmemd.conf", "poolset-dir = $HOME/sets # the user's\n");
    host.write("other.conf", &format!("poolset-dir = {home}/sets\n"));
    let place = "mkdir /etc/rpmemd && cp \"$1\" /etc/rpmemd/rpmemd.conf";
    let rest = format!("HOME=\"$2\" exec sh -c \"$3\"' sh {machine} {home} \"$command\"");
    host.script("ssh", &format!("for command; do :; done\nexec {alone} && {place} && {rest}\n"));
    let daemon = built().join("rpmemd").display().to_string();
    let run = |call: &str, command: &str| host.try_by(call, "two", TWO, |job| job.env("RPMEM_CMD", command));

    // The set is found where the user's file says, and the log is where the machine's does.
    let (errno, text) = run("remove", &daemon);
    assert!(errno == "ENOENT" && text.contains("two0"), "{errno} {text}");
    assert!(host.log().contains("two0"), "{}", host.log());
    assert_eq!(run("force", &daemon).0, "OK");
    fs::remove_file(host.path(".rpmemd.conf")).expect("a file");
    let (errno, text) = run("force", &daemon);
    assert!(errno == "ENOENT" && text.contains("none/two"), "{errno} {text}");
    // With --config neither of them is read.
    let before = host.log();
    let (errno, text) = run("remove", &format!("{daemon} -c {home}/other.conf"));
    assert!(errno == "ENOENT" && text.contains("two0"), "{errno} {text}");
    assert_eq!(host.log(), before);
    host.write("machine.conf", "\nunknown = yes\n");
    let (errno, text) = run("force", &daemon);
    assert!(errno == "EINVAL" && text.contains("/etc/rpmemd/rpmemd.conf, line 2"), "{errno} {text}");
}

/// A daemon to which the pool of the set "one" is to be created, and the session with it.
fn start(host: &Host, command: &str, version: u32, lanes: u32) -> (Child, Session) {
    host.set("one", "OPTION NOHDRS", 1);
    let mut daemon = Command::new("sh");
    daemon.arg("-c").arg(format!("exec {command}")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut daemon = daemon.spawn().expect("the daemon runs");
    let (read, write) = (daemon.stdout.take().expect("a pipe"), daemon.stdin.take().expect("a pipe"));
    let session = connect(read.into(), write.into(), &Settings::default()).expect("a session");
    let create = Some(rpmem::Attributes::default());
    let start = Request::Start { version, size: PART, lanes, create };
    session.send(&start.encode(), b"one").expect("sent");
    (daemon, session)
}

/// The daemon's next answer.
fn answer(session: &Session) -> Result<Answer, Error> {
    let message = session.receive(None)?;
    Ok(Answer::decode(&message.expect("a message").header).expect("an answer"))
}

/// Threads that wait for a disk are more than processors, and never more than lanes.
#[test]
fn how_many_threads_serve() {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    let usual = processors.clamp(16, 40);
    for (options, lanes, expected) in
        [("", 40, usual), ("", 3, 3), ("--nthreads 5", 40, 5), ("--nthreads 1", 40, 1)]
    {
        let host = Host::new("threads");
        let (mut daemon, session) = start(&host, &format!("{} {options}", host.command()), VERSION, lanes);
        assert!(matches!(answer(&session), Ok(Answer::Started { errno: 0, .. })));
        let tasks = format!("/proc/{}/task", daemon.id());
        let names = || {
            let all = fs::read_dir(&tasks).expect("a process").flatten();
            all.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok())
        };
        let count = || names().filter(|name| name == "serve\n").count();
        assert!(eventually(|| count() == expected), "{} for {options:?} and {lanes} lanes", count());
        session.close().expect("closed");
        daemon.wait().expect("the daemon's end");
    }
}

/// Each side refuses another version of the other one.
#[test]
fn versions_that_differ() {
    let host = Host::new("versions");
    let (mut daemon, session) = start(&host, &host.command(), VERSION + 1, 1);
    let refused = answer(&session).expect("an answer");
    assert!(
        matches!(refused, Answer::Started { version: VERSION, errno: libc::EPROTONOSUPPORT, .. }),
        "{refused:?}"
    );
    drop(session);
    daemon.wait().expect("the daemon's end");
    assert!(!host.part("one", 0).exists());
    let (errno, text) = by_a_stand_in(&host, "a_daemon_of_another_version");
    assert!(
        errno == "EPROTONOSUPPORT" && text.contains(&format!("version {}", VERSION + 1)),
        "{errno} {text}"
    );
    // The session's version is that of all that the cores of both send each other.
    let (errno, text) = by_a_stand_in(&host, "a_daemon_of_another_core");
    let versions = format!("version {} of the protocol, and this one version {CORE}", CORE + 1);
    assert!(errno == "EPROTONOSUPPORT" && text.contains(&versions), "{errno} {text}");
}

#[test]
fn no_way_leads_to_the_daemon() {
    let (errno, text) = by_a_stand_in(&Host::new("medium"), "a_daemon_without_networks");
    assert!(errno == "ENOMEDIUM" && text.contains("no way between"), "{errno} {text}");
}

/// The daemon may use all ways, and its host has no network that is up.
#[test]
fn no_network_reaches_the_daemon() {
    let alone = "unshare -rn sh -c";
    let is_possible = Command::new("sh").args(["-c", &format!("{alone} true")]).output();
    if !is_possible.is_ok_and(|output| output.status.success()) {
        return skipped("no_network_reaches_the_daemon", "no namespace of networks can be made");
    }
    let host = Host::new("network");
    host.set("one", "", 1);
    host.script("ssh", &format!("for command; do :; done\nexec {alone} \"$command\"\n"));
    let (errno, text) = host.try_call("create", "one", PART);
    assert!(errno == "ENOMEDIUM" && text.contains("no way between"), "{errno} {text}");
}

/// What rpmem_open says when a test of this program stands in for the daemon.
fn by_a_stand_in(host: &Host, test: &str) -> (String, String) {
    host.try_by("open", "any", PART, |job| job.env("RPMEM_CMD", stand_in_command(test)))
}

/// What starts a test of this program in the place of the daemon.
fn stand_in_command(test: &str) -> String {
    let own = std::env::current_exe().expect("this program");
    // The test program itself writes to standard output.
    format!("exec 3>&1 >/dev/null; exec {} --ignored --exact {test}", own.display())
}

/// The session of a test that stands in for the daemon.
fn stand_in(routes: Routes) -> Result<Session, Error> {
    let read = std::io::stdin().as_fd().try_clone_to_owned().expect("standard input");
    let write = OpenOptions::new().write(true).open("/dev/fd/3").expect("the test's descriptor");
    accept(read, write.into(), &Settings { routes, ..Settings::default() })
}

#[test]
#[ignore = "the other process of a test above"]
fn a_daemon_of_another_version() {
    let session = stand_in(Routes::ALL).expect("a session");
    session.receive(None).expect("a session").expect("a message");
    let attributes = rpmem::Attributes::default();
    let version = VERSION + 1;
    let started = Answer::Started { version, errno: 0, base: 4096, has_header: true, attributes };
    session.send(&started.encode(), &[]).expect("sent");
    assert!(session.receive(None).is_err());
}

/// The version alone of its card is one that this library understands.
#[test]
#[ignore = "the other process of a test above"]
fn a_daemon_of_another_core() {
    let mut read = File::from(std::io::stdin().as_fd().try_clone_to_owned().expect("standard input"));
    let mut write = OpenOptions::new().write(true).open("/dev/fd/3").expect("the test's descriptor");
    let mut called = Called::new([0; 16]);
    let proofs = loop {
        let mut bytes = vec![0; called.wanted()];
        read.read_exact(&mut bytes).expect("a greeting");
        match called.read(&bytes, |_| true) {
            Heard::Reply(reply) => write.write_all(&reply).expect("a client"),
            Heard::Proved(_, proofs) => break proofs,
            _ => panic!("no greeting"),
        }
    };
    let card = [&0_u32.to_le_bytes()[..], &[1], &(CORE + 1).to_le_bytes(), b"more"].concat();
    write.write_all(&proofs.sealed(By::Called, &card)).expect("a client");
    let _ = read.read_to_end(&mut Vec::new());
}

#[test]
#[ignore = "the other process of a test above"]
fn a_daemon_without_networks() {
    let none = Routes::SHARED_MEMORY.and(Routes::UDP);
    assert!(matches!(stand_in(none), Err(Error::NoRoute(_))));
}

/// More data than any request has ends the session.
#[test]
fn a_message_that_is_too_long() {
    let host = Host::new("long");
    let (mut daemon, session) = start(&host, &host.command(), VERSION, 1);
    assert!(matches!(answer(&session), Ok(Answer::Started { errno: 0, .. })));
    let persist = |length: usize| {
        let range = Range { offset: 0, length: length as u64 };
        let request = Request::Persist { lane: 0, range, depth: Depth::Usual };
        session.send(&request.encode(), &vec![1; length]).expect("sent");
        answer(&session)
    };
    assert_eq!(persist(WHOLE).expect("an answer"), Answer::Done { lane: 0, errno: 0 });
    assert!(persist(WHOLE + 1).is_err());
    drop(session);
    daemon.wait().expect("the daemon's end");
    assert!(host.is_free("one"));
}

/// A client does not wait for an answer that it could not read.
#[test]
fn an_answer_that_is_none() {
    let said = held_by_a_stand_in("a_daemon_that_babbles");
    assert_eq!(said, ["persist ECONNRESET", "drain ECONNRESET", "read ECONNRESET", "close ECONNRESET"]);
}

/// What has failed at the daemon is the failure of all later calls, which do not ask it again.
#[test]
fn a_failure_at_the_daemon_stays() {
    let said = held_by_a_stand_in("a_daemon_whose_disk_fails");
    assert_eq!(said, ["persist EIO", "drain EIO", "read EIO", "close EIO"]);
}

/// What data operations say when a test of this program stands in for the daemon.
fn held_by_a_stand_in(test: &str) -> Vec<String> {
    let host = Host::new("answer");
    let words = ["hold", "host", "any", &PART.to_string()];
    let outcome = host.calls(&words).env("RPMEM_CMD", stand_in_command(test)).stdin("a line\n").run();
    outcome.ok().stdout.lines().skip(1).map(str::to_owned).collect()
}

/// The session of a stand-in, whose client has opened a pool and persists.
fn stand_in_that_is_asked() -> Session {
    let session = stand_in(Routes::ALL).expect("a session");
    let start = session.receive(None).expect("a session").expect("a message");
    assert!(matches!(Request::decode(&start.header), Some(Request::Start { create: None, .. })));
    let attributes = rpmem::Attributes::default();
    let started = Answer::Started { version: VERSION, errno: 0, base: 4096, has_header: true, attributes };
    session.send(&started.encode(), &[]).expect("sent");
    let persist = session.receive(None).expect("a session").expect("a message");
    assert!(matches!(Request::decode(&persist.header), Some(Request::Persist { lane: 0, .. })));
    session
}

#[test]
#[ignore = "the other process of a test above"]
fn a_daemon_that_babbles() {
    let session = stand_in_that_is_asked();
    session.send(b"nothing", &[]).expect("sent");
    assert!(session.receive(None).is_err());
}

#[test]
#[ignore = "the other process of a test above"]
fn a_daemon_whose_disk_fails() {
    let session = stand_in_that_is_asked();
    session.send(&Answer::Done { lane: 0, errno: libc::EIO }.encode(), b"msync").expect("sent");
    let close = session.receive(None).expect("a session").expect("a message");
    assert_eq!(Request::decode(&close.header), Some(Request::Close));
    session.send(&Answer::Done { lane: NO_LANE, errno: 0 }.encode(), &[]).expect("sent");
    assert!(session.receive(None).is_err());
}
