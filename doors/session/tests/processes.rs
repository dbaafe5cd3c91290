//! Sessions between processes of this host.

#[path = "peer/talk.rs"]
mod talk;

use openlapi_session::{
    Error, Listener, Routes, Seen, Session, Settings, accept, connect, connect_tcp, connect_unix,
    connect_unix_of_any_user, key_file,
};
use openlapi_tests::{Deadline, copy_program, skipped};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A folder of one test, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("openlapi-session-{}-{}", std::process::id(), LAST.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).expect("a folder");
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn key(&self, name: &str, digit: char) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, digit.to_string().repeat(32)).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A peer, which does not outlive the test.
struct Peer(Child);

impl Peer {
    fn start(words: &[&str]) -> Self {
        Self::spawn(Command::new(env!("CARGO_BIN_EXE_session_peer")).args(words).stdout(Stdio::piped()))
    }

    fn spawn(command: &mut Command) -> Self {
        Self(command.spawn().expect("the peer"))
    }

    /// Waits until it listens. Its socket has a file a little earlier.
    fn listens(&mut self) {
        let mut line = String::new();
        BufReader::new(self.0.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
        assert!(line.starts_with("listens"), "{line}");
    }

    /// All that it says until its end, which is in order.
    fn ends(mut self) -> String {
        let mut text = String::new();
        if let Some(mut output) = self.0.stdout.take() {
            output.read_to_string(&mut text).expect("text");
        }
        let status = self.0.wait().expect("its end");
        assert!(status.success(), "{status}: {text}");
        text
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn settings(routes: Routes) -> Settings {
    Settings { routes, patience: Duration::from_secs(100), ..Settings::default() }
}

fn late() -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs(300))
}

fn accepted(listener: &mut Listener) -> Session {
    listener.accept(late()).expect("a session").expect("in time")
}

/// The ways that this host has with itself.
fn routes() -> Vec<Routes> {
    let all = [Routes::SHARED_MEMORY, Routes::FABRIC, Routes::UDP];
    all.into_iter().filter(|route| *route != Routes::FABRIC || openlapi_tests::has_fabric()).collect()
}

fn serve(session: Session, route: Routes) {
    assert_eq!(session.route(), route);
    assert_eq!(talk::serve(&session, late()).expect("an orderly end"), 7);
    // The peer has closed it.
    assert!(matches!(session.send(b"", b""), Err(Error::Closed)));
    session.close().expect("nothing was under way");
}

#[test]
fn by_a_unix_socket() {
    for route in routes() {
        let folder = Folder::new();
        let path = folder.path("socket");
        let mut listener = Listener::unix(&path, &settings(route)).expect("a listener");
        assert_eq!(fs::metadata(&path).expect("a socket").permissions().mode() & 0o777, 0o600);
        let channel = format!("unix:{}", path.display());
        let peer = Peer::start(&["call", &channel, &route.0.to_string(), "talk"]);
        serve(accepted(&mut listener), route);
        assert!(peer.ends().contains(&format!("open: {route}\nover: talk")));
        assert_eq!(listener.seen(), Seen::default());
        drop(listener);
        assert!(!path.exists());
    }
}

#[test]
fn by_a_tcp_port_and_a_key() {
    for route in routes() {
        let folder = Folder::new();
        let file = folder.key("key", '7');
        let key = key_file(&file).expect("a key");
        let mut listener = Listener::tcp("127.0.0.1:0".parse().expect("an address"), key, &settings(route))
            .expect("a listener");
        let channel = format!("tcp:{}@{}", listener.address().expect("an address"), file.display());
        let peer = Peer::start(&["call", &channel, &route.0.to_string(), "talk"]);
        serve(accepted(&mut listener), route);
        peer.ends();
    }
}

#[test]
fn by_pipes_in_both_directions() {
    for route in routes() {
        for side in ["call", "serve"] {
            let mut peer = Peer::spawn(
                Command::new(env!("CARGO_BIN_EXE_session_peer"))
                    .args([side, "pipes", &route.0.to_string(), "talk"])
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped()),
            );
            let read: OwnedFd = peer.0.stdout.take().expect("a pipe").into();
            let write: OwnedFd = peer.0.stdin.take().expect("a pipe").into();
            if side == "call" {
                serve(accept(read, write, &settings(route)).expect("a session"), route);
            } else {
                let session = connect(read, write, &settings(route)).expect("a session");
                talk::call(&session, late()).expect("all of it");
                session.close().expect("an orderly end");
            }
            peer.ends();
        }
    }
}

