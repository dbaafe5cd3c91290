//! The one table of what can be asked of `poe`: flag, variable, values, default, meaning.

use openlapi::config::VARIABLES;
use openlapi::config::files::Files;
use openlapi::transport::shm::segment::MAX_TASKS;

use super::affinity::Affinity;
use super::error::Error;
use super::input::StdinMode;
use super::output::StdoutMode;

/// One thing that can be asked for, by its flag or by its variable. The flag wins.
pub(super) struct Setting {
    /// The flags without their dash; the first is the usual one. Some settings have a
    /// variable only.
    pub flags: &'static [&'static str],
    /// Empty: it has a flag only.
    pub variable: &'static str,
    pub values: Values,
    /// The value when neither flag nor variable is given. Empty: none, or see the meaning.
    pub default: &'static str,
    pub meaning: &'static str,
    /// Accepted, because IBM's poe has it, and nothing comes of it.
    pub is_ignored: bool,
}

/// Which values a setting takes.
pub(super) enum Values {
    /// A whole number in this range.
    Number(u64, u64),
    /// yes or no.
    YesNo,
    /// yes or no; the flag alone means yes.
    Switch,
    /// One of these words, in either case.
    OneOf(&'static [&'static str]),
    /// One of these words, as they are: so the library has them.
    Exact(&'static [&'static str]),
    /// What this function accepts; the text describes it.
    Checked(&'static str, fn(&str) -> bool),
    /// Any text; the name is for the help.
    Text(&'static str),
    /// A variable for the tasks. The flag may be given several times.
    Export,
}

use Values::{Checked, Exact, Export, Number, OneOf, Switch, Text, YesNo};

const fn setting(
    flags: &'static [&'static str],
    variable: &'static str,
    values: Values,
    default: &'static str,
    meaning: &'static str,
) -> Setting {
    Setting { flags, variable, values, default, meaning, is_ignored: false }
}

const fn ignored(
    flags: &'static [&'static str],
    variable: &'static str,
    values: Values,
    meaning: &'static str,
) -> Setting {
    Setting { is_ignored: true, ..setting(flags, variable, values, "", meaning) }
}

/// The variables of this table, and those of the library.
pub(super) fn known_variables() -> Vec<&'static str> {
    let of_library = VARIABLES.iter().map(|variable| variable.name);
    let of_poe = TABLE.iter().map(|setting| setting.variable).filter(|variable| !variable.is_empty());
    of_library.chain(of_poe).collect()
}

/// A setting that has a variable, for people.
pub(crate) struct Described {
    pub name: &'static str,
    pub value: String,
    /// Where the value comes from.
    pub source: String,
    pub default: String,
    pub allowed: String,
    /// Empty: it has none.
    pub flag: String,
    pub meaning: String,
}

/// The flags that do something here, without their dash.
pub(super) fn acting_flags() -> impl Iterator<Item = &'static str> {
    let acting = TABLE.iter().filter(|setting| !setting.is_ignored);
    acting.flat_map(|setting| setting.flags).copied()
}

/// All flags, without their dash.
pub(super) fn flags() -> impl Iterator<Item = &'static str> {
    TABLE.iter().flat_map(|setting| setting.flags).copied()
}

/// The settings of this table that have a variable.
pub(super) fn described(files: &Files) -> Vec<Described> {
    let or_none = |text: &str| if text.is_empty() { "none".to_owned() } else { text.to_owned() };
    let describe = |setting: &Setting| {
        let of_environment =
            std::env::var_os(setting.variable).map(|value| value.to_string_lossy().into_owned());
        let (given, source) = match (of_environment, files.line(setting.variable)) {
            (Some(value), _) => (value, "environment".to_owned()),
            (None, Some(line)) => (line.value.clone(), format!("{} {}", line.place.owner.word(), line.place)),
            (None, None) => (String::new(), String::new()),
        };
        let is_given = !given.is_empty();
        let unset = if setting.default.is_empty() { "unset" } else { "default" };
        Described {
            name: setting.variable,
            value: or_none(if is_given { &given } else { setting.default }),
            source: if is_given { source } else { unset.to_owned() },
            default: or_none(setting.default),
            allowed: setting.values.wanted(),
            flag: setting.flags.first().map(|flag| format!("-{flag}")).unwrap_or_default(),
            meaning: setting.meaning.to_owned(),
        }
    };
    TABLE.iter().filter(|setting| !setting.variable.is_empty()).map(describe).collect()
}

