//! Slurm without PMI (`srun --mpi=none`): the tasks connect with task 0 over TCP.
//!
//! Task 0 is on the first host of `SLURM_STEP_NODELIST`, and listens at one of a few ports that
//! follow from the job's key: the first that is free. At each fence it takes the values of every
//! task, and gives each the table of all; connections end with the fence. A task tries the ports at
//! all addresses of that host ([`mod@reach`]) until it finds the one that belongs to its job, and
//! begins with that one at the next fence. Task 0 has a connection to each task at a time, and
//! sends the whole table to each. The values and the table have proofs, as the connection has
//! ([`crate::job::start_up::greeting`]).
//!
//! Slurm gives its tasks no secret, so what they prove to know is `LAPI_JOB_SECRET` where that is
//! set, and otherwise the user's [`key_file`], which the first task that needs it makes: the hosts
//! of a cluster have one home for a user. Who can read the file can act as that user anyway.
//! [`root`] is task 0's side.

pub(crate) mod host_list;
mod root;

use super::{Exchange, failed, late, unpublished};
use crate::config::{self, Env, given};
use crate::error::{Error, Result};
use crate::job::derive::{Secret, derive};
use crate::job::identity::Identity;
use crate::job::key_file;
use crate::job::start_up::greeting::{By, SUBJECT, Subject};
use crate::job::start_up::reach::{self, Missed, Reached, reach};
use crate::wire::exchange::{LONGEST_FRAME, Values, decode_table, encode_values};
use sha2::{Digest, Sha256};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// How many ports a job may use.
const PORTS: u16 = 16;

/// One exchange.
pub(super) struct Slurm {
    /// What this task connects for next.
    fence: Fence,
    key: Key,
    /// Where task 0 is.
    host: String,
    /// Whether this task is there, too.
    is_there: bool,
    /// Where this task has found task 0.
    found: Option<SocketAddr>,
    own: Values,
    table: Vec<Values>,
}

/// Which fence of which job a task wants to take part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fence {
    /// The hash of the job's key.
    job: [u8; 16],
    task: u32,
    /// How many tasks it takes the job to have.
    tasks: u32,
    /// Which exchange of its process this is, from 1.
    opening: u32,
    /// Which fence of the exchange this is, from 1.
    number: u32,
}

impl Fence {
    fn subject(&self) -> Subject {
        let numbers = [self.task, self.tasks, self.opening, self.number].map(u32::to_le_bytes);
        let mut subject = [0; SUBJECT];
        subject[..16].copy_from_slice(&self.job);
        subject[16..].copy_from_slice(numbers.as_flattened());
        subject
    }

    /// The task that takes part in this fence, if the subject says so; task 0 does not connect.
    fn caller(&self, subject: &Subject) -> Option<u32> {
        let task = u32::from_le_bytes(subject[16..20].try_into().ok()?);
        let is_expected = (1..self.tasks).contains(&task) && Self { task, ..*self }.subject() == *subject;
        is_expected.then_some(task)
    }
}

/// What the tasks prove to know, and where it is from; for messages.
struct Key {
    secret: Secret,
    source: String,
}

impl Key {
    /// # Errors
    /// `LAPI_ERR_CSS_LOAD_FAILED`: there is none, or other users can read the file.
    fn of_this_task(env: &Env<'_>) -> Result<Self> {
        if let Some(secret) = given(env, "LAPI_JOB_SECRET") {
            let secret = config::secret(&secret);
            let secret = secret.ok_or_else(|| failed("LAPI_JOB_SECRET is not 32 hexadecimal digits"))?;
            return Ok(Self { secret, source: "LAPI_JOB_SECRET".to_owned() });
        }
        let path = key_file::path(env);
        let path =
            path.ok_or_else(|| failed("Slurm: set LAPI_JOB_SECRET or HOME: the tasks need a secret"))?;
        let read = || key_file::read(&path).map_err(|error| failed(error.detail));
        let secret = match read()? {
            Some(secret) => secret,
            None => {
                key_file::make(&path)
                    .map_err(|error| failed(format!("{} cannot be made: {error}", path.display())))?;
                read()?.ok_or_else(|| failed(format!("{} was made, and is not there", path.display())))?
            }
        };
        Ok(Self { secret, source: path.display().to_string() })
    }
}

/// What can be known without the others.
///
/// # Errors
/// `LAPI_ERR_CSS_LOAD_FAILED`: the environment does not say where task 0 is, or there is no key.
pub(super) fn open(identity: &Identity, opening: u32, env: &Env<'_>) -> Result<Slurm> {
    let list = given(env, "SLURM_STEP_NODELIST");
    let host = list.as_deref().and_then(host_list::first);
    let host = host.ok_or_else(|| failed("Slurm: SLURM_STEP_NODELIST has no list of hosts"))?;
    let is_there = given(env, "SLURMD_NODENAME").is_some_and(|own| own == host);
    let digest = Sha256::new().chain_update(b"LAPI job\0").chain_update(&identity.key).finalize();
    let mut job = [0; 16];
    job.copy_from_slice(&digest[..16]);
    let (task, tasks) = (identity.task, identity.tasks);
    Ok(Slurm {
        fence: Fence { job, task, tasks, opening, number: 0 },
        key: Key::of_this_task(env)?,
        host,
        is_there,
        found: None,
        own: Values::new(),
        table: Vec::new(),
    })
}

