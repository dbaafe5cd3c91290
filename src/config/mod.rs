//! The library's settings: every environment variable it reads, checked once, in one place.
//!
//! [`VARIABLES`] is the one table of names, meanings, defaults and ranges. [`Config::from_env`]
//! reads the environment when `LAPI_Init` runs and never before, since programs set variables
//! just ahead of that call. It checks every variable in every mode, also those that the chosen
//! transport has no use for, so that a mistake shows up in the first run and not in the first
//! run on a network.
//!
//! A variable that is set to nothing but blanks counts as unset. What the launcher says about the
//! job (task number, number of tasks, job key) is checked here as far as its form goes and
//! understood in `job::identity`.
//!
//! What the environment does not set, files may: see [`files`].

pub mod build;
pub mod files;
mod form;
mod table;
#[cfg(test)]
mod tests;
mod value;

use std::time::Duration;

use crate::abi::LAPI_ERR_BOTH_NETSTR_SET;
use crate::error::{Error, Result};

pub(crate) use form::common_tasks;
pub use form::secret;
pub use table::{MAX_TASKS, VARIABLES, ValueKind, Variable, variable};
pub(crate) use value::{given, number};

/// How the environment is looked up: the value of a variable, or `None` when it is not set.
///
/// Always passed in, so that nothing here depends on the state of the process.
pub type Env<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// How many messages to write, 0 (errors) to 6 (`MP_INFOLEVEL`).
pub fn info_level(env: &Env<'_>) -> Result<u32> {
    value::small(env, "MP_INFOLEVEL")
}

/// What the environment asks for. Every value is within its range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Which network library is wanted (`MP_EUILIB`), if any is named.
    pub euilib: Option<Euilib>,
    /// Which network interfaces or domains are wanted (`MP_EUIDEVICE`).
    pub euidevice: Option<String>,
    /// Which provider of libfabric is wanted (`LAPI_FABRIC_PROVIDER`).
    pub fabric_provider: Option<String>,
    /// Whether small packets of a stream go together, where each packet is a system call
    /// (`LAPI_COALESCE`).
    pub coalesce: bool,
    /// Which of libfabric's domains (`LAPI_FABRIC_DOMAIN`).
    pub fabric_domain: Option<String>,
    /// Threads are not woken by the network, and look once a millisecond (`LAPI_FABRIC_WAIT`).
    pub fabric_polls: bool,
    /// Whether tasks on one machine use shared memory (`LAPI_USE_SHM`).
    pub use_shm: UseShm,
    /// Messages of at least this many bytes may go by bulk transfer (`MP_BULK_MIN_MSG_SIZE`);
    /// never below 4096.
    pub bulk_min_msg_size: u64,
    /// The number of RDMA contexts of each other task that a program may hold (`MP_RDMA_COUNT`).
    pub rdma_count: u32,
    /// Whether bulk transfer is wanted (`MP_USE_BULK_XFER`).
    pub use_bulk_xfer: bool,
    /// Never give up on a silent task (`MP_DEBUG_NOTIMEOUT`).
    pub no_timeout: bool,
    /// Datagrams of UDP received before they are acknowledged, 1 to 31 (`MP_ACK_THRESH`).
    pub ack_thresh: u32,
    /// The longest time after which UDP sends something again (`MP_POLLING_INTERVAL`).
    pub polling_interval: Duration,
    /// Polling loops after which UDP sends something again at the latest, 1000 or more
    /// (`MP_RETRANSMIT_INTERVAL`).
    pub retransmit_interval: u32,
    /// Number of retransmission buffers (`MP_REXMIT_BUF_CNT`, the attribute NUM_REX_BUFS).
    pub rexmit_buf_cnt: u32,
    /// The number of messages that may be copied at a time as they are sent: `rexmit_buf_cnt` when
    /// that or the size is given, no limit otherwise.
    pub rexmit_limit: Option<u32>,
    /// Bytes in a retransmission buffer (`MP_REXMIT_BUF_SIZE`, the attribute REX_BUF_SZ).
    pub rexmit_buf_size: u32,
    /// Messages of up to this many bytes, header and data, are copied when they are sent (the
    /// attribute BUF_CP_SIZE): 128, or `MP_REXMIT_BUF_SIZE` when that is set.
    pub buf_cp_size: u32,
    /// What protects datagrams (`LAPI_NET_SECURITY`).
    pub net_security: NetSecurity,
    /// Bytes in a datagram of UDP, at most (`MP_UDP_PACKET_SIZE`).
    pub udp_packet_size: u32,
    /// How many messages to write, 0 (errors) to 6 (`MP_INFOLEVEL`).
    pub info_level: u32,
    /// How many network instances a task gets (`MP_INSTANCES`).
    pub instances: Instances,
    /// The internet network statement (`MP_LAPI_INET_ADDR`). Never together with `MP_LAPI_NETWORK`.
    pub inet_addr: Option<String>,
    /// Whether to copy across address spaces (`LAPI_SHM_ATTACH`).
    pub shm_attach: ShmAttach,
    /// How large messages go through shared memory (`LAPI_SHM_BULK`).
    pub shm_bulk: ShmBulk,
    /// How many times a waiting call polls before it yields (`LAPI_SPIN`); `None`: the
    /// library decides.
    pub spin: Option<u32>,
    /// How long `LAPI_Init` waits for the other tasks (`LAPI_INIT_TIMEOUT`).
    pub init_timeout: Duration,
    /// After how many seconds without anything moving a waiting call has its task report
    /// (`LAPI_STALL_SECONDS`); 0: never.
    pub stall_seconds: u32,
    /// The signal that makes a task report (`LAPI_REPORT_SIGNAL`).
    pub report_signal: Option<i32>,
    /// Whether a fault is described (`LAPI_BACKTRACE`).
    pub backtrace: bool,
    /// The tasks that wait for a debugger (`MP_ATTACH`); `Some(None)`: all.
    pub attach: Option<Option<Vec<u32>>>,
    /// What only the tasks of this job know (`LAPI_JOB_SECRET`).
    pub job_secret: Option<JobSecret>,
}