/// The flags that count before the program only: many programs have flags of these
/// names themselves.
const BEFORE_PROGRAM: &[&str] = &["n", "np", "printenv", "statistics", "timeout", "tmpdir", "wdir", "x"];

/// What the library's shared memory is made for.
const MOST_TASKS: u64 = MAX_TASKS as u64;

/// All settings, in the order of the help text.
pub(super) static TABLE: &[Setting] = &[
    setting(&["procs", "n", "np"], "MP_PROCS", Number(1, MOST_TASKS), "1", "how many tasks"),
    setting(&["nodes"], "MP_NODES", Number(1, MOST_TASKS), "", "how many machines"),
    setting(
        &["tasks_per_node"],
        "MP_TASKS_PER_NODE",
        Number(1, MOST_TASKS),
        "",
        "how many tasks on each machine",
    ),
    setting(
        &["hostfile", "hfile"],
        "MP_HOSTFILE",
        Text("FILE"),
        "",
        "the machines to use: a line HOST for each task, or HOST:N for N tasks",
    ),
    setting(
        &["launcher"],
        "MP_LAUNCHER",
        OneOf(&["srun", "hydra", "mpirun"]),
        "",
        "what starts tasks on other machines; when not given: srun in a Slurm allocation, else what is installed",
    ),
    setting(
        &["save_hostfile", "savehostfile"],
        "MP_SAVEHOSTFILE",
        Text("FILE"),
        "",
        "write the machines that are used to FILE",
    ),
    setting(&["pgmmodel"], "MP_PGMMODEL", OneOf(&["spmd", "mpmd"]), "spmd", "mpmd: a program for each task"),
    setting(
        &["cmdfile"],
        "MP_CMDFILE",
        Text("FILE"),
        "",
        "commands, one a line: mpmd, each for one task; spmd, each for all tasks, one after another",
    ),
    setting(
        &["x"],
        "",
        Export,
        "",
        "a variable for the tasks, also on other machines; without a value, as poe has it; may be repeated",
    ),
    setting(
        &["wdir"],
        "MP_WDIR",
        Text("DIR"),
        "",
        "the working directory of the tasks; a program with a relative path is looked for there",
    ),
    setting(&["labelio"], "MP_LABELIO", YesNo, "no", "put the task's number before each line"),
    setting(
        &["timestamps"],
        "MP_TIMESTAMPS",
        Switch,
        "no",
        "put the time of this machine before each line, before the task's number",
    ),
    setting(
        &["stdoutmode"],
        "MP_STDOUTMODE",
        Checked("unordered, ordered or a task", |text| text.parse::<StdoutMode>().is_ok()),
        "unordered",
        "output as it arrives, task after task, or of one task only",
    ),
    setting(
        &["tty"],
        "MP_TTY",
        YesNo,
        "yes",
        "standard output of the tasks is a terminal: each line is shown when it is printed; no: a pipe",
    ),
    setting(
        &["output_dir"],
        "MP_OUTPUT_DIR",
        Text("DIR"),
        "",
        "write the output of each task also to files in DIR, taskN.out and taskN.err",
    ),
    setting(
        &["profile"],
        "MP_PROFILE",
        Text("DIR"),
        "",
        "profile the job: the profiler is preloaded, and writes its report to DIR",
    ),
    setting(
        &["attach"],
        "MP_ATTACH",
        Checked("all, or numbers of tasks with commas between them", |text| {
            text == "all" || text.split(',').all(|number| number.parse::<u32>().is_ok())
        }),
        "",
        "LAPI_Init of these tasks waits until a debugger is attached",
    ),
    setting(
        &["gdb"],
        "MP_GDB",
        Number(0, MOST_TASKS - 1),
        "",
        "run this task under gdb, which gets the terminal and stops at the program's first instruction",
    ),
    setting(
        &["stdinmode"],
        "MP_STDINMODE",
        Checked("all, none or a task", |text| text.parse::<StdinMode>().is_ok()),
        "all",
        "which tasks get standard input: each all of it",
    ),
    setting(
        &["infolevel", "ilevel"],
        "MP_INFOLEVEL",
        Number(0, 6),
        "1",
        "messages: 0 errors only, 1 also warnings, 2 also information, 3 to 6 more detail",
    ),
    setting(
        &["task_affinity"],
        "MP_TASK_AFFINITY",
        Checked("yes, no, CORE[:n], CPU[:n], NUMA, LIST:0,1,4-5, SNI, -1 or numbers", |text| {
            text.parse::<Affinity>().is_ok()
        }),
        "",
        "pin each task; when not given: to a core of its own if there are enough that no other job has",
    ),
    setting(
        &["cpu_use"],
        "MP_CPU_USE",
        OneOf(&["unique", "multiple"]),
        "",
        "multiple: other jobs share the cores",
    ),
    setting(
        &["dry_run"],
        "MP_DRY_RUN",
        Switch,
        "no",
        "print what would be started, where, bound to what, with which variables, and start nothing",
    ),
    setting(
        &["report_bindings"],
        "MP_REPORT_BINDINGS",
        Switch,
        "no",
        "write a line for each task: which processors it may use",
    ),
    setting(
        &["on_death"],
        "MP_ON_DEATH",
        OneOf(&["end", "continue"]),
        "end",
        "when a task is ended by a signal or exits with 128 or above: end the job, or let the others go on",
    ),
    setting(
        &["timeout"],
        "MP_TIME_LIMIT",
        Number(1, u32::MAX as u64),
        "",
        "seconds after which the job is ended; the exit status is then 124",
    ),
    ignored(&["pulse"], "MP_PULSE", Number(0, u32::MAX as u64), "accepted and ignored"),
    setting(&["msg_api"], "MP_MSG_API", Text("API"), "lapi", "the interfaces that the tasks use"),
    setting(&["euilib"], "MP_EUILIB", Exact(&["ip", "us"]), "", "the network protocol, for the library"),
    setting(&["euidevice"], "MP_EUIDEVICE", Text("DEVICE"), "", "the adapters to use, for the library"),
    setting(&["instances"], "MP_INSTANCES", Text("N"), "", "instances of each adapter, for the library"),
    setting(&["use_bulk_xfer"], "MP_USE_BULK_XFER", YesNo, "", "large messages by remote memory access"),
    setting(
        &["bulk_min_msg_size"],
        "MP_BULK_MIN_MSG_SIZE",
        Text("SIZE"),
        "",
        "the size from which a message is large",
    ),
    setting(
        &["rdma_count"],
        "MP_RDMA_COUNT",
        Text("COUNT"),
        "",
        "RDMA contexts of each task, for the library",
    ),
    ignored(&["shared_memory"], "MP_SHARED_MEMORY", YesNo, "accepted; this library does not read it"),
    ignored(
        &["wait_mode"],
        "MP_WAIT_MODE",
        OneOf(&["poll", "yield", "sleep", "nopoll"]),
        "accepted; this library does not read it",
    ),
    setting(&["polling_interval"], "MP_POLLING_INTERVAL", Text("MICROSECONDS"), "", "for the library"),
    setting(&["retransmit_interval"], "MP_RETRANSMIT_INTERVAL", Text("N"), "", "for the library"),
    setting(&["rexmit_buf_size"], "MP_REXMIT_BUF_SIZE", Text("BYTES"), "", "for the library"),
    setting(&["rexmit_buf_cnt"], "MP_REXMIT_BUF_CNT", Text("N"), "", "for the library"),
    setting(&["ack_thresh"], "MP_ACK_THRESH", Text("N"), "", "for the library"),
    setting(&["udp_packet_size"], "MP_UDP_PACKET_SIZE", Text("BYTES"), "", "for the library"),
    setting(&["css_interrupt"], "MP_CSS_INTERRUPT", YesNo, "", "for MPI"),
    setting(&["eager_limit"], "MP_EAGER_LIMIT", Text("BYTES"), "", "for MPI"),
    setting(&["buffer_mem"], "MP_BUFFER_MEM", Text("BYTES"), "", "for MPI"),
    setting(&["single_thread"], "MP_SINGLE_THREAD", YesNo, "", "for MPI"),
    ignored(&["adapter_use"], "MP_ADAPTER_USE", OneOf(&["shared", "dedicated"]), "accepted and ignored"),
    ignored(&["resd"], "MP_RESD", YesNo, "accepted and ignored: no resource manager is present"),
    ignored(&["rmpool"], "MP_RMPOOL", Text("POOL"), "accepted and ignored"),
    ignored(&["retry"], "MP_RETRY", Text("SECONDS"), "accepted and ignored"),
    ignored(&["retrycount"], "MP_RETRYCOUNT", Text("N"), "accepted and ignored"),
    ignored(&["pmdlog"], "MP_PMDLOG", Text("yes|no"), "accepted and ignored"),
    ignored(&["newjob"], "MP_NEWJOB", Text("yes|no"), "accepted and ignored"),
    ignored(&["coredir"], "MP_COREDIR", Text("DIR"), "accepted and ignored: the system places cores"),
    ignored(&["corefile_format"], "MP_COREFILE_FORMAT", Text("FORMAT"), "accepted and ignored"),
    ignored(&["euidevelop"], "MP_EUIDEVELOP", Text("yes|no"), "accepted and ignored"),
    ignored(&["llfile"], "MP_LLFILE", Text("FILE"), "accepted and ignored"),
    ignored(&["save_llfile"], "MP_SAVE_LLFILE", Text("FILE"), "accepted and ignored: no file is written"),
    ignored(&["tmpdir"], "MP_TMPDIR", Text("DIR"), "accepted and ignored: TMPDIR counts"),
    ignored(&["clock_source"], "MP_CLOCK_SOURCE", Text("SOURCE"), "accepted and ignored"),
    ignored(&["thread_stacksize"], "MP_THREAD_STACKSIZE", Text("BYTES"), "accepted and ignored"),
    ignored(&["statistics"], "MP_STATISTICS", Text("yes|no"), "accepted and ignored: prints nothing"),
    ignored(&["priority_log"], "MP_PRIORITY_LOG", Text("yes|no"), "accepted and ignored"),
    ignored(&["printenv"], "MP_PRINTENV", Text("yes|no"), "accepted and ignored: prints nothing"),
    setting(
        &[],
        "MP_FENCE",
        Text("WORD"),
        "",
        "what follows WORD on the command line belongs to the program",
    ),
    setting(
        &[],
        "MP_NOARGLIST",
        YesNo,
        "no",
        "yes: all that follows the program's name belongs to the program",
    ),
];

