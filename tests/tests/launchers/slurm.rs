//! Slurm itself, where it is installed: a cluster of one machine that exists only for the test.

use std::fs;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use nix::sys::signal::Signal;
use nix::unistd::gethostname;
use openlapi_tests::{Job, Marked, eventually};

use super::installed::{
    Installed, env_of_open_mpi, is_installed, mpicc_of_mpich, mpicc_of_open_mpi, skipped,
};
use super::{Folder, bare, numbered, program};

/// The daemons, in the order in which they were started. All their files are in the folder.
pub struct Cluster {
    daemons: Vec<Marked>,
    folder: Folder,
}

impl Cluster {
    /// Starts a cluster, or returns the reason why it cannot.
    pub fn start() -> Result<Self, String> {
        for command in ["munged", "slurmctld", "slurmd", "srun", "sbatch", "sinfo"] {
            if !is_installed(command) {
                return Err(format!("{command} is not installed, or not on the PATH"));
            }
        }
        if fs::metadata("/proc/self").is_ok_and(|process| process.uid() != 0) {
            return Err("only root can start Slurm's daemons".to_owned());
        }

        let mut cluster = Self { daemons: Vec::new(), folder: Folder::new() };
        let dir = cluster.folder.text();
        cluster.write_files()?;
        cluster.daemon(
            "munged",
            &[
                "--foreground",
                "--force",
                &format!("--key-file={dir}/munge.key"),
                &format!("--socket={dir}/munge.socket"),
                &format!("--pid-file={dir}/munged.pid"),
                &format!("--log-file={dir}/munged.log"),
                &format!("--seed-file={dir}/munged.seed"),
            ],
        );
        if !eventually(|| Path::new(&format!("{dir}/munge.socket")).exists()) {
            return Err(cluster.why("munged does not listen"));
        }
        let conf = format!("{dir}/slurm.conf");
        cluster.daemon("slurmctld", &["-D", "-f", &conf]);
        cluster.daemon("slurmd", &["-D", "-N", "node", "-f", &conf]);
        let is_idle = || {
            let state = cluster.client("sinfo").arg("-h").arg("-o").arg("%T").deadline(10).run();
            state.stdout.trim() == "idle"
        };
        if !eventually(is_idle) {
            return Err(cluster.why("the node does not come up"));
        }
        Ok(cluster)
    }

