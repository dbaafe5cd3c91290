//! The table of environment variables.

use std::ffi::c_int;
use std::fmt;

use super::form;
use crate::abi::{
    LAPI_ERR_CSS_LOAD_FAILED, LAPI_ERR_MSG_API, LAPI_ERR_NO_ENV_VAR, LAPI_ERR_NO_NETSTR_SET,
    LAPI_ERR_SHM_SETUP, LAPI_ERR_UDP_PKT_SZ, LAPI_ERR_UNKNOWN,
};

/// The largest job, in tasks.
pub const MAX_TASKS: u32 = 16_384;

const INT_MAX: u64 = c_int::MAX as u64;

/// One environment variable.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// The variable's name.
    pub name: &'static str,
    /// What it decides, in one sentence.
    pub meaning: &'static str,
    /// What holds when it is not set, written as a user would write it. Empty: nothing holds.
    pub default: &'static str,
    /// Which values it takes.
    pub kind: ValueKind,
    /// The LAPI error code of a value that it does not take.
    pub code: c_int,
    /// Whether its value must not be shown.
    pub secret: bool,
}

impl Variable {
    /// Whether a file of settings cannot have it: it says which task of which job a process is, or
    /// which files there are.
    pub(super) fn only_in_environment(&self) -> bool {
        matches!(self.kind, ValueKind::LauncherNumber | ValueKind::LauncherText)
            || self.name == "LAPI_CONFIG"
            || self.code == LAPI_ERR_NO_ENV_VAR
            || self.name == "MP_COMMON_TASKS"
    }
}

/// Which values a variable takes.
#[derive(Clone, Copy, Debug)]
pub enum ValueKind {
    /// One of some words, in capitals or not.
    Word(&'static [&'static str]),
    /// One of some words, spelled exactly so.
    ExactWord(&'static [&'static str]),
    /// A whole number in a range, both ends included.
    Integer(u64, u64),
    /// A number of bytes in a range; K, M and G after it multiply by 1024, 1024², 1024³.
    Size(u64, u64),
    /// A number of bytes, as [`ValueKind::Size`], of any sign. Less than the first of these counts
    /// as it; the second is the most.
    SizeFrom(u64, u64),
    /// A word, or a whole number in a range.
    WordOrInteger(&'static str, u64, u64),
    /// Anything but `no` switches it on.
    Switch,
    /// Any text.
    Text,
    /// Text of a form, with the test for it.
    Form(&'static str, fn(&str) -> bool),
    /// A number that a launcher puts there. Not checked unless the task's place in the job is
    /// taken from it.
    LauncherNumber,
    /// A text that a launcher puts there.
    LauncherText,
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(words) | Self::ExactWord(words) => f.write_str(&words.join(" | ")),
            Self::Integer(min, max) => write!(f, "a whole number from {min} to {max}"),
            Self::Size(min, max) => {
                write!(f, "a number of bytes from {min} to {max} (K, M and G may follow it)")
            }
            Self::SizeFrom(min, _) => {
                write!(f, "a number of bytes (K, M and G may follow it); less than {min} counts as {min}")
            }
            Self::WordOrInteger(word, min, max) => write!(f, "{word}, or a whole number from {min} to {max}"),
            Self::Switch => f.write_str("any text; only \"no\" leaves it off"),
            Self::Text => f.write_str("any text"),
            Self::Form(form, _) => f.write_str(form),
            Self::LauncherNumber => f.write_str("a whole number, set by the launcher"),
            Self::LauncherText => f.write_str("set by the launcher"),
        }
    }
}

/// The variable of that name, if the library reads it.
pub fn variable(name: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|variable| variable.name == name)
}

const YES_NO: ValueKind = ValueKind::Word(&["yes", "no"]);
const NUMBER: ValueKind = ValueKind::LauncherNumber;
const TEXT: ValueKind = ValueKind::LauncherText;