impl Setting {
    /// The setting that a flag (without its dash) stands for, before the program or among
    /// its arguments.
    pub(super) fn of_flag(flag: &str, before_program: bool) -> Option<&'static Self> {
        let counts = before_program || !BEFORE_PROGRAM.contains(&flag);
        TABLE.iter().find(|setting| counts && setting.flags.contains(&flag))
    }

    /// The setting of a variable that `poe` itself reads: every such variable is in the table.
    pub(super) fn of_variable(variable: &str) -> &'static Self {
        TABLE.iter().find(|setting| setting.variable == variable).expect("the variable is in the table")
    }

    fn help(&self) -> String {
        let Self { flags, variable, values, default, meaning, .. } = self;
        let star = |flag| if BEFORE_PROGRAM.contains(flag) { "*" } else { "" };
        let flags: Vec<String> =
            flags.iter().map(|flag| format!("-{flag} {}{}", values.placeholder(), star(flag))).collect();
        let flags = if flags.is_empty() { String::from("(no flag)") } else { flags.join(", ") };
        let variable = if variable.is_empty() { String::new() } else { format!("  [{variable}]") };
        let wanted = if let Checked(wanted, _) = values { format!("; {wanted}") } else { String::new() };
        let default = if default.is_empty() { String::new() } else { format!(" (default: {default})") };
        format!("  {flags}{variable}\n        {meaning}{wanted}{default}\n")
    }

    /// Refuses a value that the setting does not take; `said` is how the user gave it.
    pub(super) fn check(&self, said: &str, value: &str) -> Result<(), Error> {
        let right = match self.values {
            // Rust would take a sign, too, and the library does not.
            Number(..) if !value.bytes().all(|byte| byte.is_ascii_digit()) => false,
            Number(least, most) => value.parse().is_ok_and(|number: u64| (least..=most).contains(&number)),
            YesNo | Switch => value.eq_ignore_ascii_case("yes") || value.eq_ignore_ascii_case("no"),
            OneOf(words) => words.iter().any(|word| value.eq_ignore_ascii_case(word)),
            Exact(words) => words.contains(&value),
            Checked(_, check) => check(value),
            Text(_) | Export => true,
        };
        if right {
            return Ok(());
        }
        Err(Error::asked(format!("{said}: \"{value}\" is not {}", self.values.wanted())))
    }
}

