use super::*;
use crate::config::variable;

fn read(vars: &[(&str, &str)]) -> Result<Identity> {
    let env = |name: &str| {
        assert!(variable(name).is_some(), "{name} is read but not in the table");
        vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    };
    Identity::from_env_and(&env, |launcher, tasks| format!("ancestor of {tasks} by {}", launcher.rank))
}

fn place_of(vars: &[(&str, &str)]) -> (u32, u32) {
    let identity = read(vars).unwrap();
    (identity.task, identity.tasks)
}

const STEP: &[(&str, &str)] =
    &[("SLURM_JOB_ID", "77"), ("SLURM_STEP_ID", "3"), ("SLURM_PROCID", "1"), ("SLURM_NTASKS", "4")];

#[test]
fn no_launcher_is_a_job_of_one() {
    let identity = read(&[]).unwrap();
    assert_eq!((identity.task, identity.tasks), (0, 1));
    assert!(identity.is_on_one_machine());
    assert_eq!(identity.common_tasks(), Some(vec![0]));
}

#[test]
fn each_launcher() {
    assert_eq!(place_of(&[("MP_CHILD", "2"), ("MP_PROCS", "3")]), (2, 3));
    assert_eq!(place_of(&[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2")]), (0, 2));
    assert_eq!(place_of(&[("PMI_RANK", "5"), ("PMI_SIZE", "8")]), (5, 8));
    assert_eq!(place_of(&[("PMIX_RANK", "1"), ("PMI_SIZE", "2")]), (1, 2));
    assert_eq!(place_of(&[STEP, &[("PMIX_RANK", "2")]].concat()), (2, 4));
    assert_eq!(place_of(STEP), (1, 4));
    assert_eq!(place_of(&[STEP, &[("SLURM_STEP_NUM_TASKS", "2")]].concat()), (1, 2));
}

#[test]
fn the_first_launcher_of_several_wins() {
    let mp = [("MP_CHILD", "1"), ("MP_PROCS", "9")];
    let ompi = [("OMPI_COMM_WORLD_RANK", "2"), ("OMPI_COMM_WORLD_SIZE", "10")];
    let pmi = [("PMI_RANK", "3"), ("PMI_SIZE", "11")];
    assert_eq!(place_of(&[&mp[..], &ompi, &pmi, STEP].concat()), (1, 9));
    assert_eq!(place_of(&[&ompi[..], &pmi, STEP].concat()), (2, 10));
    assert_eq!(place_of(&[&pmi[..], STEP].concat()), (3, 11));
}

#[test]
fn half_of_a_pair() {
    for (name, value, lacks) in [("MP_CHILD", "0", "MP_PROCS"), ("MP_PROCS", "7", "MP_CHILD")] {
        let error = read(&[(name, value)]).unwrap_err();
        assert_eq!(error.code, LAPI_ERR_NO_ENV_VAR);
        for part in [name, value, lacks] {
            assert!(error.detail.contains(part), "{}", error.detail);
        }
    }
    for rank in ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"] {
        let error = read(&[(rank, "0")]).unwrap_err();
        assert_eq!(error.code, LAPI_ERR_NO_ENV_VAR);
        assert!(error.detail.contains(rank), "{}", error.detail);
    }
    // A rank without a size does not hide a launcher further down that has both.
    assert_eq!(place_of(&[&[("PMIX_RANK", "0"), ("PMI_RANK", "0")], STEP].concat()), (0, 4));
}

#[test]
fn out_of_range() {
    let cases: &[&[(&str, &str)]] = &[
        &[("MP_CHILD", "3"), ("MP_PROCS", "3")],
        &[("MP_CHILD", "0"), ("MP_PROCS", "0")],
        &[("MP_CHILD", "0"), ("MP_PROCS", "16385")],
        &[("MP_CHILD", "one"), ("MP_PROCS", "2")],
        &[("PMI_RANK", "2"), ("PMI_SIZE", "2")],
        &[("PMI_RANK", "0"), ("PMI_SIZE", "0")],
        &[("PMI_RANK", "-1"), ("PMI_SIZE", "2")],
        &[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "70000")],
    ];
    for vars in cases {
        let error = read(vars).unwrap_err();
        assert_eq!(error.code, LAPI_ERR_NO_ENV_VAR, "{vars:?}");
        assert!(vars.iter().any(|(_, value)| error.detail.contains(value)), "{}", error.detail);
    }
}

#[test]
fn a_batch_script_is_not_a_task() {
    let script = [("SLURM_JOB_ID", "77"), ("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")];
    assert_eq!(place_of(&script), (0, 1));
    assert_eq!(place_of(&[&script[..], &[("SLURM_STEP_ID", "4294967291")]].concat()), (0, 1));
}

const BY_HAND: &[(&str, &str)] = &[("MP_CHILD", "0"), ("MP_PROCS", "4")];
const OMPI: &[(&str, &str)] = &[("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4")];
const PMI: &[(&str, &str)] = &[("PMI_RANK", "1"), ("PMI_SIZE", "4")];
const HYDRA: &[(&str, &str)] = &[("PMI_RANK", "1"), ("PMI_SIZE", "4"), ("MPI_LOCALNRANKS", "4")];
const PMIX: &[(&str, &str)] = &[("PMIX_RANK", "2"), ("PMIX_NAMESPACE", "n")];
const JOBID: &[(&str, &str)] = &[("PMI_JOBID", "j")];

/// A step of one task, in which a user works with a shell and starts other launchers.
const SHELL_STEP: &[(&str, &str)] =
    &[("SLURM_JOB_ID", "8"), ("SLURM_STEP_ID", "0"), ("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")];

fn key_of(vars: &[&[(&str, &str)]]) -> String {
    read(&vars.concat()).unwrap().key
}

#[test]
fn the_launcher_s_key() {
    assert_eq!(key_of(&[OMPI, PMIX]), "PMIX_NAMESPACE n");
    assert_eq!(key_of(&[PMI, JOBID]), "PMI_JOBID j");
    assert_eq!(key_of(&[PMIX, STEP]), "PMIX_NAMESPACE n");
    assert_eq!(key_of(&[STEP]), "SLURM_JOB_ID 77, SLURM_STEP_ID 3");
    for without in [BY_HAND, OMPI, PMI, HYDRA] {
        let ancestor = format!("ancestor of 4 by {}", without[0].0);
        assert_eq!(key_of(&[without]), ancestor);
        assert_eq!(key_of(&[without, &[("SLURM_JOB_ID", "77")]]), ancestor, "an allocation is not a job");
    }
    for vars in [BY_HAND, OMPI, PMI, HYDRA, STEP] {
        assert_eq!(key_of(&[vars, PMIX, JOBID, &[("MP_PARTITION", "p")]]), "MP_PARTITION p");
    }
}

#[test]
fn tasks_that_renumber_themselves_keep_their_launcher_s_key() {
    assert_eq!(key_of(&[BY_HAND, OMPI, PMIX]), "PMIX_NAMESPACE n");
    assert_eq!(key_of(&[BY_HAND, PMI, JOBID, STEP]), "PMI_JOBID j");
    assert_eq!(key_of(&[BY_HAND, STEP]), "SLURM_JOB_ID 77, SLURM_STEP_ID 3");
    assert_eq!(key_of(&[BY_HAND, HYDRA]), "ancestor of 4 by PMI_RANK");
    assert_eq!(key_of(&[BY_HAND, PMIX]), "PMIX_NAMESPACE n", "that launcher leaves the size open");
}

#[test]
fn the_key_of_another_job_around_does_not_count() {
    let in_pmi2 = [SHELL_STEP, JOBID].concat();
    let in_pmix = [SHELL_STEP, PMIX].concat();
    for around in [SHELL_STEP, &in_pmi2, &in_pmix, STEP] {
        assert_eq!(key_of(&[HYDRA, around]), "ancestor of 4 by PMI_RANK");
        assert_eq!(key_of(&[OMPI, &[("PMIX_NAMESPACE", "own")], around]), "PMIX_NAMESPACE own");
    }
    assert_eq!(key_of(&[BY_HAND, SHELL_STEP]), "ancestor of 4 by MP_CHILD");
    let in_mpirun = [("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "1")];
    assert_eq!(key_of(&[BY_HAND, &in_mpirun, PMIX]), "ancestor of 4 by MP_CHILD");
    let in_hydra = [("PMI_RANK", "0"), ("PMI_SIZE", "1"), ("MPI_LOCALNRANKS", "1")];
    assert_eq!(key_of(&[BY_HAND, &in_hydra, JOBID]), "ancestor of 4 by MP_CHILD");
}

#[test]
fn common_tasks_by_list() {
    let of = |list| read(&[("MP_CHILD", "1"), ("MP_PROCS", "4"), ("MP_COMMON_TASKS", list)]);
    assert_eq!(of("3:0:2:3").unwrap().common, Common::All);
    assert_eq!(of("1:3").unwrap().common, Common::Listed(vec![1, 3]));
    assert_eq!(of("1:3").unwrap().common_count(), 2);
    assert_eq!(of("0").unwrap().common_tasks(), Some(vec![1]));
    for bad in ["1:1", "1:4", "2:0", "x"] {
        let error = of(bad).unwrap_err();
        assert_eq!(error.code, LAPI_ERR_SHM_SETUP, "{bad}");
        assert!(error.detail.contains(bad), "{}", error.detail);
    }
}

#[test]
fn common_tasks_by_count() {
    let ompi = |local| {
        let vars = [
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_SIZE", "4"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", local),
        ];
        read(&vars).unwrap()
    };
    assert_eq!(ompi("4").common, Common::All);
    assert_eq!(ompi("2").common, Common::Counted(2));
    assert_eq!(ompi("2").common_tasks(), None);
    assert!(!ompi("2").is_on_one_machine());
    assert_eq!(ompi("1").common_tasks(), Some(vec![1]));

    let hydra = read(&[("PMI_RANK", "0"), ("PMI_SIZE", "4"), ("MPI_LOCALNRANKS", "3")]).unwrap();
    assert_eq!((hydra.common.clone(), hydra.common_count()), (Common::Counted(3), 3));

    let slurm = |node, per_node| {
        let more = [("SLURM_NODEID", node), ("SLURM_STEP_TASKS_PER_NODE", per_node)];
        read(&[STEP, &more].concat()).unwrap().common
    };
    assert_eq!(slurm("0", "4"), Common::All);
    assert_eq!(slurm("0", "2(x2)"), Common::Counted(2));
    assert_eq!(slurm("2", "1(x2),2"), Common::Counted(2));
    assert_eq!(slurm("1", "1(x2),2"), Common::Counted(1));
    assert_eq!(slurm("9", "1(x2),2"), Common::All, "a list without this node");
}

#[test]
fn a_launcher_around_tasks_started_by_hand_does_not_give_their_machine() {
    let vars = [
        ("MP_CHILD", "0"),
        ("MP_PROCS", "4"),
        ("MPI_LOCALNRANKS", "1"),
        ("PMI_RANK", "0"),
        ("PMI_SIZE", "2"),
    ];
    assert_eq!(read(&vars).unwrap().common, Common::All);
}
