//! The other process of the tests.
//!
//! `session_peer SIDE CHANNEL ROUTES WHAT [NUMBER]`: SIDE is `serve` or `call`; CHANNEL is `pipes`
//! (standard input and output), `unix:PATH`, `any:NAME` (a socket for all users), or
//! `tcp:ADDRESS@KEYFILE`; ROUTES are the numbers of the ways, added.

mod talk;

use openlapi_session::{
    Error, Listener, Message, Result, Routes, Session, Settings, accept, connect, connect_tcp, connect_unix,
    connect_unix_of_any_user, key_file,
};
use rustix::event::epoll;
use std::collections::BTreeMap;
use std::io::Write;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::time::Duration;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [side, channel, routes, what, rest @ ..] = &words[..] else { panic!("{words:?}") };
    let settings = Settings {
        routes: Routes(routes.parse().expect("a number")),
        patience: Duration::from_secs(100),
        ..Settings::default()
    };
    let count = rest.first().map_or(1, |count| count.parse().expect("a number"));
    match run(side, channel, &settings, what, count) {
        Ok(()) => say(&format!("over: {what}")),
        Err(error) => {
            say(&format!("error: {error}"));
            std::process::exit(1);
        }
    }
}

/// Standard output may be the channel.
fn say(what: &str) {
    let pipes = std::env::args().any(|word| word == "pipes");
    let line = format!("{what}\n");
    let _ = if pipes {
        std::io::stderr().write_all(line.as_bytes())
    } else {
        std::io::stdout().write_all(line.as_bytes())
    };
}

fn run(side: &str, channel: &str, settings: &Settings, what: &str, count: usize) -> Result<()> {
    let mut sessions = Vec::new();
    let mut listener = match (side, channel.split_once(':')) {
        ("serve", Some(("unix", path))) => Some(Listener::unix(path, settings)?),
        ("serve", Some(("any", name))) => Some(Listener::unix_of_any_user(name, settings)?),
        ("serve", Some((_, place))) => {
            let (address, file) = place.split_once('@').expect("a key file");
            Some(Listener::tcp(address.parse().expect("an address"), key_file(file)?, settings)?)
        }
        _ => None,
    };
    if let Some(listener) = &listener {
        say(&format!("listens {}", listener.address().map_or_else(String::new, |at| at.to_string())));
    }
    for number in 0..count {
        match open(side, channel, settings, &mut listener) {
            Ok(session) => sessions.push(session),
            Err(error) => {
                say(&format!("after {number} sessions"));
                return Err(error);
            }
        }
    }
    let routes: Vec<String> = sessions.iter().map(|session| session.route().to_string()).collect();
    say(&format!("open: {}", routes.first().map_or("", |route| route)));
    match (side, what) {
        ("serve", "talk") => {
            for session in sessions {
                talk::serve(&session, None)?;
                session.close()?;
            }
        }
        ("call", "talk") => {
            for session in sessions {
                talk::call(&session, None)?;
                session.close()?;
            }
        }
        // Each says something, so that all that a connection takes is there.
        (_, "idle") => {
            for session in &sessions {
                session.send(b"", b"idle")?;
            }
            sessions.iter().try_for_each(Session::fence)?;
            say("idle");
            sleep(sessions)?;
        }
        ("serve", "fork") => {
            for closes in [false, true] {
                // SAFETY: the process has this thread, and one that listens; the child ends the
                // sessions and exits.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    let closed = sessions.into_iter().filter(|_| closes).all(|one| one.close().is_ok());
                    drop(listener);
                    // SAFETY: it ends here.
                    unsafe { libc::_exit(i32::from(!closed)) };
                }
                let mut status = 0;
                // SAFETY: the child of this process.
                assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
                assert_eq!(status, 0);
            }
            assert!(std::fs::exists(channel.trim_start_matches("unix:")).is_ok_and(|there| there));
            sessions.push(open(side, channel, settings, &mut listener)?);
            for session in sessions {
                talk::serve(&session, None)?;
                session.close()?;
            }
        }
        // It answers, and ends without a word to the session.
        (_, "ends") => {
            for session in &sessions {
                session.receive(None)?;
                session.send(b"", b"last")?;
            }
            std::process::exit(0);
        }
        // It speaks first, waits until that is in the shared memory, and ends like that.
        (_, "speaks") => {
            for session in &sessions {
                session.send(b"", b"first")?;
            }
            for session in &sessions {
                while session.waiting()? != 0 {
                    let _ = session.poll()?;
                }
            }
            std::process::exit(0);
        }
        (_, "closed") => end_without_descriptors(sessions),
        _ => panic!("{side} {what}"),
    }
    Ok(())
}

