//! The variables by which a task learns its number and its job.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;

use openlapi::config::files;
use openlapi_runtime::environment::process_env;

use super::error::Error;
use super::folder;
use super::profile;
use super::settings::Settings;

const BACKTRACE: &str = "LAPI_BACKTRACE";
const NO_TIMEOUT: &str = "MP_DEBUG_NOTIMEOUT";

/// The variables of the tasks of one job.
pub(super) struct Environment {
    tasks: usize,
    /// The variables that all tasks have alike.
    common: Vec<(String, String)>,
    /// The host of each task; `None`: all are here.
    hosts: Option<Vec<String>>,
}

impl Environment {
    /// Makes a job's environment, with a fresh secret and a partition number of its own.
    pub(super) fn new(settings: &Settings, tasks: usize, hosts: Option<&[String]>) -> Result<Self, Error> {
        let mut random = [0; 20];
        File::open("/dev/urandom")
            .and_then(|mut source| source.read_exact(&mut random))
            .map_err(|error| Error::system("cannot read /dev/urandom", error))?;
        let (secret, partition) = random.split_at(16);
        // Old programs read the number into an int.
        let partition =
            partition.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte)) & 0x7fff_ffff;
        let secret = secret.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        let mut common: Vec<_> =
            settings.flags().iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let mut set = |name: &str, value: String| {
            common.retain(|(known, _)| known != name);
            common.push((name.to_owned(), value));
        };
        if settings.text("MP_WDIR")?.is_some()
            && let Some(folder) = folder::of(settings)?.to_str()
        {
            set("PWD", folder.to_owned());
            // Absolute, for a `poe` that a task starts.
            set("MP_WDIR", folder.to_owned());
        }
        set("MP_PROCS", tasks.to_string());
        set("MP_PARTITION", partition.to_string());
        set("LAPI_JOB_SECRET", secret);
        for defaulted in ["MP_MSG_API", "MP_INFOLEVEL"] {
            if let Some(value) = settings.text(defaulted)? {
                set(defaulted, value.to_owned());
            }
        }
        if process_env(BACKTRACE).is_none() {
            set(BACKTRACE, "yes".to_owned());
        }
        let debugged = settings.text("MP_ATTACH")?.is_some() || settings.text("MP_GDB")?.is_some();
        if debugged && process_env(NO_TIMEOUT).is_none() {
            // A task that a debugger has stopped is silent.
            set(NO_TIMEOUT, "yes".to_owned());
        }
        // Those of the tasks' machines do not count.
        set(files::READ, openlapi_runtime::environment::files().pack());
        for export in settings.exports() {
            if let Some((name, value)) = export.resolve()? {
                set(name, value);
            }
        }
        if let Some(folder) = settings.text("MP_PROFILE")? {
            let exported =
                |wanted: &str| common.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
            for (name, value) in profile::variables(folder, exported)? {
                // What `-x` exports is asked for.
                if name == profile::TABLE && common.iter().any(|(known, _)| known == name) {
                    continue;
                }
                common.retain(|(known, _)| known != name);
                common.push((name.to_owned(), value));
            }
        }
        Ok(Self { tasks, common, hosts: hosts.map(<[String]>::to_vec) })
    }

    /// No variables: a task that has those of this process.
    pub(super) fn inherited() -> Self {
        Self { tasks: 0, common: Vec::new(), hosts: None }
    }

    /// The variables of one task.
    pub(super) fn of(&self, task: usize) -> impl Iterator<Item = (&str, String)> {
        let is_here = |other: usize| match &self.hosts {
            Some(hosts) => hosts[other] == hosts[task],
            None => true,
        };
        let own = (task < self.tasks).then(|| {
            [("MP_CHILD", task.to_string()), ("MP_COMMON_TASKS", common_tasks(task, self.tasks, is_here))]
        });
        let common = self.common.iter().map(|(name, value)| (&**name, value.clone()));
        common.chain(own.into_iter().flatten())
    }
}

/// The other tasks on this host, as the manual's "Standalone setup" writes them: their
/// number, then each.
fn common_tasks(task: usize, tasks: usize, is_here: impl Fn(usize) -> bool) -> String {
    let others: Vec<usize> = (0..tasks).filter(|other| *other != task && is_here(*other)).collect();
    others.iter().fold(others.len().to_string(), |mut text, other| {
        let _ = write!(text, ":{other}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn the_common_tasks_are_the_others() {
        assert_eq!(common_tasks(1, 4, |_| true), "3:0:2:3");
        assert_eq!(common_tasks(0, 1, |_| true), "0");
        assert_eq!(common_tasks(2, 4, |other| other % 2 == 0), "1:0");
    }

    #[test]
    fn every_job_has_a_secret_and_a_number_of_its_own() {
        let settings = Settings::of(&[("MP_MSG_API", "LAPI,MPI")]);
        let values = |task| -> HashMap<String, String> {
            let environment = Environment::new(&settings, 3, None).expect("there is randomness");
            environment.of(task).map(|(name, value)| (name.to_owned(), value)).collect()
        };
        let (one, other) = (values(2), values(2));
        assert_eq!(one["MP_CHILD"], "2");
        assert_eq!(one["MP_PROCS"], "3");
        assert_eq!(one["MP_MSG_API"], "LAPI,MPI");
        assert_eq!(one["MP_INFOLEVEL"], "1");
        assert!(one["LAPI_JOB_SECRET"].len() == 32 && one["LAPI_JOB_SECRET"] != other["LAPI_JOB_SECRET"]);
        assert!(one["MP_PARTITION"].parse::<i32>().is_ok() && one["MP_PARTITION"] != other["MP_PARTITION"]);
    }
}