#[test]
fn the_best_way_of_both_is_taken_and_none_is_an_error_at_both() {
    let folder = Folder::new();
    for (own, peers, expected) in [(7, 7, 1), (7, 4, 4), (5, 6, 4)] {
        let path = folder.path("socket");
        let mut listener = Listener::unix(&path, &settings(Routes(own))).expect("a listener");
        let channel = format!("unix:{}", path.display());
        let peer = Peer::start(&["call", &channel, &peers.to_string(), "talk"]);
        serve(accepted(&mut listener), Routes(expected));
        peer.ends();
    }
    let path = folder.path("socket");
    let mut listener = Listener::unix(&path, &settings(Routes::SHARED_MEMORY)).expect("a listener");
    std::thread::scope(|scope| {
        let caller = scope.spawn(|| connect_unix(&path, &settings(Routes::UDP)));
        let error = listener.accept(late()).expect_err("no way in common");
        assert!(
            matches!(error, Error::NoRoute(_)) && error.to_string().contains("the other one UDP"),
            "{error}"
        );
        let error = caller.join().expect("a caller").expect_err("no way in common");
        assert!(matches!(error, Error::NoRoute(_) | Error::Refused(_)), "{error}");
    });
}

#[test]
fn a_wrong_key_gets_nothing_and_the_next_caller_is_served() {
    let folder = Folder::new();
    let [right, wrong] = [folder.key("right", '7'), folder.key("wrong", '8')];
    let key = key_file(&right).expect("a key");
    let routes = Routes::SHARED_MEMORY;
    let mut listener = Listener::tcp("127.0.0.1:0".parse().expect("an address"), key, &settings(routes))
        .expect("a listener");
    let at = listener.address().expect("an address");
    std::thread::scope(|scope| {
        let wrong = key_file(&wrong).expect("a key");
        let caller = scope.spawn(move || {
            let error = connect_tcp(at, wrong, &settings(routes)).expect_err("the wrong key");
            assert!(matches!(error, Error::WrongKey), "{error}");
            connect_tcp(at, key, &settings(routes)).expect("the right key")
        });
        let session = accepted(&mut listener);
        let peer = caller.join().expect("a caller");
        // Each side makes progress in its own calls.
        scope.spawn(move || {
            peer.send(b"", b"it works").expect("a message");
            peer.close().expect("an orderly end");
        });
        assert_eq!(session.receive(late()).expect("a message").expect("in time").data, b"it works");
        assert!(matches!(session.receive(late()), Err(Error::Closed)));
    });
    assert_eq!(listener.seen(), Seen { wrong_keys: 1, ..Seen::default() });
    // A key that others may read is none.
    fs::set_permissions(&right, fs::Permissions::from_mode(0o644)).expect("a mode");
    assert!(matches!(key_file(&right), Err(Error::Key(why)) if why.contains("mode 0644")));
    assert!(matches!(key_file(folder.path("none")), Err(Error::Key(_))));
}

#[test]
fn another_user_gets_nothing() {
    if !nix_is_root() {
        return skipped("another user at a listener", "only root has another user's processes");
    }
    let folder = Folder::new();
    let path = folder.path("socket");
    let mut listener = Listener::unix(&path, &settings(Routes::ALL)).expect("a listener");
    // Even where the file would let it in.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("a mode");
    let program = folder.path("peer");
    copy_program(env!("CARGO_BIN_EXE_session_peer"), &program);
    let channel = format!("unix:{}", path.display());
    let stranger = Peer::spawn(
        Command::new(&program)
            .args(["call", &channel, "7", "talk"])
            .uid(65_534)
            .gid(65_534)
            .stdout(Stdio::piped()),
    );
    let text = refused(stranger);
    assert!(text.contains("the other side is a process of user 0"), "{text}");
    assert!(matches!(listener.accept(Some(Instant::now())), Ok(None)));
    assert_eq!(listener.seen().other_users, 1);
    // The next one of this user is served.
    let peer = Peer::start(&["call", &channel, "1", "talk"]);
    serve(accepted(&mut listener), Routes::SHARED_MEMORY);
    peer.ends();
}

