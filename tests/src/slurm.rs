//! A Slurm cluster that exists only for a test.

use std::fs;
use std::io::Read;
use std::net::Ipv4Addr;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::Signal;
use nix::unistd::getuid;

use crate::hosts::Hosts;
use crate::installed::{is_installed, is_library};
use crate::job::Job;
use crate::marked::Marked;
use crate::ports::Ports;
use crate::processes::eventually;

/// The daemons, in the order in which they were started. All their files are in the folder.
#[derive(Debug)]
pub struct Cluster<'a> {
    nodes: Vec<Node<'a>>,
    daemons: Vec<Marked>,
    folder: PathBuf,
    ports: Ports,
}

/// A machine of the cluster.
#[derive(Debug)]
pub struct Node<'a> {
    /// The node's host name.
    pub name: String,
    /// Where its daemons listen.
    pub address: Ipv4Addr,
    /// Which host it is; `None`: this machine.
    pub hosts: Option<(&'a Hosts, usize)>,
}

impl Node<'_> {
    fn inside(&self, job: Job) -> Job {
        match self.hosts {
            Some((hosts, host)) => hosts.inside(host, job),
            None => job,
        }
    }
}

impl Hosts {
    /// A Slurm cluster of these hosts; the reason where it cannot be started.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn slurm(&self) -> Result<Cluster<'_>, String> {
        let nodes = (0..self.count()).map(|host| Node {
            name: self.name(host),
            address: self.address(host, 0),
            hosts: Some((self, host)),
        });
        Cluster::start(nodes.collect())
    }
}

