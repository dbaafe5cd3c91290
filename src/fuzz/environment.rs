//! The environment: the settings of the library, and what launchers say of the job.

use super::{Seed, Target, seed};
use crate::config::files::Files;
use crate::config::{Config, MAX_TASKS, given, misspelt_names, settings};
use crate::job::{Common, Identity};

/// The variables of a task.
pub const ENVIRONMENT: Target = Target { name: "environment", feed: environment, seeds };

/// The files of settings, and what `poe` gives the tasks of them.
pub const SETTINGS: Target = Target { name: "settings", feed: settings_file, seeds: settings_seeds };

/// The input: a file, or the text of `LAPI_CONFIG_READ`.
fn settings_file(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let handed = Files::of_pack(&text);
    assert_eq!(Files::of_pack(&handed.pack()).pack(), handed.pack());
    let files = Files::of_text(bytes);
    assert!(files.faults.len() <= 11, "a wrong file makes few lines");
    let packed = Files::of_pack(&files.pack());
    assert!(packed.lines().eq(files.lines()), "tasks have what poe has");
    let nothing = |_: &str| None;
    let wrong = settings(&nothing, &files).iter().any(|setting| setting.refused.is_some());
    assert_eq!(wrong, files.check(&nothing).is_err(), "what is shown as wrong is refused");
    (files.faults.is_empty() && !wrong) || handed.pack() == text
}

fn settings_seeds() -> Vec<Seed> {
    let text = "# a site\nLAPI_SPIN = 100 # polite\nMP_EUIDEVICE=\"eth0 # 1\"\nLAPI_FABRIC_PROVIDER='tcp;ofi_rxm'\nMP_LABELIO=yes\n";
    vec![seed("file", text), seed("packed", Files::of_text(text.as_bytes()).pack())]
}

/// The input: `NAME=VALUE` in each line.
fn environment(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let variables: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once('=')).collect();
    let env =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let _ = misspelt_names(variables.iter().map(|(name, _)| name));
    let shown = settings(&env, &Files::default());
    let config = Config::from_env(&env);
    let are_right = shown.iter().all(|setting| setting.refused.is_none());
    assert!(are_right || config.is_err(), "what is shown as wrong is refused");
    let both = ["MP_LAPI_NETWORK", "MP_LAPI_INET_ADDR"].iter().all(|name| given(&env, name).is_some());
    if let Ok(config) = &config {
        assert!(config.bulk_min_msg_size >= 4096 && (1..=31).contains(&config.ack_thresh));
        assert!(!both);
    } else {
        assert!(!are_right || both, "{config:?}");
    }
    let identity = Identity::from_env_alone(&env);
    if let Ok(identity) = &identity {
        is_sound(identity);
    }
    config.is_ok() && identity.is_ok()
}

fn is_sound(identity: &Identity) {
    let Identity { task, tasks, common, .. } = identity;
    assert!((1..=MAX_TASKS).contains(tasks) && task < tasks);
    let count = identity.common_count();
    assert!((1..=*tasks).contains(&count));
    match common {
        Common::All => assert_eq!(count, *tasks),
        Common::Counted(_) => assert!(count < *tasks),
        Common::Listed(listed) => {
            assert!(count < *tasks && listed.is_sorted_by(|one, next| one < next));
            assert!(listed.contains(task) && listed.iter().all(|one| one < tasks));
        }
    }
}

fn seeds() -> Vec<Seed> {
    let lines = |variables: &[&str]| variables.join("\n");
    vec![
        seed(
            "by_hand",
            lines(&["MP_CHILD=1", "MP_PROCS=4", "MP_PARTITION=7", "MP_COMMON_TASKS=2:0:3", "LAPI_SPIN=100"]),
        ),
        seed(
            "slurm",
            lines(&[
                "SLURM_JOB_ID=77",
                "SLURM_STEP_ID=3",
                "SLURM_PROCID=1",
                "SLURM_STEP_NUM_TASKS=7",
                "SLURM_NODEID=2",
                "SLURM_STEP_TASKS_PER_NODE=2(x3),1",
                "LAPI_USE_SHM=no",
            ]),
        ),
        seed("pmix", lines(&["PMIX_RANK=1", "PMIX_NAMESPACE=n", "PMI_SIZE=2", "LAPI_REPORT_SIGNAL=SIGUSR2"])),
        seed(
            "settings",
            lines(&[
                "MP_BULK_MIN_MSG_SIZE=64k",
                "MP_LAPI_INET_ADDR=@1:192.0.2.1,eth0",
                "LAPI_JOB_SECRET=000102030405060708090a0b0c0d0e0F",
                "MP_INSTANCES=max",
                "LAPI_STALL_SECOND=3",
                "MP_RDMA_COUNT=4,16",
            ]),
        ),
    ]
}