/// The program closes all descriptors (closefrom(3)), and opens a file of its own under their
/// numbers: the end of the last session writes nothing there.
fn end_without_descriptors(sessions: Vec<Session>) {
    let path = std::env::temp_dir().join(format!("openlapi-session-closed-{}", std::process::id()));
    // SAFETY: closes what is open beyond the standard ones; the sessions are about to end.
    unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
    let file = std::fs::File::create_new(&path).expect("a file");
    std::fs::remove_file(&path).expect("the same file");
    // Beyond the numbers of the sessions, which close theirs.
    let kept = rustix::io::fcntl_dupfd_cloexec(&file, 500).expect("a descriptor");
    for _ in 0..256 {
        std::mem::forget(file.try_clone().expect("a descriptor"));
    }
    std::mem::forget(file);
    drop(sessions);
    let found = rustix::fs::fstat(&kept).expect("an open file");
    assert_eq!(found.st_size, 0, "the library has written into a file of the program");
}

/// An event loop, until the other side has closed all sessions. A message with the header `next` is
/// sent on by the session that was opened next.
fn sleep(sessions: Vec<Session>) -> Result<()> {
    let all = epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll descriptor");
    let mut open: BTreeMap<u64, Session> = (0..).zip(sessions).collect();
    for (number, session) in &open {
        epoll::add(&all, session, epoll::EventData::new_u64(*number), epoll::EventFlags::IN).expect("room");
    }
    let mut ready: Vec<u64> = open.keys().copied().collect();
    loop {
        while let Some(number) = ready.pop() {
            let Some(session) = open.get(&number) else { continue };
            match until_it_sleeps(session) {
                Ok(asked) => {
                    let next = open.range(number + 1..).next().or_else(|| open.iter().next());
                    let (next, session) = next.expect("this one at least");
                    for data in asked {
                        // It is not asleep while it sends.
                        session.progress()?;
                        session.send(b"", &data)?;
                        ready.push(*next);
                    }
                }
                Err(Error::Closed) => open.remove(&number).expect("an open session").close()?,
                Err(error) => return Err(error),
            }
        }
        if open.is_empty() {
            return Ok(());
        }
        let mut space = [MaybeUninit::<epoll::Event>::uninit(); 64];
        let (events, _) = epoll::wait(&all, &mut space, None).expect("events");
        ready = events.iter().map(|event| event.data.u64()).collect();
    }
}

/// What was to be sent on.
fn until_it_sleeps(session: &Session) -> Result<Vec<Vec<u8>>> {
    let mut asked = Vec::new();
    while session.progress()? || !session.arm()? {
        while let Some(Message { header, data }) = session.take() {
            if header == b"next" {
                asked.push(data);
            }
        }
    }
    Ok(asked)
}

fn open(side: &str, channel: &str, settings: &Settings, listener: &mut Option<Listener>) -> Result<Session> {
    if let Some(listener) = listener {
        return Ok(listener.accept(None)?.expect("no deadline"));
    }
    match (side, channel.split_once(':')) {
        ("serve", None) => accept(duplicate(std::io::stdin())?, duplicate(std::io::stdout())?, settings),
        (_, None) => connect(duplicate(std::io::stdin())?, duplicate(std::io::stdout())?, settings),
        (_, Some(("unix", path))) => connect_unix(path, settings),
        (_, Some(("any", name))) => connect_unix_of_any_user(name, settings),
        (_, Some((_, place))) => {
            let (address, file) = place.split_once('@').expect("a key file");
            connect_tcp(address.parse().expect("an address"), key_file(file)?, settings)
        }
    }
}

fn duplicate(of: impl AsFd) -> Result<std::os::fd::OwnedFd> {
    Ok(of.as_fd().try_clone_to_owned().expect("a descriptor"))
}