/// The values of `LAPI_NET_SECURITY`. The tasks of a job have the same: the number of the mode is
/// in the keys, so that those with different ones do not connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetSecurity {
    /// No stranger to the job can make a datagram, or change one. It is also encrypted today,
    /// because that costs less than a tag alone (docs/design/0018-network-security.md); only
    /// [`Self::Encrypt`] promises it.
    Auth,
    /// No stranger to the job can read the content, either.
    Encrypt,
    /// The tag is a constant of the connection and direction: datagrams of other jobs and of
    /// earlier connections are refused, and those that are made by a host that cannot read the
    /// datagrams of this one. A host on the way can read and change everything.
    None,
}

impl NetSecurity {
    /// The value as the user writes it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Encrypt => "encrypt",
            Self::None => "none",
        }
    }
}

/// The values of `MP_EUILIB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Euilib {
    /// The internet protocols.
    Ip,
    /// User space: the network adapter is driven without the kernel.
    Us,
}

/// The values of `LAPI_USE_SHM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseShm {
    /// Shared memory between tasks of one machine, the network between machines.
    Yes,
    /// The network between all tasks.
    No,
    /// Shared memory between all tasks, or `LAPI_Init` fails.
    Only,
}

/// The values of `MP_INSTANCES`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instances {
    /// As many as the system has.
    Max,
    /// A number of them.
    Count(u32),
}

/// The values of `LAPI_SHM_ATTACH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShmAttach {
    /// Copy across address spaces if a first copy shows that the system allows it.
    Yes,
    /// Do not try.
    No,
    /// Behave as if the kernel refused every such copy with EPERM: for tests of what happens then.
    Deny,
}

/// The values of `LAPI_SHM_BULK`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShmBulk {
    /// Packets to a task that looks for them, one copy to one that does not.
    Auto,
    /// Through shared buffers, with both processors copying.
    Packets,
    /// By one copy across address spaces.
    Attach,
}

/// The job's secret. It does not show itself in messages.
#[derive(Clone, PartialEq, Eq)]
pub struct JobSecret([u8; 16]);