    fn write_files(&self) -> Result<(), String> {
        let dir = self.folder.text();
        let host = gethostname().map_err(|error| error.to_string())?;
        let host = host.to_string_lossy();
        let host = host.split('.').next().unwrap_or("localhost");
        let [ctld, slurmd] = free_ports();
        // As many tasks as a test needs, whatever the number of processors.
        let conf = format!(
            "ClusterName=test\n\
             SlurmctldHost={host}(127.0.0.1)\n\
             SlurmctldPort={ctld}\n\
             SlurmdPort={slurmd}\n\
             SlurmUser=root\n\
             AuthType=auth/munge\n\
             AuthInfo=socket={dir}/munge.socket\n\
             CredType=cred/munge\n\
             CommunicationParameters=NoInAddrAny,NoCtldInAddrAny\n\
             StateSaveLocation={dir}/state\n\
             SlurmdSpoolDir={dir}/spool\n\
             SlurmctldPidFile={dir}/slurmctld.pid\n\
             SlurmdPidFile={dir}/slurmd.pid\n\
             SlurmctldLogFile={dir}/slurmctld.log\n\
             SlurmdLogFile={dir}/slurmd.log\n\
             ProctrackType=proctrack/linuxproc\n\
             TaskPlugin=task/none\n\
             SwitchType=switch/none\n\
             JobAcctGatherType=jobacct_gather/none\n\
             SelectType=select/cons_tres\n\
             SelectTypeParameters=CR_CPU\n\
             MpiDefault=none\n\
             ReturnToService=2\n\
             SlurmdParameters=config_overrides\n\
             NodeName=node NodeHostname={host} NodeAddr=127.0.0.1 CPUs=64 State=UNKNOWN\n\
             PartitionName=all Nodes=node Default=YES MaxTime=INFINITE State=UP\n"
        );
        let path = &self.folder.0;
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).expect("the folder is ours");
        for name in ["state", "spool"] {
            fs::create_dir(path.join(name)).expect("a folder can be made");
        }
        fs::write(path.join("slurm.conf"), conf).expect("a file can be written");
        // The daemons belong to root: no user may guess the key.
        let mut key = [0; 1024];
        let mut random = fs::File::open("/dev/urandom").map_err(|error| error.to_string())?;
        random.read_exact(&mut key).map_err(|error| error.to_string())?;
        fs::write(path.join("munge.key"), key).expect("a file can be written");
        fs::set_permissions(path.join("munge.key"), fs::Permissions::from_mode(0o600))
            .expect("the key is ours");
        Ok(())
    }

    fn daemon(&mut self, name: &str, args: &[&str]) {
        let job = bare(Job::direct(name)).dir(&self.folder.0).deadline(900);
        self.daemons.push(Marked::start(args.iter().fold(job, Job::arg)));
    }

    /// One of Slurm's commands.
    fn client(&self, name: &str) -> Job {
        bare(Job::direct(name)).env("SLURM_CONF", self.folder.0.join("slurm.conf"))
    }

    /// The reason with the last words of the daemons.
    fn why(&self, what: &str) -> String {
        let mut text = what.to_owned();
        for name in ["munged", "slurmctld", "slurmd"] {
            let log = fs::read_to_string(self.folder.0.join(format!("{name}.log"))).unwrap_or_default();
            for line in log.lines().rev().take(3) {
                text += &format!("\n    {name}: {line}");
            }
        }
        text
    }

    /// Ends the daemons; no process may be left.
    pub fn stop(mut self) {
        while let Some(mut daemon) = self.daemons.pop() {
            daemon.running().signal(Signal::SIGTERM);
            let outcome = daemon.over();
            assert!(!outcome.timed_out, "a daemon ends on request\n{outcome}");
        }
    }

    /// `srun` with one of its ways to pass the tasks their numbers.
    pub fn srun(&self, mpi: &str) -> Installed {
        let command = ["srun", "--quiet", &format!("--mpi={mpi}")].map(str::to_owned).to_vec();
        let mut env = env_of_open_mpi();
        env.push(("SLURM_CONF".to_owned(), self.folder.0.join("slurm.conf").display().to_string()));
        Installed { command, env, folder: Folder::new() }
    }

    /// Whether srun has this way.
    pub fn knows(&self, way: &str) -> bool {
        let ways = self.client("srun").arg("--mpi=list").run();
        (ways.stdout + &ways.stderr).split_whitespace().any(|word| word == way)
    }

    /// Two jobs under Hydra at the same time in one step, as from the shell of an interactive session, and a program
    /// without a launcher in a batch script, which is not a task.
    fn launchers_inside(&self) {
        let folder = Folder::new();
        let apart = program("launchers/apart");
        let (apart, dir) = (apart.display(), folder.text());
        let jobs = format!(
            "mpiexec.hydra -launcher fork -n 2 '{apart}' 20 left '{dir}' right & left=$!\n\
             mpiexec.hydra -launcher fork -n 2 '{apart}' 20 right '{dir}' left & right=$!\n\
             wait $left && wait $right"
        );
        if is_installed("mpiexec.hydra") {
            for tasks in ["1", "2"] {
                // In every task but the first nothing has to be done.
                let script = format!("test $SLURM_PROCID = 0 || exit 0\n{jobs}");
                let job = self.client("srun").arg("--quiet").arg("-n").arg(tasks).arg("--mpi=none").arg("sh");
                let outcome = Marked::start(job.arg("-c").arg(script)).over();
                numbered(&outcome, 2, "left");
                numbered(&outcome, 2, "right");
                for name in ["left", "right"] {
                    fs::remove_file(folder.0.join(name)).expect("each job has left its name");
                }
            }
        } else {
            skipped("Hydra inside of a Slurm step", "mpiexec.hydra is not installed");
        }
        let job = self.client("sbatch").arg("--quiet").arg("--wait").arg("-n").arg("4");
        let output = folder.0.join("output");
        let job = job.arg("-o").arg(&output).arg("--wrap").arg(format!("'{apart}' 2 alone"));
        let mut outcome = Marked::start(job).over();
        outcome.stdout = fs::read_to_string(&output).unwrap_or_default();
        numbered(&outcome, 1, "alone");
    }
}

impl Drop for Cluster {
    /// When a test has failed: the last one started is ended first.
    fn drop(&mut self) {
        while self.daemons.pop().is_some() {}
    }
}

/// Two ports on which no process listens.
fn free_ports() -> [u16; 2] {
    let listeners =
        [(); 2].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port"));
    listeners.map(|listener| listener.local_addr().expect("it has a port").port())
}

#[test]
fn slurm() {
    let cluster = match Cluster::start() {
        Ok(cluster) => cluster,
        Err(why) => return skipped("jobs under Slurm", &why),
    };
    cluster.srun("none").serves();
    for (way, mpicc) in [("pmi2", mpicc_of_mpich as fn() -> Option<String>), ("pmix", mpicc_of_open_mpi)] {
        if cluster.knows(way) {
            let srun = cluster.srun(way);
            srun.serves();
            srun.serves_mpi(mpicc());
        } else {
            skipped(&format!("srun --mpi={way}"), "this Slurm does not have it");
        }
    }
    cluster.launchers_inside();
    cluster.stop();
}
