//! Slurm without PMI (`srun --mpi=none`): the tasks connect with task 0 over TCP.
//!
//! Task 0 is on the first host of `SLURM_STEP_NODELIST`, and listens at one of a few ports that
//! follow from the job's key: the first that is free. At each fence it takes the values of every
//! task, and gives each the table of all; connections end with the fence. A task tries the ports at
//! all addresses of that host ([`reach`]) until it finds the one that belongs to its job, and
//! begins with that one at the next fence. Task 0 has a connection to each task at a time, and
//! sends the whole table to each.
//!
//! [`session`] has the frames and proofs, [`key`] what is proved, [`root`] task 0's side.

pub(crate) mod host_list;
mod key;
mod root;
pub(crate) mod session;

use super::{Exchange, failed, late, unpublished};
use crate::base::random::random;
use crate::config::{Env, given};
use crate::error::{Error, Result};
use crate::job::identity::Identity;
use crate::job::reach::{self, Answer, Greeting, Reached};
use crate::wire::exchange::{Request, Values};
use hmac::{Hmac, Mac};
use key::{Key, Secret};
use session::{Initiator, Next, Refusal};
use sha2::{Digest, Sha256};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

/// How many ports a job may use.
const PORTS: u16 = 16;

/// One exchange.
pub(super) struct Slurm {
    /// The request of this task, but for the nonce and the number of the fence.
    request: Request,
    key: Key,
    /// Where task 0 is.
    host: String,
    /// Whether this task is there, too.
    is_there: bool,
    /// Where this task has found task 0.
    found: Option<SocketAddr>,
    fences: u32,
    own: Values,
    table: Vec<Values>,
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
        request: Request { job, task, tasks, opening, fence: 0, nonce: [0; 16] },
        key: key::of_this_task(env)?,
        host,
        is_there,
        found: None,
        fences: 0,
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
        self.fences += 1;
        let request = Request { fence: self.fences, nonce: random(), ..self.request };
        self.table = if request.task == 0 {
            root::gather(request, &self.key, &self.own, deadline)?
        } else {
            self.connect_to_task_0(request, deadline)?
        };
        Ok(())
    }

    /// What is published can be read on the network.
    fn conceal(&self, published: Secret) -> Secret {
        let mac = Hmac::<Sha256>::new_from_slice(&self.key.secret).expect("a key of any length is one");
        let mac =
            mac.chain_update(b"LAPI job secret\0").chain_update(self.request.job).chain_update(published);
        *mac.finalize().into_bytes().first_chunk().expect("32 bytes")
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
    fn connect_to_task_0(&mut self, request: Request, deadline: Instant) -> Result<Vec<Values>> {
        let hosts = self.addresses()?;
        // Another user's server may have one of the ports, and a host may have addresses that
        // do not answer.
        let every =
            ports(&request.job).flat_map(|port| hosts.iter().map(move |host| SocketAddr::new(*host, port)));
        let found = self.found;
        let places: Vec<SocketAddr> =
            found.into_iter().chain(every.filter(|place| Some(*place) != found)).collect();
        let greet = || Initiator::new(self.key.secret, request, &self.own);
        let reached = reach::reach(&places, greet, deadline).map_err(|missed| {
            let secret = missed.is_another_secret();
            if secret { self.other_secret() } else { self.not_found(&missed) }
        })?;
        self.found = Some(reached.place);
        let table = self.take_table(reached, deadline)?;
        let whole = table.len() == request.tasks as usize;
        whole
            .then_some(table)
            .ok_or_else(|| failed("Slurm: task 0 has the values of another number of tasks"))
    }

    /// The values of all tasks, after this task's own.
    fn take_table(&self, reached: Reached<Initiator>, deadline: Instant) -> Result<Vec<Values>> {
        let Reached { mut stream, greeting: mut initiator, next, .. } = reached;
        let broken = |error: std::io::Error| failed(format!("Slurm: connection with task 0: {error}"));
        let left = || deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        reach::watch_over(&stream);
        stream.set_write_timeout(Some(left())).and_then(|()| stream.write_all(&next)).map_err(broken)?;
        let mut bytes = vec![0; 64 << 10];
        loop {
            stream.set_read_timeout(Some(left())).map_err(broken)?;
            let got = match stream.read(&mut bytes) {
                // Task 0 waits for the other tasks, so its end is this task's.
                Ok(0) => return Err(failed("Slurm: task 0 has ended the start-up exchange")),
                Ok(got) => got,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) if Instant::now() >= deadline => {
                    return Err(late("Slurm: not all tasks have come to the start-up exchange in time"));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(error) => return Err(broken(error)),
            };
            match initiator.read(&bytes[..got]) {
                Ok(Next::Read) => {}
                Ok(Next::Done(table)) => return Ok(table),
                Err(Refusal::WrongKey) => return Err(self.other_secret()),
                Ok(Next::Write(_) | Next::Refuse(_)) | Err(_) => {
                    return Err(failed("Slurm: task 0 has sent something else than the values of all tasks"));
                }
            }
        }
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
    fn other_secret(&self) -> Error {
        failed(format!("Slurm: task 0 on {} has another secret ({})", self.host, self.key.source))
    }

    #[cold]
    fn not_found(&self, missed: &reach::Missed) -> Error {
        late(format!("Slurm: task 0 is not to be found on host {} ({missed})", self.host))
    }
}

impl Greeting for Initiator {
    fn read(&mut self, bytes: &[u8]) -> Answer {
        match Initiator::read(self, bytes) {
            Ok(Next::Read) => Answer::More,
            Ok(Next::Write(next)) => Answer::Proved(next),
            // So that task 0 knows, too.
            Ok(Next::Refuse(last)) => Answer::WrongSecret(last),
            Err(Refusal::WrongKey) => Answer::WrongSecret(Vec::new()),
            Ok(Next::Done(_)) | Err(_) => Answer::Stranger,
        }
    }
}

#[cfg(test)]
mod tests;
