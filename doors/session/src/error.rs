//! Why a session does not begin, or has ended.

use std::fmt;
use std::io;

/// The result of the calls of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What has happened.
#[derive(Debug)]
pub enum Error {
    /// The other side of the channel speaks another protocol.
    Stranger,
    /// The other side does not know the key.
    WrongKey,
    /// The other side is a process of this user number, and not of this process's user.
    OtherUser(u32),
    /// Both sides know the key, and have different versions of the protocol.
    Version {
        /// The version of this side.
        own: u16,
        /// The version of the other side.
        peer: u16,
    },
    /// What the other side has sent was changed on the way, repeated, or is out of its turn.
    Forged(&'static str),
    /// The other side opens no session, and says why.
    Refused(String),
    /// The two sides have no way in common: what this one may use, and what the other; or no
    /// network carries packets between them: what was tried.
    NoRoute(String),
    /// The other side has closed the session.
    Closed,
    /// The peer's process, or the way to it, is gone without a word.
    Lost(String),
    /// The time is over.
    Late(&'static str),
    /// A limit of the system or of the protocol, with its name.
    Limit(String),
    /// The key file.
    Key(String),
    /// The system refuses a step.
    System(&'static str, io::Error),
    /// The core refuses a call.
    Core(openlapi::error::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stranger => f.write_str("the other side of the channel is no session's"),
            Self::WrongKey => f.write_str("the other side does not know the key"),
            Self::OtherUser(uid) => write!(f, "the other side is a process of user {uid}"),
            Self::Version { own, peer } => {
                write!(f, "the other side has version {peer} of the protocol, and this one version {own}")
            }
            Self::Forged(what) => write!(f, "the channel carries what the other side has not sent: {what}"),
            Self::Refused(why) => write!(f, "the other side refuses: {why}"),
            Self::NoRoute(why) => write!(f, "no way between the two processes: {why}"),
            Self::Closed => f.write_str("the session is closed"),
            Self::Lost(why) => write!(f, "the peer is lost: {why}"),
            Self::Late(what) => write!(f, "the time is over: {what}"),
            Self::Limit(what) => write!(f, "a limit: {what}"),
            Self::Key(why) => f.write_str(why),
            Self::System(what, why) => write!(f, "{what}: {why}"),
            Self::Core(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<openlapi::error::Error> for Error {
    fn from(error: openlapi::error::Error) -> Self {
        Self::Core(error)
    }
}

impl Error {
    /// A step that the system has refused: of a limit the name.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| match error.raw_os_error() {
            Some(libc::EMFILE) => Self::Limit(format!("{what}: {}", open_files())),
            Some(libc::ENFILE) => Self::Limit(format!("{what}: the system has no file left (fs.file-max)")),
            _ => Self::System(what, error),
        }
    }
}

fn open_files() -> String {
    use rustix::process::{Resource, getrlimit};
    let limit = getrlimit(Resource::Nofile).current.map_or_else(String::new, |limit| format!(" of {limit}"));
    format!("the limit{limit} open files of this process is reached (RLIMIT_NOFILE, ulimit -n)")
}
