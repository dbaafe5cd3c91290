//! Slurm without PMI (`srun --mpi=none`): the tasks connect with task 0 over TCP.
//!
//! Task 0 is on the first host of `SLURM_STEP_NODELIST`, and listens at one of a few ports that follow from the job's key: the first that
//! is free. At each fence it takes the values of every task, and gives each the table of all; connections end with the fence. A
//! task tries the ports in turn until it finds the one that belongs to its job. Task 0 has a connection to each task at a time, and sends
//! the whole table to each.
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
use crate::wire::exchange::{Request, Values};
use hmac::{Hmac, Mac};
use key::{Key, Secret};
use session::{Initiator, Next, Refusal};
use sha2::{Digest, Sha256};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// How many ports a job may use.
const PORTS: u16 = 16;
/// How long a task waits for a connection, and for the proof at one of them: what listens there may be something else.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Between two rounds over the ports.
const PAUSE: Duration = Duration::from_millis(30);

/// One exchange.
pub(super) struct Slurm {
    /// The request of this task, but for the nonce and the number of the fence.
    request: Request,
    key: Key,
    /// Where task 0 is.
    host: String,
    /// Whether this task is there, too.
    is_there: bool,
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

/// The ports at which task 0 may listen, in its order: between those that are reserved and those that the kernel gives away.
fn ports(job: &[u8; 16]) -> impl Iterator<Item = u16> + use<> {
    let start = u16::from_le_bytes([job[0], job[1]]);
    (0..PORTS).map(move |at| 10_000 + start.wrapping_add(at.wrapping_mul(977)) % 22_000)
}

impl Slurm {
    fn connect_to_task_0(&self, request: Request, deadline: Instant) -> Result<Vec<Values>> {
        let hosts = self.addresses()?;
        // Another user's server may have one of the ports.
        let mut refused = false;
        loop {
            for port in ports(&request.job) {
                for host in &hosts {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() && refused {
                        return Err(self.other_secret());
                    }
                    if left.is_zero() {
                        return Err(late(format!("Slurm: task 0 is not to be found on host {}", self.host)));
                    }
                    match self.try_at(SocketAddr::new(*host, port), request, deadline) {
                        Ok(table) if table.len() == request.tasks as usize => return Ok(table),
                        Ok(table) => {
                            return Err(failed(format!(
                                "Slurm: task 0 has the values of {} tasks",
                                table.len()
                            )));
                        }
                        Err(Miss::Final(error)) => return Err(error),
                        // It may listen at the next port, or later.
                        Err(Miss::NotThere) => {}
                        Err(Miss::OtherSecret) => refused = true,
                    }
                }
            }
            std::thread::sleep(PAUSE);
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

    fn try_at(
        &self,
        address: SocketAddr,
        request: Request,
        deadline: Instant,
    ) -> std::result::Result<Vec<Values>, Miss> {
        let soon = deadline.min(Instant::now() + TIMEOUT);
        let left = |end: Instant| end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let mut stream = TcpStream::connect_timeout(&address, left(soon))?;
        stream.set_write_timeout(Some(left(soon)))?;
        stream.set_read_timeout(Some(left(soon)))?;
        let (mut initiator, first) = Initiator::new(self.key.secret, request, &self.own);
        stream.write_all(&first)?;
        let mut has_proved = false;
        let mut bytes = vec![0; 64 << 10];
        loop {
            let end = if has_proved { deadline } else { soon };
            stream.set_read_timeout(Some(left(end)))?;
            let got = match stream.read(&mut bytes) {
                // Task 0 waits for the other tasks, so its end is this task's.
                Ok(0) if has_proved => {
                    return Err(Miss::Final(failed("Slurm: task 0 has ended the start-up exchange")));
                }
                Ok(0) => return Err(Miss::NotThere),
                Ok(got) => got,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if has_proved && Instant::now() >= deadline => {
                    let _ = error;
                    return Err(Miss::Final(late(
                        "Slurm: not all tasks have come to the start-up exchange in time",
                    )));
                }
                Err(error) if has_proved && is_late(&error) => continue,
                Err(error) if has_proved => {
                    return Err(Miss::Final(failed(format!("Slurm: connection with task 0: {error}"))));
                }
                Err(_) => return Err(Miss::NotThere),
            };
            match initiator.read(&bytes[..got]) {
                Ok(Next::Read) => {}
                Ok(Next::Write(more)) => {
                    has_proved = true;
                    stream.set_write_timeout(Some(left(deadline)))?;
                    stream.write_all(&more)?;
                }
                Ok(Next::Refuse(last)) => {
                    // So that task 0 knows, too.
                    let _ = stream.write_all(&last);
                    return Err(Miss::OtherSecret);
                }
                Ok(Next::Done(table)) => return Ok(table),
                Err(Refusal::WrongKey) => return Err(Miss::OtherSecret),
                Err(_) => return Err(Miss::NotThere),
            }
        }
    }

    #[cold]
    fn other_secret(&self) -> Error {
        failed(format!("Slurm: task 0 on {} has another secret ({})", self.host, self.key.source))
    }
}

fn is_late(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Why a place was the wrong one.
enum Miss {
    /// Task 0 does not listen there, or not yet.
    NotThere,
    /// It uses this protocol, and does not know the secret.
    OtherSecret,
    /// Task 0 listens there, and this is the end.
    Final(Error),
}

impl From<std::io::Error> for Miss {
    fn from(_: std::io::Error) -> Self {
        Self::NotThere
    }
}

#[cfg(test)]
mod tests;