impl Values {
    fn wanted(&self) -> String {
        match self {
            Number(least, most) => format!("a number from {least} to {most}"),
            YesNo | Switch => "yes or no".to_owned(),
            OneOf(words) => words.join(" or "),
            Exact(words) => format!("{}, in small letters", words.join(" or ")),
            Checked(wanted, _) => (*wanted).to_owned(),
            Text(name) => (*name).to_owned(),
            Export => EXPORT.to_owned(),
        }
    }

    fn placeholder(&self) -> String {
        match self {
            Number(..) => "N".to_owned(),
            YesNo => "yes|no".to_owned(),
            Switch => "[yes|no]".to_owned(),
            OneOf(words) | Exact(words) => words.join("|"),
            Checked(..) => "WHAT".to_owned(),
            Text(name) => (*name).to_owned(),
            Export => EXPORT.to_owned(),
        }
    }
}

/// What a variable for the tasks is.
const EXPORT: &str = "VAR[=VALUE]";

/// The settings of `poe -h`, by variable or flag; the others, which are IBM's and for the library,
/// are those of `poe -h all`.
const GROUPS: &[(&str, &[&str])] = &[
    ("Tasks and machines", &["procs", "nodes", "tasks_per_node", "hostfile", "launcher", "save_hostfile"]),
    ("Programs", &["pgmmodel", "cmdfile", "x", "wdir"]),
    (
        "Input and output",
        &["labelio", "timestamps", "stdoutmode", "stdinmode", "tty", "output_dir", "infolevel"],
    ),
    ("Processors", &["task_affinity", "cpu_use", "report_bindings"]),
    ("The end of a job", &["on_death", "timeout"]),
    ("Looking into a job", &["dry_run", "profile", "attach", "gdb"]),
];