#[test]
fn a_socket_for_all_users_says_whose_process_the_peer_is() {
    let name = format!("openlapi-session-any-{}", std::process::id());
    let mut listener = Listener::unix_of_any_user(&name, &settings(Routes::ALL)).expect("a listener");
    let taken = Listener::unix_of_any_user(&name, &settings(Routes::ALL)).expect_err("a name that is taken");
    assert!(matches!(&taken, Error::System(..)), "{taken}");
    let channel = format!("any:{name}");
    let own = Peer::start(&["call", &channel, "7", "talk"]);
    let session = accepted(&mut listener);
    let user = session.user().expect("a user");
    serve(session, Routes::SHARED_MEMORY);
    own.ends();
    if !nix_is_root() {
        return skipped("another user at a listener", "only root has another user's processes");
    }
    assert_eq!((user.uid, user.gid), (0, 0));
    let folder = Folder::new();
    let program = folder.path("peer");
    copy_program(env!("CARGO_BIN_EXE_session_peer"), &program);
    let other = Peer::spawn(
        Command::new(&program)
            .args(["call", &channel, "7", "talk"])
            .uid(65_534)
            .gid(65_533)
            .stdout(Stdio::piped()),
    );
    let session = accepted(&mut listener);
    let user = session.user().expect("a user");
    assert_eq!((user.uid, user.gid), (65_534, 65_533));
    assert_ne!(session.route(), Routes::SHARED_MEMORY, "memory of another user");
    let route = session.route();
    serve(session, route);
    other.ends();
    assert_eq!(listener.seen(), Seen::default());
}

/// A peer that has proved itself and does not go on holds up no other.
#[test]
fn sessions_of_one_listener_are_opened_in_any_order() {
    let name = format!("openlapi-session-order-{}", std::process::id());
    let settings = settings(Routes::SHARED_MEMORY);
    let mut listener = Listener::unix_of_any_user(&name, &settings).expect("a listener");
    std::thread::scope(|scope| {
        let [first, second] = [(); 2].map(|()| {
            let caller = scope.spawn(|| connect_unix_of_any_user(&name, &settings).expect("a session"));
            (caller, listener.next(late()).expect("a peer").expect("in time"))
        });
        assert!(first.1.user().is_some());
        let opened = second.1.open().expect("a session");
        drop(second.0.join().expect("a caller"));
        drop((opened, first.1.open().expect("a session")));
        drop(first.0.join().expect("a caller"));
    });
}

fn nix_is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// What a peer says that gets no session.
fn refused(mut peer: Peer) -> String {
    let mut text = String::new();
    peer.0.stdout.take().expect("a pipe").read_to_string(&mut text).expect("text");
    assert_eq!(peer.0.wait().expect("its end").code(), Some(1), "{text}");
    text
}