impl<'a> Cluster<'a> {
    /// Starts a cluster whose controller runs on the first node; the reason where that fails.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn start(nodes: Vec<Node<'a>>) -> Result<Self, String> {
        for command in ["munged", "slurmctld", "slurmd", "srun", "sbatch", "sinfo"] {
            if !is_installed(command) {
                return Err(format!("{command} is not installed, or not on the PATH"));
            }
        }
        if !getuid().is_root() {
            return Err("only root can start Slurm's daemons".to_owned());
        }
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = PathBuf::from(format!("/var/tmp/lapi-slurm-{}-{number}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&folder).map_err(|error| error.to_string())?;
        let mut cluster = Self { nodes, daemons: Vec::new(), folder, ports: Ports::claim(2) };
        let dir = cluster.folder.display().to_string();
        cluster.write_files()?;
        cluster.daemon(
            0,
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
        cluster.daemon(0, "slurmctld", &["-D", "-f", &conf]);
        for node in 0..cluster.nodes.len() {
            let name = cluster.nodes[node].name.clone();
            cluster.daemon(node, "slurmd", &["-D", "-N", &name, "-f", &conf]);
        }
        let are_idle = || {
            let state = cluster.client("sinfo").arg("-h").arg("-N").arg("-o").arg("%T").deadline(10).run();
            let states: Vec<&str> = state.stdout.lines().collect();
            states.len() == cluster.nodes.len() && states.iter().all(|state| state.trim() == "idle")
        };
        if !eventually(are_idle) {
            return Err(cluster.why("a node does not come up"));
        }
        Ok(cluster)
    }

    /// Whether srun can pass tasks their numbers in this way.
    pub fn knows(&self, way: &str) -> bool {
        let ways = self.client("srun").arg("--mpi=list").run();
        let is_listed = (ways.stdout + &ways.stderr).split_whitespace().any(|word| word == way);
        // It lists its module for PMIx also where that cannot open the library.
        is_listed && (way != "pmix" || is_library(c"libpmix.so"))
    }

    /// One of Slurm's commands, on the first node.
    pub fn client(&self, name: &str) -> Job {
        let job = Job::direct(name).without_launchers();
        self.nodes[0].inside(job.env("SLURM_CONF", self.configuration()))
    }

    /// A job of `tasks` tasks: each node has a block of them. `mpi` is one of srun's ways to pass
    /// tasks their numbers.
    pub fn srun(&self, mpi: &str, tasks: usize, program: impl AsRef<Path>) -> Job {
        let job = self.client("srun").arg("--quiet").arg(format!("--mpi={mpi}"));
        let nodes = self.nodes.len().min(tasks);
        let job = job.arg(format!("--ntasks-per-node={}", tasks.div_ceil(nodes)));
        job.arg("-N").arg(nodes.to_string()).arg("-n").arg(tasks.to_string()).arg(program.as_ref())
    }

    /// The value of SLURM_CONF.
    pub fn configuration(&self) -> PathBuf {
        self.folder.join("slurm.conf")
    }

    /// Ends the daemons; no process may be left.
    pub fn stop(mut self) {
        while let Some(mut daemon) = self.daemons.pop() {
            daemon.running().signal(Signal::SIGTERM);
            let outcome = daemon.over();
            assert!(!outcome.timed_out, "a daemon ends on request\n{outcome}");
        }
    }

    fn write_files(&self) -> Result<(), String> {
        let dir = self.folder.display();
        let (first, address) = (&self.nodes[0].name, self.nodes[0].address);
        let [ctld, slurmd] = [0, 1].map(|at| self.ports.numbers()[at]);
        // As many tasks as a test needs, whatever the number of processors.
        let mut conf = format!(
            "ClusterName=test\n\
             SlurmctldHost={first}({address})\n\
             SlurmctldPort={ctld}\n\
             SlurmdPort={slurmd}\n\
             SlurmUser=root\n\
             AuthType=auth/munge\n\
             AuthInfo=socket={dir}/munge.socket\n\
             CredType=cred/munge\n\
             CommunicationParameters=NoInAddrAny,NoCtldInAddrAny\n\
             StateSaveLocation={dir}/state\n\
             SlurmdSpoolDir={dir}/spool-%n\n\
             SlurmctldPidFile={dir}/slurmctld.pid\n\
             SlurmdPidFile={dir}/slurmd-%n.pid\n\
             SlurmctldLogFile={dir}/slurmctld.log\n\
             SlurmdLogFile={dir}/slurmd-%n.log\n\
             ProctrackType=proctrack/linuxproc\n\
             TaskPlugin=task/none\n\
             SwitchType=switch/none\n\
             JobAcctGatherType=jobacct_gather/none\n\
             SelectType=select/cons_tres\n\
             SelectTypeParameters=CR_CPU\n\
             MpiDefault=none\n\
             ReturnToService=2\n\
             SlurmdParameters=config_overrides\n\
             PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"
        );
        fs::create_dir(self.folder.join("state")).expect("a folder can be made");
        for Node { name, address, .. } in &self.nodes {
            conf +=
                &format!("NodeName={name} NodeHostname={name} NodeAddr={address} CPUs=64 State=UNKNOWN\n");
            fs::create_dir(self.folder.join(format!("spool-{name}"))).expect("a folder can be made");
        }
        fs::write(self.configuration(), conf).expect("a file can be written");
        // The daemons belong to root: no user may guess the key.
        let mut key = [0; 1024];
        let mut random = fs::File::open("/dev/urandom").map_err(|error| error.to_string())?;
        random.read_exact(&mut key).map_err(|error| error.to_string())?;
        let path = self.folder.join("munge.key");
        fs::write(&path, key).expect("a file can be written");
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("the key is ours");
        Ok(())
    }

    fn daemon(&mut self, node: usize, name: &str, args: &[&str]) {
        let job = Job::direct(name).without_launchers().dir(&self.folder).deadline(900);
        let job = args.iter().fold(job, Job::arg);
        self.daemons.push(Marked::start(self.nodes[node].inside(job)));
    }

    /// The reason with the last lines of the daemons' logs.
    fn why(&self, what: &str) -> String {
        let mut text = what.to_owned();
        let nodes = self.nodes.iter().map(|node| format!("slurmd-{}", node.name));
        for name in ["munged".to_owned(), "slurmctld".to_owned()].into_iter().chain(nodes) {
            let log = fs::read_to_string(self.folder.join(format!("{name}.log"))).unwrap_or_default();
            for line in log.lines().rev().take(3) {
                text += &format!("\n    {name}: {line}");
            }
        }
        text
    }
}

impl Drop for Cluster<'_> {
    /// The last daemon is ended first.
    fn drop(&mut self) {
        while self.daemons.pop().is_some() {}
        let _ = fs::remove_dir_all(&self.folder);
    }
}
