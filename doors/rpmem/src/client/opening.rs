//! How a remote pool is opened, and how one is removed: ssh, the session, the daemon's answer.

use super::Pool;
use super::lanes::Lane;
use crate::attributes::Attributes;
use crate::environment::environment;
use crate::failure::{Failure, Result};
use crate::log::{STEPS, log};
use crate::ssh::{Ending, Ssh, quoted};
use crate::target::Target;
use crate::wire::{Answer, LONGEST_NAME, Request, VERSION, is_below};
use openlapi_session::{Error, Session, Settings, connect};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// How long ssh and the daemon may take until the session is open.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long ssh may take to end once the daemon has failed.
const END: Duration = Duration::from_secs(5);
/// The longest text that a daemon answers, in bytes. It has paths in it.
const LONGEST_ANSWER: usize = 65536;

/// The local pool.
#[derive(Clone, Copy)]
pub struct Local {
    /// The address.
    pub address: usize,
    /// The size, in bytes.
    pub size: usize,
    /// How many lanes are asked for.
    pub lanes: u32,
}

/// Opens a pool, or creates it with these attributes. Returns the pool, the number of its lanes,
/// and its attributes.
///
/// # Errors
/// Those of rpmem_create(3).
pub fn open(
    target: &str,
    set: &str,
    local: Local,
    create: Option<Attributes>,
) -> Result<(Pool, u32, Attributes)> {
    let target = Target::parse(target)?;
    check_set(set)?;
    let lanes = local.lanes.min(environment().most_lanes);
    let (ssh, pipes) = Ssh::start(&target, environment().command(), true)?;
    let Some((read, write)) = pipes else { return Err(Failure::new(libc::EPIPE, "ssh has no pipes")) };
    let settings = Settings { patience: PATIENCE, longest: LONGEST_ANSWER, ..Settings::default() };
    let session = match connect(read, write, &settings) {
        Ok(session) => session,
        Err(error) => return Err(no_session(error, ssh)),
    };
    log(STEPS, || format!("a session with {}, by {}", target.place, session.route()));
    let size = local.size as u64;
    let request = Request::Start { version: VERSION, size, lanes, create };
    match start(&session, &request, set) {
        Err(error) => {
            drop(session);
            Err(ssh.failure(END, &error.to_string()))
        }
        Ok(Err(failure)) => {
            let _ = session.close();
            ssh.wait(Some(END));
            Err(failure)
        }
        Ok(Ok((base, has_header, attributes))) => {
            let pool = Pool {
                session,
                ssh,
                local: (local.address, local.size),
                base,
                has_header,
                lanes: (0..lanes).map(|_| Lane::default()).collect(),
                control: Mutex::new(()),
                control_lane: Lane::default(),
                no_answer: AtomicBool::new(false),
                bad: OnceLock::new(),
            };
            Ok((pool, lanes, attributes))
        }
    }
}

/// The daemon's answer: the pool's address, whether it has a header, and its attributes.
type Started = Result<(u64, bool, Attributes)>;

fn start(session: &Session, request: &Request, set: &str) -> std::result::Result<Started, Error> {
    session.send(&request.encode(), set.as_bytes())?;
    let Some(message) = session.receive(None)? else { return Err(Error::Late("the daemon's answer")) };
    Ok(match Answer::decode(&message.header) {
        Some(Answer::Started { version, .. }) if version != VERSION => {
            let text = format!("the daemon has version {version} of the protocol, and this side {VERSION}");
            Err(Failure::new(libc::EPROTONOSUPPORT, text))
        }
        Some(Answer::Started { errno: 0, base, has_header, attributes, .. }) => {
            Ok((base, has_header, attributes))
        }
        Some(Answer::Started { errno, .. }) => {
            Err(Failure::new(errno, String::from_utf8_lossy(&message.data)))
        }
        _ => Err(Failure::new(libc::EPROTO, "the daemon has not answered the start")),
    })
}

/// Why no session has been opened.
fn no_session(error: Error, ssh: Ssh) -> Failure {
    let errno = match &error {
        // Its exit status says more.
        Error::Lost(_) | Error::Closed => return ssh.failure(END, &error.to_string()),
        Error::Version { .. } => libc::EPROTONOSUPPORT,
        Error::NoRoute(_) => libc::ENOMEDIUM,
        Error::Late(_) => libc::ECONNABORTED,
        Error::Limit(_) => libc::EMFILE,
        Error::System(_, why) => why.raw_os_error().unwrap_or(libc::EIO),
        _ => libc::EREMOTEIO,
    };
    let said = ssh.said();
    ssh.wait(Some(END));
    let said = said.ok().and_then(|said| said.last_line());
    let said = said.map_or_else(String::new, |line| format!("; the daemon has said: {line}"));
    Failure::new(errno, format!("no session with the daemon: {error}{said}"))
}

/// Removes the pool of a set by a daemon that does nothing else.
///
/// # Errors
/// Those of rpmem_create(3).
pub fn remove(target: &str, set: &str, force: bool, pool_set: bool) -> Result<()> {
    let target = Target::parse(target)?;
    check_set(set)?;
    let mut command = format!("{} --remove {}", environment().command(), quoted(set));
    for (wanted, option) in [(force, " --force"), (pool_set, " --pool-set")] {
        if wanted {
            command.push_str(option);
        }
    }
    let (ssh, _) = Ssh::start(&target, &command, false)?;
    let said = ssh.said();
    let ending = ssh.wait(None);
    let line = said.ok().and_then(|said| said.last_line());
    let text = |what: &str| line.unwrap_or_else(|| what.to_owned());
    match ending {
        Ending::Status(0) => Ok(()),
        Ending::Status(255) => Err(Failure::new(libc::ECONNREFUSED, text("ssh has failed"))),
        Ending::Status(126 | 127) => Err(Failure::new(libc::EREMOTEIO, text("the daemon cannot be run"))),
        Ending::Status(errno) => Err(Failure::new(errno, text("the daemon has not removed the pool"))),
        Ending::Signal(_) => Err(Failure::new(libc::ECONNABORTED, text("the daemon has ended by a signal"))),
        Ending::Unknown => {
            Err(Failure::new(libc::ECHILD, "the program has waited for ssh, whose exit status is lost"))
        }
    }
}

fn check_set(set: &str) -> Result<()> {
    if set.len() > LONGEST_NAME || !is_below(set) {
        return Err(Failure::invalid(format!(
            "set {set:?}: a path below the daemon's poolset-dir is needed"
        )));
    }
    Ok(())
}