impl Exchange for Slurm {
    fn name(&self) -> &'static str {
        "Slurm"
    }

    fn publish(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.own.insert(key.to_owned(), value.to_vec());
        Ok(())
    }

    fn fence(&mut self, deadline: Instant) -> Result<()> {
        self.fence.number += 1;
        self.table = if self.fence.task == 0 {
            root::gather(&self.fence, &self.key, &self.own, deadline)?
        } else {
            self.connect_to_task_0(deadline)?
        };
        Ok(())
    }

    /// What is published can be read on the network.
    fn conceal(&self, published: Secret) -> Secret {
        derive(&self.key.secret, &[b"Slurm", &self.fence.job, &published])
    }

    fn lookup(&mut self, task: u32, key: &str) -> Result<Vec<u8>> {
        let value = self.table.get(task as usize).and_then(|values| values.get(key));
        value.cloned().ok_or_else(|| unpublished("Slurm", task, key))
    }
}

/// The ports at which task 0 may listen, in its order: between those that are reserved and those
/// that the kernel gives away.
fn ports(job: &[u8; 16]) -> impl Iterator<Item = u16> + use<> {
    let start = u16::from_le_bytes([job[0], job[1]]);
    (0..PORTS).map(move |at| 10_000 + start.wrapping_add(at.wrapping_mul(977)) % 22_000)
}

impl Slurm {
    fn connect_to_task_0(&mut self, deadline: Instant) -> Result<Vec<Values>> {
        let hosts = self.addresses()?;
        // Another user's server may have one of the ports, and a host may have addresses that
        // do not answer.
        let every = ports(&self.fence.job)
            .flat_map(|port| hosts.iter().map(move |host| SocketAddr::new(*host, port)));
        let found = self.found;
        let places: Vec<SocketAddr> =
            found.into_iter().chain(every.filter(|place| Some(*place) != found)).collect();
        let reached = reach(&places, self.key.secret, &self.fence.subject(), deadline);
        let reached = reached.map_err(|missed| self.not_found(&missed))?;
        self.found = Some(reached.place);
        let table = self.take_table(reached, deadline).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                late("Slurm: not all tasks have come to the start-up exchange in time")
            }
            // Task 0 waits for the other tasks, so its end is this task's.
            ErrorKind::UnexpectedEof => failed("Slurm: task 0 has ended the start-up exchange"),
            _ => failed(format!("Slurm: connection with task 0: {error}")),
        })?;
        table
            .filter(|table| table.len() == self.fence.tasks as usize)
            .ok_or_else(|| failed("Slurm: task 0 has sent something else than the values of all tasks"))
    }

    /// The values of all tasks, after this task's own; `None`: something else came.
    fn take_table(&self, reached: Reached, deadline: Instant) -> io::Result<Option<Vec<Values>>> {
        let Reached { stream, proofs, .. } = reached;
        reach::watch_over(&stream);
        let mut stream = Until { stream, deadline };
        stream.write_all(&proofs.sealed(By::Caller, &encode_values(&self.own)))?;
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST_FRAME {
            return Ok(None);
        }
        let mut frame = Vec::new();
        if stream.take(length as u64).read_to_end(&mut frame)? != length {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(proofs.opened(By::Called, &frame).and_then(decode_table))
    }

    /// Where to look for task 0.
    fn addresses(&self) -> Result<Vec<IpAddr>> {
        if self.is_there {
            return Ok(vec![Ipv4Addr::LOCALHOST.into()]);
        }
        let found = (self.host.as_str(), 0).to_socket_addrs();
        let found: Vec<IpAddr> = match found {
            Ok(found) => found.map(|address| address.ip()).collect(),
            Err(_) => Vec::new(),
        };
        let unknown = || failed(format!("Slurm: the host of task 0, {}, has no address here", self.host));
        if found.is_empty() { Err(unknown()) } else { Ok(found) }
    }

    #[cold]
    fn not_found(&self, missed: &Missed) -> Error {
        let host = &self.host;
        if missed.is_another_secret() {
            return failed(format!("Slurm: task 0 on {host} has another secret ({})", self.key.source));
        }
        late(format!("Slurm: task 0 is not to be found on host {host} ({missed})"))
    }
}

/// A connection on which no call waits longer than this.
struct Until {
    stream: TcpStream,
    deadline: Instant,
}

impl Until {
    fn left(&self) -> Option<Duration> {
        Some(self.deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)))
    }
}

impl Read for Until {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left())?;
        self.stream.read(bytes)
    }
}

impl Write for Until {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left())?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