#[test]
fn a_killed_peer_is_reported_and_touches_no_other_session() {
    for route in routes() {
        let folder = Folder::new();
        let path = folder.path("socket");
        let mut listener = Listener::unix(&path, &settings(route)).expect("a listener");
        let channel = format!("unix:{}", path.display());
        let start = || Peer::start(&["call", &channel, &route.0.to_string(), "idle"]);
        let (mut killed, other) = (start(), start());
        let mut sessions: Vec<Session> = (0..2).map(|_| accepted(&mut listener)).collect();
        for session in &sessions {
            assert_eq!(session.receive(late()).expect("a message").expect("in time").data, b"idle");
            session.send(b"", b"idle").expect("a message");
            session.fence().expect("it has arrived");
        }
        // Which of the two is which is seen by which ends.
        killed.0.kill().expect("a signal");
        killed.0.wait().expect("its end");
        let mut deadline = Deadline::after(Duration::from_secs(2));
        let lost = loop {
            let found = sessions.iter().position(|session| session.progress().is_err());
            if let Some(found) = found {
                break sessions.remove(found);
            }
            assert!(!deadline.has_passed(), "{route}: the death of a peer is not seen");
            std::thread::sleep(Duration::from_millis(5));
        };
        assert!(matches!(lost.fence(), Err(Error::Lost(_))), "{route}");
        assert!(matches!(lost.send(b"", b""), Err(Error::Lost(_))));
        // SAFETY: the session is over, and the memory is this process's own.
        assert!(matches!(unsafe { lost.get([0_u8; 8].as_mut_ptr(), 8, 8) }, Err(Error::Lost(_))));
        assert!(matches!(lost.close(), Err(Error::Lost(_))));
        let left = sessions.pop().expect("the other one");
        left.send(b"", b"still here").expect("a message");
        left.fence().expect("it has arrived");
        left.close().expect("an orderly end");
        other.ends();
    }
}

/// The call that finds the peer's end takes what is in the shared memory.
#[test]
fn what_a_peer_has_sent_before_it_ended_arrives() {
    let folder = Folder::new();
    let path = folder.path("socket");
    let mut listener = Listener::unix(&path, &settings(Routes::SHARED_MEMORY)).expect("a listener");
    let channel = format!("unix:{}", path.display());
    let mut peer = Peer::start(&["call", &channel, &Routes::SHARED_MEMORY.0.to_string(), "ends"]);
    let session = accepted(&mut listener);
    session.send(b"", b"first").and_then(|()| session.fence()).expect("it has arrived");
    assert!(peer.0.wait().expect("its end").success());
    let lost = session.arm();
    assert!(matches!(lost, Err(Error::Lost(_))), "{lost:?}");
    assert_eq!(session.take().expect("the message").data, b"last");
}

/// A peer that speaks first may have ended before this side has read that the two are connected.
#[test]
fn what_a_peer_has_sent_before_its_first_contact_was_complete_arrives() {
    let folder = Folder::new();
    let path = folder.path("socket");
    let mut listener = Listener::unix(&path, &settings(Routes::SHARED_MEMORY)).expect("a listener");
    let channel = format!("unix:{}", path.display());
    let routes = Routes::SHARED_MEMORY.0.to_string();
    for round in 0..10 {
        let peer = Peer::start(&["call", &channel, &routes, "speaks", "50"]);
        let sessions: Vec<Session> = (0..50).map(|_| accepted(&mut listener)).collect();
        for (number, session) in sessions.iter().enumerate() {
            while session.arm().is_ok() {
                // It makes no progress: all is taken where the end is found.
                std::hint::spin_loop();
            }
            let message = session.take();
            assert_eq!(message.map(|message| message.data), Some(b"first".to_vec()), "{round}, {number}");
        }
        drop(peer);
    }
}

#[test]
fn a_listener_leaves_the_file_of_its_successor() {
    let folder = Folder::new();
    let path = folder.path("socket");
    let settings = settings(Routes::SHARED_MEMORY);
    let first = Listener::unix(&path, &settings).expect("a listener");
    fs::remove_file(&path).expect("a file");
    let second = Listener::unix(&path, &settings).expect("another one");
    drop(first);
    assert!(path.exists(), "it was removed");
    drop(second);
    assert!(!path.exists(), "it is left behind");
}

#[test]
fn a_child_of_fork_ends_neither_session_nor_listener() {
    for route in routes() {
        let folder = Folder::new();
        let path = folder.path("socket");
        let channel = format!("unix:{}", path.display());
        let routes = route.0.to_string();
        let mut server = Peer::start(&["serve", &channel, &routes, "fork"]);
        server.listens();
        let first = Peer::start(&["call", &channel, &routes, "talk"]);
        let second = Peer::start(&["call", &channel, &routes, "talk"]);
        first.ends();
        second.ends();
        server.ends();
        assert!(!path.exists(), "{route}: the parent's listener has not removed its file");
    }
}