impl JobSecret {
    /// The 16 bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// What no variable gives: the tasks have it from elsewhere.
impl From<[u8; 16]> for JobSecret {
    fn from(secret: [u8; 16]) -> Self {
        Self(secret)
    }
}

impl std::fmt::Debug for JobSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JobSecret(..)")
    }
}

/// What is copied when it is sent, unless `MP_REXMIT_BUF_SIZE` says otherwise.
const COPY_SIZE: u32 = 128;

/// What holds where nothing is set.
impl Default for Config {
    fn default() -> Self {
        Self::from_env(&|_| None).expect("defaults that the table allows")
    }
}

impl Config {
    /// Reads and checks every variable of [`VARIABLES`].
    ///
    /// # Errors
    /// A value outside its range: the code that the table gives for the variable, and a sentence
    /// that names the variable, the value and the range. Two network statements:
    /// `LAPI_ERR_BOTH_NETSTR_SET`.
    pub fn from_env(env: &Env<'_>) -> Result<Self> {
        for variable in VARIABLES {
            value::check(variable, env)?;
        }

        let inet_addr = given(env, "MP_LAPI_INET_ADDR");
        if inet_addr.is_some() && given(env, "MP_LAPI_NETWORK").is_some() {
            return Err(Error::new(
                LAPI_ERR_BOTH_NETSTR_SET,
                "MP_LAPI_NETWORK and MP_LAPI_INET_ADDR are both set; only one of them may be",
            ));
        }

        let rexmit_buf_size = value::small(env, "MP_REXMIT_BUF_SIZE")?;
        let rexmit_buf_cnt = value::small(env, "MP_REXMIT_BUF_CNT")?;
        let limited =
            ["MP_REXMIT_BUF_CNT", "MP_REXMIT_BUF_SIZE"].iter().any(|name| given(env, name).is_some());
        Ok(Self {
            euilib: match given(env, "MP_EUILIB").as_deref() {
                None => None,
                Some("us") => Some(Euilib::Us),
                Some(_) => Some(Euilib::Ip),
            },
            euidevice: given(env, "MP_EUIDEVICE"),
            fabric_provider: given(env, "LAPI_FABRIC_PROVIDER"),
            coalesce: value::word(env, "LAPI_COALESCE")? == "yes",
            fabric_domain: given(env, "LAPI_FABRIC_DOMAIN"),
            fabric_polls: value::word(env, "LAPI_FABRIC_WAIT")? == "poll",
            use_shm: match value::word(env, "LAPI_USE_SHM")? {
                "no" => UseShm::No,
                "only" => UseShm::Only,
                _ => UseShm::Yes,
            },
            bulk_min_msg_size: value::setting(env, "MP_BULK_MIN_MSG_SIZE")?,
            rdma_count: form::rdma_count(&value::text(env, "MP_RDMA_COUNT")?).unwrap_or(0),
            use_bulk_xfer: value::yes(env, "MP_USE_BULK_XFER")?,
            no_timeout: value::switched_on(env, "MP_DEBUG_NOTIMEOUT"),
            ack_thresh: value::small(env, "MP_ACK_THRESH")?,
            polling_interval: Duration::from_micros(value::setting(env, "MP_POLLING_INTERVAL")?),
            retransmit_interval: value::small(env, "MP_RETRANSMIT_INTERVAL")?,
            rexmit_buf_cnt,
            rexmit_limit: limited.then_some(rexmit_buf_cnt),
            rexmit_buf_size,
            buf_cp_size: if given(env, "MP_REXMIT_BUF_SIZE").is_some() { rexmit_buf_size } else { COPY_SIZE },
            net_security: match value::word(env, "LAPI_NET_SECURITY")? {
                "encrypt" => NetSecurity::Encrypt,
                "none" => NetSecurity::None,
                _ => NetSecurity::Auth,
            },
            udp_packet_size: value::small(env, "MP_UDP_PACKET_SIZE")?,
            info_level: info_level(env)?,
            instances: value::small_or_word(env, "MP_INSTANCES")?.map_or(Instances::Max, Instances::Count),
            inet_addr,
            shm_attach: match value::word(env, "LAPI_SHM_ATTACH")? {
                "no" => ShmAttach::No,
                "deny" => ShmAttach::Deny,
                _ => ShmAttach::Yes,
            },
            shm_bulk: match value::word(env, "LAPI_SHM_BULK")? {
                "pipeline" => ShmBulk::Packets,
                "attach" => ShmBulk::Attach,
                _ => ShmBulk::Auto,
            },
            spin: value::small_or_word(env, "LAPI_SPIN")?,
            init_timeout: Duration::from_secs(value::setting(env, "LAPI_INIT_TIMEOUT")?),
            stall_seconds: value::small(env, "LAPI_STALL_SECONDS")?,
            report_signal: form::report_signal(&value::text(env, "LAPI_REPORT_SIGNAL")?).flatten(),
            backtrace: value::yes(env, "LAPI_BACKTRACE")?,
            attach: given(env, "MP_ATTACH").and_then(|text| form::tasks(&text)),
            job_secret: given(env, "LAPI_JOB_SECRET").and_then(|text| form::secret(&text)).map(JobSecret),
        })
    }
}

