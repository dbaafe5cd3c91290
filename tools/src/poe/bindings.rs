//! Which processors the tasks get by the settings.

use nix::sched::CpuSet;

use super::affinity::sets;
use super::error::Error;
use super::settings::Settings;

/// The processors of each of `tasks` tasks of this machine as the settings have it; empty when they are not pinned.
pub(super) fn of(settings: &Settings, verbose: bool, tasks: usize) -> Result<Vec<CpuSet>, Error> {
    let shared = settings.text("MP_CPU_USE")?.is_some_and(|cpu_use| cpu_use.eq_ignore_ascii_case("multiple"));
    Ok(sets(settings.parsed("MP_TASK_AFFINITY")?, shared, verbose, tasks))
}
