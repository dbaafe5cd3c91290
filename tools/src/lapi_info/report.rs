//! The report of `lapi_info`, as plain values. Their names are those of the JSON output.

use serde::Serialize;

/// Everything.
#[derive(Serialize)]
pub(super) struct Report {
    /// Of this form; a field that is removed or changes its meaning makes another one.
    pub(super) schema: u32,
    pub(super) version: &'static str,
    pub(super) build: Build,
    pub(super) machine: Machine,
    pub(super) transports: Vec<Transport>,
    pub(super) limits: Vec<Limit>,
    /// The files of settings, in the order in which they win.
    pub(super) files: Vec<File>,
    pub(super) variables: Vec<Variable>,
    pub(super) unknown: Vec<Unknown>,
    /// This process's place in a job; none when the environment contradicts itself.
    pub(super) place: Option<Rank>,
    /// Why LAPI_Init would fail, or what would not work afterwards: a sentence each.
    pub(super) problems: Vec<String>,
}

/// How the library was built.
#[derive(Serialize)]
pub(super) struct Build {
    /// The commit; empty when it is not known.
    pub(super) commit: &'static str,
    pub(super) date: &'static str,
    /// Cargo's features, by commas.
    pub(super) features: &'static str,
    pub(super) profile: &'static str,
    pub(super) target: &'static str,
    pub(super) rustc: &'static str,
    /// Where it is installed, if this program is.
    pub(super) library: Option<String>,
}

/// The machine.
#[derive(Serialize)]
pub(super) struct Machine {
    /// Those that are switched on.
    pub(super) processors: u32,
    /// Those that this process may use; empty when the kernel does not say.
    pub(super) allowed: Vec<usize>,
    /// In bytes.
    pub(super) memory: Option<u64>,
    /// Memory domains (NUMA nodes).
    pub(super) domains: Vec<Domain>,
}

/// A memory domain.
#[derive(Serialize)]
pub(super) struct Domain {
    pub(super) number: u32,
    /// As the kernel writes it, such as `0-3,8`.
    pub(super) processors: String,
    /// In bytes.
    pub(super) memory: Option<u64>,
}

/// A transport.
#[derive(Serialize)]
pub(super) struct Transport {
    pub(super) name: &'static str,
    pub(super) built: bool,
    pub(super) usable: bool,
    /// Why it is usable or not.
    pub(super) reason: String,
    pub(super) checks: Vec<Check>,
    /// Of UDP and libfabric: what would be used; none when nothing can be.
    pub(super) chosen: Option<String>,
    /// Of UDP and libfabric: what would not be used; providers in the order of preference.
    pub(super) passed_over: Vec<PassedOver>,
}

/// An interface, or a provider with domain and fabric, that would not be used.
#[derive(Serialize)]
pub(super) struct PassedOver {
    pub(super) name: String,
    pub(super) reason: &'static str,
}

/// Something of the system that a transport uses, tried out.
#[derive(Clone, Serialize)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) works: bool,
    /// Without it, the transport cannot be used at all.
    pub(super) needed: bool,
    /// What was tried, or why it does not work and what that means.
    pub(super) detail: String,
}

/// A limit of the library, or one of the system that matters to it.
#[derive(Serialize)]
pub(super) struct Limit {
    pub(super) name: &'static str,
    /// None: unlimited.
    pub(super) value: Option<u64>,
    pub(super) unit: &'static str,
    pub(super) meaning: String,
}

/// A file of settings.
#[derive(Serialize)]
pub(super) struct File {
    pub(super) path: String,
    /// "user file", "site file", or "file" for one that LAPI_CONFIG names.
    pub(super) kind: &'static str,
    pub(super) is_there: bool,
    /// What is wrong with it, a sentence each.
    pub(super) faults: Vec<String>,
}

/// An environment variable that the library reads.
#[derive(Serialize)]
pub(super) struct Variable {
    pub(super) name: &'static str,
    /// The value in effect; none when nothing is.
    pub(super) value: Option<String>,
    /// "environment", the kind of a file, "default" or "unset".
    pub(super) source: &'static str,
    /// The file and the line that set it.
    pub(super) place: Option<String>,
    pub(super) default: Option<&'static str>,
    pub(super) allowed: String,
    pub(super) meaning: &'static str,
    pub(super) refused: Option<Refused>,
}

/// The error by which LAPI_Init refuses a value.
#[derive(Serialize)]
pub(super) struct Refused {
    pub(super) code: i32,
    pub(super) name: &'static str,
}

/// A variable that is set and has no effect.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Unknown {
    pub(super) name: String,
    pub(super) did_you_mean: Option<&'static str>,
}

/// This process in a job.
#[derive(Serialize)]
pub(super) struct Rank {
    pub(super) launcher: &'static str,
    pub(super) task: u32,
    pub(super) tasks: u32,
    pub(super) tasks_on_this_machine: u32,
    pub(super) key: String,
    /// The launcher lets the tasks exchange their addresses in a network.
    pub(super) exchange: bool,
}