/// Every environment variable that the library reads.
///
/// The code of a wrong value is one that the man page of LAPI_Init has: `LAPI_ERR_MSG_API` and
/// `LAPI_ERR_UDP_PKT_SZ` where the manual says so, `LAPI_ERR_CSS_LOAD_FAILED` for the choice of the
/// communication library, `LAPI_ERR_SHM_SETUP` for what concerns shared memory,
/// `LAPI_ERR_NO_NETSTR_SET` for a network statement that names no network, and `LAPI_ERR_UNKNOWN`
/// for every other setting. What says which task this is has `LAPI_ERR_NO_ENV_VAR`, which the
/// manual has for variables that are missing.
pub const VARIABLES: &[Variable] = &[
    var(
        "MP_MSG_API",
        "Which message-passing interfaces the program uses; LAPI must be among them.",
        "lapi",
        ValueKind::Word(&["lapi", "lapi,mpi", "mpi,lapi", "mpi_lapi"]),
        LAPI_ERR_MSG_API,
    ),
    var(
        "MP_EUILIB",
        "The way to tasks on other machines: UDP, or libfabric.",
        "",
        ValueKind::ExactWord(&["ip", "us"]),
        LAPI_ERR_CSS_LOAD_FAILED,
    ),
    var(
        "MP_EUIDEVICE",
        "The network interface to use, or the domain as libfabric names it; sn_all: all networks, over libfabric; sn_single: the best one.",
        "",
        ValueKind::Text,
        LAPI_ERR_CSS_LOAD_FAILED,
    ),
    var(
        "LAPI_FABRIC_PROVIDER",
        "The provider of libfabric to use, by its full name, such as tcp;ofi_rxm.",
        "",
        ValueKind::Text,
        LAPI_ERR_CSS_LOAD_FAILED,
    ),
    var(
        "LAPI_FABRIC_DOMAIN",
        "The domain of the provider to use.",
        "",
        ValueKind::Text,
        LAPI_ERR_CSS_LOAD_FAILED,
    ),
    var(
        "LAPI_COALESCE",
        "Whether small packets of a stream to one task go together, where each packet is a system call.",
        "yes",
        ValueKind::Word(&["yes", "no"]),
        LAPI_ERR_UNKNOWN,
    ),
    var(
        "LAPI_FABRIC_WAIT",
        "Whether waiting threads sleep until the network wakes them, or look once a millisecond.",
        "sleep",
        ValueKind::Word(&["sleep", "poll"]),
        LAPI_ERR_CSS_LOAD_FAILED,
    ),
    var(
        "LAPI_USE_SHM",
        "Whether tasks on one machine use shared memory; with `only`, nothing else will do.",
        "yes",
        ValueKind::Word(&["yes", "no", "only"]),
        LAPI_ERR_SHM_SETUP,
    ),
    var(
        "LAPI_VERIFY_DGSP",
        "Whether each DGSP is checked when it is registered; looked up at every registration.",
        "no",
        YES_NO,
        LAPI_ERR_UNKNOWN,
    ),
    var(
        "MP_BULK_MIN_MSG_SIZE",
        "The smallest message, in bytes, for bulk transfer; less than 4K counts as 4K.",
        "150K",
        ValueKind::SizeFrom(4096, i64::MAX as u64),
        LAPI_ERR_UNKNOWN,
    ),
    var(
        "MP_RDMA_COUNT",
        "How many RDMA contexts of each other task a program may hold (the first number); 0: no RDMA transfers.",
        "0",
        ValueKind::Form("N, or N,M", |text| form::rdma_count(text).is_some()),
        LAPI_ERR_UNKNOWN,
    ),
    var("MP_USE_BULK_XFER", "Whether bulk transfer is wanted.", "no", YES_NO, LAPI_ERR_UNKNOWN),
    var(
        "MP_DEBUG_NOTIMEOUT",
        "Wait for a silent task for ever, so that a debugger may hold it.",
        "no",
        ValueKind::Switch,
        LAPI_ERR_UNKNOWN,
    ),
    var("MP_LAPI_TRACE_LEVEL", "How much to trace.", "0", ValueKind::Integer(0, 5), LAPI_ERR_UNKNOWN),
    var(
        "MP_ACK_THRESH",
        "How many datagrams of UDP are received before they are acknowledged together.",
        "30",
        ValueKind::Integer(1, 31),
        LAPI_ERR_UNKNOWN,
    ),
    var(
        "MP_POLLING_INTERVAL",
        "Microseconds after which something that UDP has lost is sent again, at the latest.",
        "400000",
        ValueKind::Integer(10_001, INT_MAX),
        LAPI_ERR_UNKNOWN,
    ),
    var(
        "MP_RETRANSMIT_INTERVAL",
        "Polling loops after which something that UDP has lost is sent again, at the latest: of this and MP_POLLING_INTERVAL the smaller one holds.",
        "1000000",
        ValueKind::Integer(1000, INT_MAX),
        LAPI_ERR_UNKNOWN,
    ),
    var(
        "MP_REXMIT_BUF_CNT",
        "How many retransmission buffers a task has; when this or the size is set, also the largest number of messages that are copied at a time.",
        "128",
        ValueKind::Integer(1, INT_MAX),
        LAPI_ERR_UNKNOWN,
    ),
    var(
        "MP_REXMIT_BUF_SIZE",
        "Bytes in a retransmission buffer; when set, also the largest message that is copied as it is sent \
         (128 bytes otherwise).",
        "16384",
        ValueKind::Size(1, INT_MAX),
        LAPI_ERR_UNKNOWN,
    ),
    var(
        "LAPI_NET_SECURITY",
        "What protects datagrams of UDP: auth, no stranger makes or changes one; encrypt, none reads one; none.",
        "auth",
        ValueKind::Word(&["auth", "encrypt", "none"]),
        LAPI_ERR_CSS_LOAD_FAILED,
    ),
    var(
        "MP_UDP_PACKET_SIZE",
        "Bytes in a datagram of UDP; fewer where an interface of the tasks takes fewer.",
        "8192",
        ValueKind::Size(1024, 65_536),
        LAPI_ERR_UDP_PKT_SZ,
    ),
    var(
        "MP_INFOLEVEL",
        "Which messages are written: 0 errors, 1 also warnings, 2 also information, 3 to 6 also what each task has, and has moved.",
        "1",
        ValueKind::Integer(0, 6),
        LAPI_ERR_UNKNOWN,
    ),
    var(
        "MP_INSTANCES",
        "How many interfaces a task uses on a network; bulk transfer is striped over them, and one that fails is replaced.",
        "1",
        ValueKind::WordOrInteger("max", 1, INT_MAX),
        LAPI_ERR_UNKNOWN,
    ),
    var(
        "MP_LAPI_NETWORK",
        "The adapter windows of this task, for user-space communication without a launcher.",
        "",
        ValueKind::Form("@COUNT:WINDOW,ADAPTER[:WINDOW,ADAPTER...]", form::is_network_statement),
        LAPI_ERR_NO_NETSTR_SET,
    ),
    var(
        "MP_LAPI_INET_ADDR",
        "The internet addresses at which tasks may receive; unset: all.",
        "",
        ValueKind::Form("@COUNT:ADDRESS,ADAPTER[:ADDRESS,ADAPTER...]", form::is_network_statement),
        LAPI_ERR_NO_NETSTR_SET,
    ),
    var(
        "MP_CHILD",
        "Which task of the job this is.",
        "",
        ValueKind::Integer(0, MAX_TASKS as u64 - 1),
        LAPI_ERR_NO_ENV_VAR,
    ),
    var(
        "MP_PROCS",
        "How many tasks the job has.",
        "",
        ValueKind::Integer(1, MAX_TASKS as u64),
        LAPI_ERR_NO_ENV_VAR,
    ),
    var(
        "MP_PARTITION",
        "The job's key: the same in all tasks of a job and in no other job.",
        "",
        ValueKind::Text,
        LAPI_ERR_NO_ENV_VAR,
    ),
    var(
        "MP_COMMON_TASKS",
        "How many other tasks are on this machine, and which.",
        "",
        ValueKind::Form("COUNT[:TASK...]", |text| form::common_tasks(text).is_some()),
        LAPI_ERR_SHM_SETUP,
    ),
    var(
        "LAPI_SHM_ATTACH",
        "Whether to copy across address spaces: if the kernel allows it, not at all, or as if it did not.",
        "yes",
        ValueKind::Word(&["yes", "no", "deny"]),
        LAPI_ERR_SHM_SETUP,
    ),
    var(
        "LAPI_SHM_BULK",
        "How large messages go through shared memory: by what the target does, through buffers, or across address spaces.",
        "auto",
        ValueKind::Word(&["auto", "pipeline", "attach"]),
        LAPI_ERR_SHM_SETUP,
    ),
    var(
        "LAPI_SPIN",
        "How many times a waiting call polls before it yields.",
        "auto",
        ValueKind::WordOrInteger("auto", 0, INT_MAX),
        LAPI_ERR_UNKNOWN,
    ),
    var(
        "LAPI_INIT_TIMEOUT",
        "After how many seconds a task that has not called LAPI_Init counts as dead.",
        "300",
        ValueKind::Integer(1, 86_400),
        LAPI_ERR_UNKNOWN,
    ),
    var(
        "LAPI_STALL_SECONDS",
        "After how many seconds without progress a call that waits makes its task report why; 0: never.",
        "300",
        ValueKind::Integer(0, 31_536_000),
        LAPI_ERR_UNKNOWN,
    ),
    var(
        "LAPI_REPORT_SIGNAL",
        "The signal that makes a task report what each of its threads waits for.",
        "USR2",
        ValueKind::Form("none, or the name or number of a signal", |text| {
            form::report_signal(text).is_some()
        }),
        LAPI_ERR_UNKNOWN,
    ),
    var(
        "LAPI_BACKTRACE",
        "Whether a task that a fault ends says what it was doing, and its stack; poe sets yes.",
        "no",
        YES_NO,
        LAPI_ERR_UNKNOWN,
    ),
    var(
        "MP_ATTACH",
        "The tasks in which LAPI_Init waits until a debugger is attached.",
        "",
        ValueKind::Form("all, or numbers of tasks with commas between them", |text| {
            form::tasks(text).is_some()
        }),
        LAPI_ERR_UNKNOWN,
    ),
    var(
        "LAPI_CONFIG",
        "The files of settings, by colons; the first one that has a variable counts; none: no file.",
        "",
        ValueKind::Text,
        LAPI_ERR_UNKNOWN,
    ),
    launcher("LAPI_CONFIG_READ", TEXT, "poe: the settings that it has read from files, with file and line."),
    launcher(
        "LAPI_JOB_FD",
        TEXT,
        "poe: the file in which tasks count their openings of LAPI and exchange addresses, and its inode.",
    ),
    launcher(
        "LAPI_REPORT_FD",
        TEXT,
        "poe: the socket for reports, its inode, and looks where it is for lapi_top alone.",
    ),
    Variable {
        secret: true,
        ..var(
            "LAPI_JOB_SECRET",
            "The secret of this job's tasks; made by poe, and without a launcher by the user.",
            "",
            ValueKind::Form("32 hexadecimal digits", |text| form::secret(text).is_some()),
            LAPI_ERR_NO_ENV_VAR,
        )
    },
    launcher("OMPI_COMM_WORLD_RANK", NUMBER, "Open MPI: which task this is."),
    launcher("OMPI_COMM_WORLD_SIZE", NUMBER, "Open MPI: how many tasks the job has."),
    launcher("OMPI_COMM_WORLD_LOCAL_SIZE", NUMBER, "Open MPI: how many of them are on this machine."),
    launcher("PMI_RANK", NUMBER, "PMI (MPICH, Slurm): which task this is."),
    launcher("PMI_SIZE", NUMBER, "PMI: how many tasks the job has."),
    launcher("PMI_JOBID", TEXT, "PMI: the job's key."),
    launcher("PMI_FD", NUMBER, "PMI: the descriptor for the exchange at start-up."),
    launcher("MPI_LOCALNRANKS", NUMBER, "MPICH: how many tasks are on this machine."),
    launcher("PMIX_RANK", NUMBER, "PMIx: which task this is."),
    launcher("PMIX_NAMESPACE", TEXT, "PMIx: the job's key."),
    launcher("SLURM_PROCID", NUMBER, "Slurm: which task of the step this is."),
    launcher("SLURM_NTASKS", NUMBER, "Slurm: how many tasks the step has."),
    launcher(
        "SLURM_STEP_NUM_TASKS",
        NUMBER,
        "Slurm: how many tasks the step has, where this is given for the step alone.",
    ),
    launcher("SLURM_JOB_ID", TEXT, "Slurm: the allocation; with the step, the job's key."),
    launcher("SLURM_STEP_ID", NUMBER, "Slurm: the step, when the task was started by srun."),
    launcher("SLURM_NODEID", NUMBER, "Slurm: which of the step's machines this is."),
    launcher("SLURM_STEP_TASKS_PER_NODE", TEXT, "Slurm: how many tasks each of the step's machines has."),
    launcher("SLURM_STEP_NODELIST", TEXT, "Slurm: the step's machines; task 0 is on the first one."),
    launcher("SLURMD_NODENAME", TEXT, "Slurm: the name of this machine."),
];

const fn var(
    name: &'static str,
    meaning: &'static str,
    default: &'static str,
    kind: ValueKind,
    code: c_int,
) -> Variable {
    Variable { name, meaning, default, kind, code, secret: false }
}

const fn launcher(name: &'static str, kind: ValueKind, meaning: &'static str) -> Variable {
    var(name, meaning, "", kind, LAPI_ERR_NO_ENV_VAR)
}
