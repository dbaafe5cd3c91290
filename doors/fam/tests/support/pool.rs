//! A pool of daemons with OpenFAM's files of settings, in a folder that is removed at the end.

use super::{CONFORMANCE, built, compiled};
use openlapi_tests::{Job, Ports, eventually};
use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};

/// How a pool is made.
#[derive(Clone, Copy)]
pub struct Kind {
    /// How many daemons.
    pub daemons: usize,
    /// Whether their memory is files.
    pub persistent: bool,
    /// Bytes of a block.
    pub block: u64,
    /// `openfam_model` of programs.
    pub model: &'static str,
}

/// One daemon with volatile memory.
pub const PLAIN: Kind = Kind { daemons: 1, persistent: false, block: 1 << 20, model: "memory_server" };

/// A pool.
pub struct Pool {
    folder: PathBuf,
    ports: Ports,
    daemons: Vec<Option<Child>>,
}

impl Pool {
    /// A pool whose daemons listen.
    pub fn new(test: &str, kind: Kind) -> Self {
        let mut pool = Self::of_nobody(test, kind);
        // The keeper joins the others at its start.
        (0..kind.daemons).rev().for_each(|number| pool.start(number));
        pool
    }

    /// The files of a pool whose daemons do not run.
    pub fn of_nobody(test: &str, kind: Kind) -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let name = format!("openlapi-fam-{test}-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        // Other users read the settings.
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("a mode");
        let ports = Ports::claim(kind.daemons);
        let pool = Self { folder, ports, daemons: (0..kind.daemons).map(|_| None).collect() };
        let address = |port| format!("127.0.0.1:{port}");
        let addresses: Vec<String> = pool.ports.numbers().iter().map(address).collect();
        settings(&pool.folder, &addresses, kind);
        pool
    }

    /// The abstract name at which programs of this host meet a daemon.
    pub fn socket_name(&self, number: usize) -> String {
        fam::meeting::socket_name(self.ports.numbers()[number])
    }

    /// Starts a daemon, and waits until it listens; if it is the keeper, until all daemons that run
    /// have joined: on a busy machine it begins without one that is slow to answer.
    pub fn start(&mut self, number: usize) {
        let joined = |pool: &Self| pool.log().matches("of memory has joined").count();
        let before = joined(self);
        let log = fs::OpenOptions::new().create(true).append(true).open(self.folder.join("log"));
        let mut command = Command::new(built().join("openfamd"));
        command.arg("--config").arg(self.folder.join("config")).env("HOME", &self.folder);
        if number != 0 {
            command.args(["--server", &number.to_string()]);
        }
        let child = command.stderr(log.expect("a file")).spawn().expect("the daemon");
        self.daemons[number] = Some(child);
        let at = SocketAddr::from_abstract_name(self.socket_name(number)).expect("a name");
        let listens = eventually(|| UnixStream::connect_addr(&at).is_ok());
        assert!(listens, "daemon {number} does not listen: {}", self.log());
        let running = self.daemons.iter().flatten().count();
        let are_all = || number != 0 || joined(self) >= before + running;
        assert!(eventually(are_all), "not all of {running} daemons have joined: {}", self.log());
    }

    /// Kills a daemon by SIGKILL.
    pub fn kill(&mut self, number: usize) {
        if let Some(mut child) = self.daemons[number].take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// What the daemons have said.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// A program of this pool.
    pub fn job(&self, program: &Path) -> Job {
        self.reached_by(Job::direct(program).without_launchers())
    }

    /// A job, with the variables by which it reaches this pool.
    pub fn reached_by(&self, job: Job) -> Job {
        job.env("OPENFAM_ROOT", &self.folder).env("LD_LIBRARY_PATH", built())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        (0..self.daemons.len()).for_each(|number| self.kill(number));
        if std::thread::panicking() {
            println!("the daemons' log:\n{}", self.log());
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// OpenFAM's files, below `config` of a folder.
pub fn settings(folder: &Path, addresses: &[String], kind: Kind) {
    let config = folder.join("config");
    fs::create_dir_all(&config).expect("a folder");
    let write = |name: &str, text: String| fs::write(config.join(name), text).expect("a file");
    let model = kind.model;
    write(
        "fam_pe_config.yaml",
        format!("fam_client_interface_service_address: {}\nopenfam_model: {model}\n", addresses[0]),
    );
    let list: Vec<String> = addresses.iter().enumerate().map(|(id, at)| format!("{id}:{at}")).collect();
    write("fam_client_interface_config.yaml", format!("memsrv_list: [{}]\n", list.join(",")));
    let kept = if kind.persistent { "persistent" } else { "volatile" };
    let memory = |id| format!(" {id}:\n  memory_type: {kept}\n  fam_path: {}/memory{id}\n", folder.display());
    let memory: String = (0..addresses.len()).map(memory).collect();
    let backups = folder.join("backups");
    write(
        "fam_memoryserver_config.yaml",
        format!("Memservers:\n{memory}fam_backup_path: {}\n", backups.display()),
    );
    write(
        "fam_metadata_config.yaml",
        format!("metadata_path: {}/metadata\ndataitem_interleave_size: {}\n", folder.display(), kind.block),
    );
    for name in ["backups", "metadata"]
        .map(str::to_owned)
        .into_iter()
        .chain((0..addresses.len()).map(|id| format!("memory{id}")))
    {
        fs::create_dir_all(folder.join(name)).expect("a folder");
    }
}

/// The conformance program.
pub fn conformance() -> PathBuf {
    compiled("c++", "fam_conformance", CONFORMANCE, "libopenfam.so.3", &["-std=c++14"])
}

/// The cases of the conformance program that need a daemon.
pub fn cases() -> Vec<String> {
    let said = Job::direct(conformance()).arg("--list").without_launchers().run().ok().stdout.clone();
    let cases: Vec<String> = said.lines().map(str::to_owned).collect();
    assert!(cases.len() > 20, "hardly a case was listed: {cases:?}");
    cases
}