/// Whether `LAPI_VERIFY_DGSP` asks for verification right now: a program may change its mind
/// between two registrations.
pub fn verify_dgsp(env: &Env<'_>) -> bool {
    value::yes(env, "LAPI_VERIFY_DGSP").unwrap_or(false)
}

/// Those of `names` that start with `LAPI_` and mean nothing to this library, sorted: most
/// likely misspelt.
///
/// Unknown names that start with `MP_` are left alone: those belong to a family of which LAPI is
/// only one member.
pub fn unknown_names<S: AsRef<str>>(names: impl Iterator<Item = S>) -> Vec<String> {
    let mut unknown: Vec<String> = names
        .map(|name| name.as_ref().to_owned())
        .filter(|name| name.starts_with("LAPI_") && variable(name).is_none())
        .collect();
    unknown.sort_unstable();
    unknown.dedup();
    unknown
}

/// A name that differs from a known one in no more than this many letters is taken for a
/// misspelling of it.
const NEAR: usize = 2;

/// Those of [`unknown_names`] that look like a known name, each with that name. Other programs may
/// have variables that begin with `LAPI_` too.
pub fn misspelt_names<S: AsRef<str>>(names: impl Iterator<Item = S>) -> Vec<(String, &'static str)> {
    unknown_names(names).into_iter().filter_map(|name| nearest(&name).map(|known| (name, known))).collect()
}

/// The known variable whose name is most like this one; `None` when none is enough like it.
pub fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_uppercase();
    let known = VARIABLES.iter().map(|variable| (strsim::osa_distance(&name, variable.name), variable.name));
    known.filter(|(distance, _)| *distance <= NEAR).min().map(|(_, known)| known)
}

/// A variable with its current value: for `lapi_info` and for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Which variable.
    pub name: &'static str,
    /// The variable's value, or the default. A secret is not shown.
    pub value: String,
    /// Where the value comes from.
    pub origin: Origin,
    /// Why `LAPI_Init` will not take the value, if it will not.
    pub refused: Option<Error>,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nothing sets it, or only to nothing.
    Default,
    /// The environment.
    Environment,
    /// A file of settings.
    File(files::FileLine),
}

/// Every variable of [`VARIABLES`] with its current value in the environment or else in files,
/// wrong values included.
pub fn settings(env: &Env<'_>, files: &files::Files) -> Vec<Setting> {
    VARIABLES
        .iter()
        .map(|variable| {
            let line = if env(variable.name).is_none() { files.for_library(variable.name) } else { None };
            let given = given(&files.beside(env), variable.name);
            let origin = match (&given, line) {
                (None, _) => Origin::Default,
                (Some(_), Some(line)) => Origin::File(line.place.clone()),
                (Some(_), None) => Origin::Environment,
            };
            let value = match given {
                Some(_) if variable.secret => "(hidden)".to_owned(),
                Some(value) => value,
                None => variable.default.to_owned(),
            };
            let refused = line.map_or_else(|| value::check(variable, env).err(), |line| line.check().err());
            Setting { name: variable.name, value, origin, refused }
        })
        .collect()
}
