//! What the tests of librpmem share: the library, a program in C, and a host
//! with a pool. Each test program uses some of it.
#![allow(dead_code)]

use openlapi_tests::{Job, compile_with, door, workspace};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// 8 MiB.
pub const PART: u64 = 8 << 20;

/// The folder with the library and the daemon.
pub fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| door("rpmem", env!("CARGO_BIN_EXE_rpmemd")))
}

/// The program of the tests in C.
pub fn calls() -> PathBuf {
    program("rpmem_calls", "doors/rpmem/tests/c/calls.c")
}

/// A program in C, with our header and our library.
pub fn program(name: &str, source: &str) -> PathBuf {
    let library = built().join("librpmem.so.1");
    let include = workspace().join("doors/rpmem/include");
    let flags = [
        format!("-I{}", include.display()),
        library.display().to_string(),
        format!("-Wl,-rpath,{}", built().display()),
        "-pthread".to_owned(),
        "-Wextra".to_owned(),
        "-Werror".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    compile_with(Path::new("cc"), name, &[source], &flags)
}

/// A host with pool sets, in a folder that is removed at the end. Its name is anything: a script
/// that stands for ssh runs each command on this machine.
pub struct Host {
    folder: PathBuf,
    /// What stands for ssh.
    pub ssh: PathBuf,
}

impl Host {
    /// A host of this test.
    pub fn new(test: &str) -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let name = format!("openlapi-rpmem-{test}-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(folder.join("sets")).expect("a folder");
        let host = Self { ssh: folder.join("ssh"), folder };
        host.write(
            "rpmemd.conf",
            &format!(
                "poolset-dir = {0}/sets\nuse-syslog = no\nlog-file = {0}/log\nlog-level = debug\n",
                host.folder.display()
            ),
        );
        host.script("ssh", "for command; do :; done\nexec sh -c \"$command\"\n");
        host
    }

    /// A file of the host.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file of the host.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a file");
    }

    /// Writes a script of the host.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        self.write(name, &format!("#!/bin/sh\n{text}"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
        path
    }

    /// Writes the set file `name` with this many parts, `name0` and so on.
    pub fn set(&self, name: &str, options: &str, parts: usize) {
        let parts = (0..parts).map(|part| format!("{PART} {}\n", self.part(name, part).display()));
        let text = format!("PMEMPOOLSET\n{options}\n{}", parts.collect::<String>());
        self.write(&format!("sets/{name}"), &text);
    }

    /// The file of a part of [`Self::set`].
    pub fn part(&self, name: &str, part: usize) -> PathBuf {
        self.path(&format!("{name}{part}"))
    }

    /// Whether no daemon has a part of [`Self::set`].
    pub fn is_free(&self, name: &str) -> bool {
        let parts = (0..).map(|part| self.part(name, part)).take_while(|part| part.exists());
        let mut free = parts.map(|part| File::open(part).is_ok_and(|part| part.try_lock().is_ok()));
        free.next() == Some(true) && free.all(|free| free)
    }

    /// What starts the daemon.
    pub fn command(&self) -> String {
        format!("{} -c {}", built().join("rpmemd").display(), self.path("rpmemd.conf").display())
    }

    /// The job, with the variables by which it reaches this host.
    pub fn reached_by(&self, job: Job) -> Job {
        job.env("RPMEM_SSH", &self.ssh)
            .env("RPMEM_CMD", self.command())
            .env("LD_LIBRARY_PATH", built())
            .without_launchers()
    }

    /// The test program with these words.
    pub fn calls(&self, words: &[&str]) -> Job {
        let job = words.iter().fold(Job::direct(calls()), |job, word| job.arg(word));
        self.reached_by(job)
    }

    /// One call: errno's name and the rest of the line.
    pub fn try_call(&self, call: &str, set: &str, size: u64) -> (String, String) {
        self.try_by(call, set, size, |job| job)
    }

    /// One call of a job that is changed before.
    pub fn try_by(
        &self,
        call: &str,
        set: &str,
        size: u64,
        change: impl FnOnce(Job) -> Job,
    ) -> (String, String) {
        let job = change(self.calls(&["try", call, "host", set, &size.to_string()]));
        let said = job.run().ok().stdout.clone();
        let (errno, rest) = said.trim_end().split_once(' ').expect("two words");
        (errno.to_owned(), rest.to_owned())
    }

    /// The log of the daemons.
    pub fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
