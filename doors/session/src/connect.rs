//! Sessions with one certain peer: by a pair of pipes on both sides, or by a socket on the side
//! that connects.

use crate::channel::Channel;
use crate::error::{Error, Result};
use crate::handshake::Trust;
use crate::line::Line;
use crate::session::{Session, Settings, after, open};
use crate::wire::{Card, Side};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect as connect_to, socket_with,
};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Opens a session as the connecting side, by two pipes whose other ends the peer has: those of a
/// child process, for example, which may be ssh. Their giver vouches for the peer. They
/// stay open as long as the session does.
///
/// # Errors
/// [`Error::Stranger`], [`Error::Version`], [`Error::Refused`], [`Error::NoRoute`],
/// [`Error::Lost`], [`Error::Late`], [`Error::Limit`], [`Error::Core`].
pub fn connect(read: OwnedFd, write: OwnedFd, settings: &Settings) -> Result<Session> {
    over(Channel::pipes(read, write), Side::Connecting, Trust::Channel, settings, after(settings.patience))
}

/// Opens a session as the accepting side, by two pipes whose other ends the peer has: standard
/// input and output of a process that ssh has started, for example. Nothing else may be written
/// there.
///
/// # Errors
/// The errors of [`connect`].
pub fn accept(read: OwnedFd, write: OwnedFd, settings: &Settings) -> Result<Session> {
    over(Channel::pipes(read, write), Side::Accepting, Trust::Channel, settings, after(settings.patience))
}

/// Opens a session with the process of this user that listens at a Unix socket.
///
/// # Errors
/// Those of [`connect`], [`Error::OtherUser`], [`Error::System`]. [`Error::Late`] also where the
/// listener accepts no connection, and its queue is full.
pub fn connect_unix(path: impl AsRef<Path>, settings: &Settings) -> Result<Session> {
    let until = after(settings.patience);
    let stream = knock(SocketAddrUnix::new(path.as_ref()), until)?;
    over(Channel::unix(stream)?, Side::Connecting, Trust::Channel, settings, until)
}

/// Opens a session with the process, of whatever user, that listens at a Unix socket of this
/// abstract name in this network namespace. [`Session::user`] says whose it is.
///
/// # Errors
/// Those of [`connect_unix`], without [`Error::OtherUser`].
pub fn connect_unix_of_any_user(name: &str, settings: &Settings) -> Result<Session> {
    let until = after(settings.patience);
    let stream = knock(SocketAddrUnix::new_abstract_name(name.as_bytes()), until)?;
    over(Channel::unix_of_any_user(stream)?, Side::Connecting, Trust::Channel, settings, until)
}

/// Opens a session with a process that listens at a TCP port and knows the key ([`key_file`]).
///
/// # Errors
/// Those of [`connect`], [`Error::WrongKey`], [`Error::System`].
pub fn connect_tcp(to: SocketAddr, key: [u8; 16], settings: &Settings) -> Result<Session> {
    let until = after(settings.patience);
    let stream = TcpStream::connect_timeout(&to, left(until)).map_err(Error::system("a TCP port"))?;
    over(Channel::tcp(stream)?, Side::Connecting, Trust::Key(key), settings, until)
}

/// The key in a file: 32 hexadecimal digits, which this user alone can read (mode 0600).
/// `lapi_info --make-key` makes one.
///
/// # Errors
/// [`Error::Key`]: there is none, or others may know it.
pub fn key_file(path: impl AsRef<Path>) -> Result<[u8; 16]> {
    let path = path.as_ref();
    let found = openlapi::job::key_file::read(path).map_err(|error| Error::Key(error.detail))?;
    found.ok_or_else(|| Error::Key(format!("there is no key file {}", path.display())))
}

/// The usual place of the key file: `.openlapi/key` below HOME, or, without HOME, below the home
/// directory that the system lists for this user.
pub fn usual_key_file() -> PathBuf {
    let found = openlapi::job::key_file::path(&|name| std::env::var(name).ok());
    // A user without a home has no such file, and an error names it as any other one.
    found.unwrap_or_else(|| "~/.openlapi/key".into())
}

/// A connection to a Unix socket. The system lets one wait that comes to a listener with a full
/// queue, as long as a write to the socket may take.
fn knock(at: rustix::io::Result<SocketAddrUnix>, until: Instant) -> Result<UnixStream> {
    let failed = |error: Errno| Error::system("a Unix socket")(error.into());
    let at = at.map_err(failed)?;
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(failed)?;
    loop {
        set_socket_timeout(&socket, Timeout::Send, Some(left(until))).map_err(failed)?;
        match connect_to(&socket, &at) {
            Ok(()) => break,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Err(Error::Late("the listener's queue is full")),
            Err(error) => return Err(failed(error)),
        }
    }
    set_socket_timeout(&socket, Timeout::Send, None).map_err(failed)?;
    Ok(socket.into())
}

/// The time until then, which is never 0: that would be an error, or for ever.
fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
}

fn over(channel: Channel, side: Side, trust: Trust, settings: &Settings, until: Instant) -> Result<Session> {
    let own = Card::own(settings.routes);
    let (line, peer) = Line::shake(channel, side, trust, &own, until)?;
    open(line, side, (&own, &peer), settings, until)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::{Uid, User};
    use std::process::Command;

    #[test]
    fn without_home_the_key_is_in_the_listed_home_directory() {
        let own = std::env::current_exe().expect("this program");
        let mut child = Command::new(own);
        child.args(["--exact", "connect::tests::the_key_is_below_home", "--nocapture"]);
        let said = child.env_remove("HOME").output().expect("a process").stdout;
        let user = User::from_uid(Uid::effective()).expect("the list of users").expect("this user");
        let place = format!("the key: {}", user.dir.join(".openlapi/key").display());
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains(&place), "{place}: {said}");
    }

    #[test]
    fn the_key_is_below_home() {
        println!("the key: {}", usual_key_file().display());
        if let Some(home) = std::env::var_os("HOME") {
            assert_eq!(usual_key_file(), PathBuf::from(home).join(".openlapi/key"));
        }
    }
}
