//! This process's place in a job, as LAPI_Init would find it.

use openlapi::job::{Identity, exchange};
use openlapi_runtime::environment::process_env;

use super::report::Rank;

/// Reads the environment.
pub(super) fn look(problems: &mut Vec<String>) -> Option<Rank> {
    match Identity::from_env(&process_env) {
        Ok(found) => {
            let tasks_on_this_machine = found.common_count();
            let exchange = exchange::is_offered(&found, &process_env);
            let Identity { task, tasks, key, source, .. } = found;
            Some(Rank { launcher: source, task, tasks, tasks_on_this_machine, key, exchange })
        }
        Err(error) => {
            // An invalid number was reported with its variable.
            let problem = error.to_string();
            if !problems.contains(&problem) {
                problems.push(problem);
            }
            None
        }
    }
}
