//! Support for the tests: a staged installation, compiled C programs, and jobs with a deadline.
//!
//! A test compiles a program with the installed wrappers and runs it as a job:
//!
//! ```no_run
//! use openlapi_tests as support;
//!
//! let program = support::compile("put_exact", &["tests/c/put/exact.c"], &[]);
//! support::Job::new(&program).procs(2).env("MP_INFOLEVEL", "2").arg("4096").run().ok();
//! ```
//!
//! Everything here may be used by many tests at once and in any order. A job that still runs at its
//! deadline is ended, and what each of its processes was doing is printed first.

mod compile;
mod deadline;
mod hosts;
mod installed;
mod job;
mod launchers;
mod long;
mod marked;
mod ports;
mod processes;
mod running;
mod slurm;
mod soak;
mod stage;
mod terminal;
mod transport;

pub use compile::{compile, compile_plain, compile_with};
pub use deadline::Deadline;
pub use hosts::{Hosts, Launcher, Layout, Network};
pub use installed::{is_installed, skipped};
pub use job::Job;
pub use launchers::{Start, under_hydra, under_slurm};
pub use long::long_form;
pub use marked::Marked;
pub use ports::Ports;
pub use processes::{alive, copy_program, descendants, eventually, named, parent};
pub use running::{Outcome, Running};
pub use slurm::{Cluster, Node};
pub use soak::{Network as SoakNetwork, Soak};
pub use stage::{build_dir, door, stage, workspace};
pub use terminal::Terminal;
pub use transport::{
    Transport, has_fabric, hosts, is_on_network, needs_copies, on_hosts, on_network, reaches_by_keys, sharing,
};