#[test]
fn a_program_may_close_the_descriptors_of_its_sessions() {
    let folder = Folder::new();
    let path = folder.path("socket");
    let mut listener = Listener::unix(&path, &settings(Routes::SHARED_MEMORY)).expect("a listener");
    let peer = Peer::start(&["call", &format!("unix:{}", path.display()), "1", "closed"]);
    let session = accepted(&mut listener);
    assert!(matches!(session.receive(late()), Err(Error::Lost(_))));
    peer.ends();
}

#[test]
fn a_thread_that_waits_learns_of_the_death() {
    for route in routes() {
        let folder = Folder::new();
        let path = folder.path("socket");
        let mut listener = Listener::unix(&path, &settings(route)).expect("a listener");
        let channel = format!("unix:{}", path.display());
        let mut peer = Peer::start(&["call", &channel, &route.0.to_string(), "idle"]);
        let session = accepted(&mut listener);
        session.receive(late()).expect("a message").expect("in time");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| session.receive(late()));
            peer.0.kill().expect("a signal");
            peer.0.wait().expect("its end");
            let error = waiting.join().expect("a thread").expect_err("nothing comes any more");
            assert!(matches!(error, Error::Lost(_)), "{route}: {error}");
        });
    }
}

#[test]
fn a_channel_that_speaks_something_else_or_nothing() {
    let quick = Settings { patience: Duration::from_millis(200), ..settings(Routes::ALL) };
    let (own, mut other) = UnixStream::pair().expect("sockets");
    let both = |stream: &UnixStream| -> [OwnedFd; 2] {
        [stream.try_clone().expect("a socket").into(), stream.try_clone().expect("a socket").into()]
    };
    let [read, write] = both(&own);
    assert!(matches!(connect(read, write, &quick), Err(Error::Late(_))));
    other.write_all(b"220 another service\r\n").expect("bytes");
    let [read, write] = both(&own);
    assert!(matches!(connect(read, write, &quick), Err(Error::Stranger)));
    drop(other);
    let [read, write] = both(&own);
    assert!(matches!(connect(read, write, &quick), Err(Error::Lost(_))));
    let path: &Path = "/nonexistent/socket".as_ref();
    assert!(matches!(connect_unix(path, &quick), Err(Error::System(..))));
    assert!(matches!(Listener::unix(path, &quick), Err(Error::System(..))));
}

#[test]
fn a_listener_whose_queue_is_full_is_not_waited_for_without_limit() {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};
    let folder = Folder::new();
    let path = folder.path("socket");
    // It has room for one, and accepts none.
    let listener = socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
    bind(&listener, &SocketAddrUnix::new(&path).expect("a path")).expect("a name");
    listen(&listener, 0).expect("a queue");
    let _first = UnixStream::connect(&path).expect("there is room");
    let quick = Settings { patience: Duration::from_millis(300), ..settings(Routes::ALL) };
    let error = connect_unix(&path, &quick).expect_err("the queue is full");
    assert!(matches!(error, Error::Late(_)), "{error}");
}

#[test]
fn the_sample_serves_one_client_after_the_other() {
    let folder = Folder::new();
    let path = folder.path("socket");
    let program = env!("CARGO_BIN_EXE_session_service");
    let mut service = Peer::spawn(Command::new(program).arg("serve").arg(&path).stdout(Stdio::piped()));
    let mut deadline = Deadline::after(Duration::from_secs(20));
    while !path.exists() {
        assert!(!deadline.has_passed(), "the service does not listen");
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut lines = BufReader::new(service.0.stdout.take().expect("a pipe")).lines();
    for _ in 0..2 {
        let client = Command::new(program).arg("call").arg(&path).spawn().expect("a client");
        let pid = client.id();
        assert!(Peer(client).ends().is_empty());
        let line = lines.next().expect("a line").expect("text");
        assert_eq!(line, format!("process {pid} was here, by shared memory"));
    }
    let alone = Command::new(program).arg("call").arg(folder.path("absent")).output().expect("a client");
    assert_eq!(alone.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&alone.stderr).contains("No such file"), "{alone:?}");
}
