//! Which processors the tasks get by the settings.

use nix::sched::CpuSet;

use super::affinity::{Choice, sets};
use super::claims::Claims;
use super::error::Error;
use super::settings::Settings;

/// The processors of each of `tasks` tasks of this machine as the settings have it; empty when they
/// are not pinned. With `claims` the job takes them.
pub(super) fn of(
    settings: &Settings,
    verbose: bool,
    tasks: usize,
    claims: Option<&mut Claims>,
) -> Result<Vec<CpuSet>, Error> {
    let shared = settings.text("MP_CPU_USE")?.is_some_and(|cpu_use| cpu_use.eq_ignore_ascii_case("multiple"));
    sets(Choice { asked: settings.parsed("MP_TASK_AFFINITY")?, shared, verbose, claims }, tasks)
}