/// The text of `poe -h`, or of `poe -h all`. Configure scripts look for the name in its first line.
pub(super) fn help(all: bool) -> String {
    let mut text = String::from(
        "poe: Parallel Operating Environment of OpenLAPI: runs a program as the tasks of a job\n\
         \n\
         usage: poe [flags] program [arguments and flags]\n\
         \x20      poe [flags] -cmdfile FILE\n\
         \n\
         A flag is written -flag VALUE or -flag=VALUE, before the program or after it; those marked * only before it,\n\
         because many programs have such flags themselves. A flag wins over its variable, and the tasks get it as\n\
         that variable. The exit status is 0 when every task's is, otherwise that of the first cause, or the highest;\n\
         128 + N for signal N; 2 for wrong usage.\n",
    );
    let mut left: Vec<&Setting> = TABLE.iter().collect();
    for (title, flags) in GROUPS {
        text += &format!("\n{title}:\n");
        for flag in *flags {
            if let Some(at) = left.iter().position(|setting| setting.flags.contains(flag)) {
                text += &left.remove(at).help();
            }
        }
    }
    if all {
        text += "\nFor the library, and of IBM's poe:\n";
        text.extend(left.iter().map(|setting| setting.help()));
    }
    text + "\n  -h, -help\n        this text; -h all: also the flags for the library, and those of IBM's poe\n  \
            -V, -version\n        the version\n"
}

#[cfg(test)]
mod tests;
