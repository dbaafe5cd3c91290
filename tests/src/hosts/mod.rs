//! Several hosts on one machine: network namespaces that are joined by virtual links.
//!
//! Each host is a process (`cat`) in a network, mount and host-name namespace of its own. Nothing
//! has a name outside of them: the namespaces end with their processes, and the links with the
//! namespaces, so test processes that run at the same time do not meet, and a test process that is
//! killed leaves nothing: `cat` reads the end of a pipe from it. Host `i` is called `node{i}`, and
//! has the address `10.77.{rail}.{i + 1}` on the interface `rail{rail}`.
//!
//! Root makes the namespaces directly; other users make them inside of a user namespace, where the
//! system allows it.

mod launch;
mod network;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::Ipv4Addr;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getuid};

pub use launch::Launcher;
pub use network::Network;

use crate::job::Job;
use crate::processes::{alive, all, eventually};
use crate::stage::{build_dir, stage, workspace};

/// What hosts to make.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// How many hosts: at least 1.
    pub hosts: usize,
    /// How many links each of them has: at least 1.
    pub rails: usize,
    /// Whether each has its own /tmp, as containers have. Of what is there only the sources and
    /// what was built is seen.
    pub own_tmp: bool,
}

/// Hosts that exist until this is dropped.
#[derive(Debug)]
pub struct Hosts {
    hosts: Vec<Holder>,
    /// Has a bridge for each rail where there are more than two hosts.
    switch: Option<Holder>,
    layout: Layout,
    folder: PathBuf,
}

/// The process that keeps a host's namespaces.
#[derive(Debug)]
struct Holder {
    process: Child,
    /// The end of the input is the end of the process.
    _stdin: ChildStdin,
    /// The identity of the network namespace.
    network: PathBuf,
}

impl Hosts {
    /// Hosts with one link each and a common /tmp; the reason where this machine cannot have them.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn new(hosts: usize) -> Result<Self, String> {
        Self::with(Layout { hosts, rails: 1, own_tmp: false })
    }

    /// Any hosts; the reason where this machine cannot have them.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn with(layout: Layout) -> Result<Self, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Not below /tmp: every host sees it. The path is short, so that it can have sockets.
        let folder = PathBuf::from(format!("/var/tmp/lapi-hosts-{}-{number}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&folder).map_err(|error| error.to_string())?;
        let mut hosts = Self { hosts: Vec::new(), switch: None, layout, folder };
        hosts.write_names();
        fs::create_dir(hosts.folder.join("sys")).map_err(|error| error.to_string())?;
        for host in 0..layout.hosts {
            let holder = hosts.hold(&Self::name_of(host))?;
            hosts.hosts.push(holder);
        }
        if layout.hosts > 2 {
            hosts.switch = Some(hosts.hold("switch")?);
        }
        hosts.write_scripts();
        for rail in 0..layout.rails {
            hosts.join(rail)?;
        }
        Ok(hosts)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.hosts.len()
    }

    /// The name of a host, which all hosts can resolve to its first address.
    pub fn name(&self, host: usize) -> String {
        Self::name_of(host)
    }

    /// The address of a host on a rail.
    pub fn address(&self, host: usize, rail: usize) -> Ipv4Addr {
        assert!(host < self.layout.hosts && rail < self.layout.rails, "host {host} has no rail {rail}");
        address(host, rail)
    }

    /// The network namespace of a host, as `readlink /proc/self/ns/net` prints it there.
    pub fn network(&self, host: usize) -> String {
        self.hosts[host].network.display().to_string()
    }

    /// A folder that every host sees, and that is removed at the end.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs a script on a host, as root there, to its end.
    ///
    /// # Errors
    /// It has failed: what it has written.
    pub fn set_up(&self, host: usize, script: &str) -> Result<(), String> {
        self.run(host, &["sh", "-c", &format!("PATH=$PATH:/usr/sbin:/sbin; set -e; {script}")])
    }

    /// From now on the names of the hosts lead to these addresses.
    pub fn rename(&self, addresses: &[&str]) {
        let names = addresses.iter().enumerate().map(|(host, at)| format!("{at} {}\n", Self::name_of(host)));
        let text = "127.0.0.1 localhost\n::1 localhost\n".to_owned() + &names.collect::<String>();
        // The hosts have this file in the place of their own.
        fs::write(self.folder.join("hosts"), text).expect("a file can be written");
    }

    /// Takes a host's link of one rail up or down.
    pub fn set_link(&self, host: usize, rail: usize, up: bool) {
        let state = if up { "up" } else { "down" };
        let done = self.run(host, &["ip", "link", "set", &format!("rail{rail}"), state]);
        done.unwrap_or_else(|why| panic!("rail{rail} of host {host} cannot be taken {state}: {why}"));
    }

    /// Sockets of all hosts hold at most about this number of bytes in each direction: longer
    /// messages are written and read in pieces.
    pub fn set_socket_memory(&self, bytes: u32) {
        let script = format!(
            "for name in tcp_rmem tcp_wmem; do echo {bytes} {bytes} {bytes} > /proc/sys/net/ipv4/$name || exit 1; done"
        );
        for host in 0..self.count() {
            let done = self.run(host, &["sh", "-c", &script]);
            done.unwrap_or_else(|why| panic!("sockets of {bytes} bytes on host {host}: {why}"));
        }
    }

    /// From now on each host loses this part of the datagrams of UDP that arrive, in percent.
    ///
    /// # Errors
    /// nft is not installed, or the kernel lacks what it needs: a sentence.
    pub fn lose(&self, percent: u32) -> Result<(), String> {
        let rules = format!(
            "table inet loss {{ chain input {{ type filter hook input priority 0; \
             meta l4proto udp numgen random mod 100 < {percent} drop; }}; }}"
        );
        let script = format!("PATH=$PATH:/usr/sbin:/sbin; echo '{rules}' | nft -f -");
        (0..self.count()).try_for_each(|host| self.run(host, &["sh", "-c", &script]))
    }

    /// From now on each host loses the datagrams of UDP that are longer than this when they arrive,
    /// in bytes with their headers: as behind a link that takes no longer ones, and says nothing.
    ///
    /// # Errors
    /// Those of [`Self::lose`].
    pub fn narrow(&self, bytes: u32) -> Result<(), String> {
        let rules = format!(
            "table inet narrow {{ chain input {{ type filter hook input priority 0; \
             meta l4proto udp meta length > {bytes} drop; }}; }}"
        );
        // Datagrams that travel together would count as one.
        let rails = (0..self.layout.rails).map(|rail| format!("ip link set rail{rail} gso_max_segs 1 && "));
        let script =
            format!("PATH=$PATH:/usr/sbin:/sbin; {} echo '{rules}' | nft -f -", rails.collect::<String>());
        (0..self.count()).try_for_each(|host| self.run(host, &["sh", "-c", &script]))
    }

    /// The links of a rail take no longer messages than this from now on, in bytes without the
    /// header of Ethernet.
    pub fn set_mtu(&self, rail: usize, bytes: u32) {
        for host in 0..self.count() {
            let done =
                self.run(host, &["ip", "link", "set", &format!("rail{rail}"), "mtu", &bytes.to_string()]);
            done.unwrap_or_else(|why| panic!("rail{rail} of host {host} with {bytes} bytes: {why}"));
        }
    }

    /// From now on a rail of a host carries no datagrams of UDP, or does again. Its link stays up.
    ///
    /// # Errors
    /// Those of [`Self::lose`].
    pub fn silence(&self, host: usize, rail: usize, silent: bool) -> Result<(), String> {
        let chain = |hook: &str, name: &str| {
            format!(
                "chain {hook} {{ type filter hook {hook} priority 0; {name} \"rail{rail}\" meta l4proto udp drop; }};"
            )
        };
        let rules = match silent {
            true => {
                let (arrives, leaves) = (chain("input", "iifname"), chain("output", "oifname"));
                format!("table inet silence{rail} {{ {arrives} {leaves} }}")
            }
            false => format!("delete table inet silence{rail}"),
        };
        let script = format!("PATH=$PATH:/usr/sbin:/sbin; echo '{rules}' | nft -f -");
        self.run(host, &["sh", "-c", &script])
    }

    /// The job on this host: `poe`, a launcher, or a program.
    pub fn inside(&self, host: usize, job: Job) -> Job {
        job.under(self.entrance(host))
    }

    /// A command that becomes its arguments, a command that runs on this host, as the same process.
    pub fn entrance(&self, host: usize) -> PathBuf {
        self.folder.join(format!("enter{host}"))
    }

    /// A script with the arguments of ssh, `[-options] HOST COMMAND...`, that runs a command on a
    /// host from any of them. As under ssh, the command is one of a shell, in the home folder, with
    /// few variables.
    pub fn ssh(&self) -> PathBuf {
        self.folder.join("ssh")
    }

    /// All processes on the hosts, without those that keep them.
    pub fn processes(&self) -> Vec<i32> {
        let holders: Vec<i32> = self.holders().map(|holder| holder.process.id() as i32).collect();
        let inside = |pid: &i32| {
            let network = fs::read_link(format!("/proc/{pid}/ns/net"));
            network.is_ok_and(|network| self.holders().any(|holder| holder.network == network))
        };
        all().into_iter().filter(|pid| !holders.contains(pid)).filter(inside).collect()
    }

    /// Whether no process is left on the hosts, or will be soon.
    pub fn are_empty(&self) -> bool {
        eventually(|| self.processes().iter().all(|pid| !alive(*pid)))
    }

    fn name_of(host: usize) -> String {
        format!("node{host}")
    }

    fn holders(&self) -> impl Iterator<Item = &Holder> {
        self.hosts.iter().chain(&self.switch)
    }

    fn write_names(&self) {
        let mut text = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
        for host in 0..self.layout.hosts {
            text += &format!("{} {}\n", address(host, 0), Self::name_of(host));
        }
        fs::write(self.folder.join("hosts"), text).expect("a file can be written");
    }

    /// `enterN COMMAND...` from this machine, and `ssh` from inside of a host.
    fn write_scripts(&self) {
        let mut cases = String::new();
        for host in 0..self.count() {
            let enter = self.enter(host, true).join(" ");
            self.script(
                &format!("enter{host}"),
                &format!("exec {enter} sh -c 'cd \"$0\" && exec \"$@\"' \"$PWD\" \"$@\"\n"),
            );
            let names: Vec<String> =
                (0..self.layout.rails).map(|rail| address(host, rail).to_string()).collect();
            let (name, names) = (Self::name_of(host), names.join("|"));
            let enter = self.enter(host, false).join(" ");
            cases += &format!("{name}|{names}) enter='{enter}' ;;\n");
        }
        let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        self.script(
            "ssh",
            &format!(
                "while [ \"${{1#-}}\" != \"$1\" ]; do shift; done\n\
                 host=$1; shift\n\
                 case $host in\n{cases}*) echo \"ssh: no host $host\" >&2; exit 255 ;;\nesac\n\
                 exec $enter env -i LAPI_CONFIG=none HOME=\"$HOME\" PATH={path} OPENLAPI_TEST=\"$OPENLAPI_TEST\" \
                 sh -c 'cd; eval \"$1\"' sh \"$*\"\n"
            ),
        );
    }

    fn script(&self, name: &str, text: &str) {
        let path = self.folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}")).expect("a script can be written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a script may be executable");
    }

    /// The words before a command that is to run on a host.
    fn enter(&self, host: usize, from_outside: bool) -> Vec<String> {
        self.hosts[host].enter(from_outside)
    }

    /// Starts the process of one host.
    fn hold(&self, name: &str) -> Result<Holder, String> {
        let mut words = Vec::new();
        if let Some(first) = self.hosts.first() {
            words.extend(first.user(true));
        }
        words.extend(["unshare", "--net", "--mount", "--uts"].map(str::to_owned));
        if !getuid().is_root() && self.hosts.is_empty() {
            words.extend(["--user", "--map-root-user"].map(str::to_owned));
        }
        let own_tmp = if self.layout.own_tmp { own_tmp(name) } else { String::new() };
        // Without its own /sys a host sees the interfaces of the machine there. Slurm's daemons
        // look for the control groups.
        let script = format!(
            "set -e\nhostname {name}\ncd {}\nmount --bind hosts /etc/hosts\n\
             if mount -t sysfs sysfs sys 2>/dev/null; then\n\
             if [ -d /sys/fs/cgroup ]; then mount --rbind /sys/fs/cgroup sys/fs/cgroup; fi\n\
             mount --rbind sys /sys\nfi\n\
             {own_tmp}ip link set lo up\necho ready\nexec cat\n",
            self.folder.display()
        );
        let mut process = Command::new(&words[0])
            .args(&words[1..])
            .args(["sh", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", words[0]))?;
        let stdin = process.stdin.take().expect("stdin is a pipe");
        let mut line = String::new();
        let _ = BufReader::new(process.stdout.take().expect("stdout is a pipe")).read_line(&mut line);
        if line.trim() != "ready" {
            drop(stdin);
            let mut why = String::new();
            let _ = process.stderr.take().expect("stderr is a pipe").read_to_string(&mut why);
            let _ = process.wait();
            return Err(format!("network namespaces cannot be made here: {}", why.trim()));
        }
        let network =
            fs::read_link(format!("/proc/{}/ns/net", process.id())).map_err(|why| why.to_string())?;
        Ok(Holder { process, _stdin: stdin, network })
    }

    /// Makes the links of one rail.
    fn join(&self, rail: usize) -> Result<(), String> {
        let name = format!("rail{rail}");
        match &self.switch {
            Some(switch) => {
                switch.run(&["ip", "link", "add", "name", &name, "type", "bridge"])?;
                switch.run(&["ip", "link", "set", &name, "up"])?;
                for (host, holder) in self.hosts.iter().enumerate() {
                    let (port, pid) = (format!("r{rail}h{host}"), holder.process.id().to_string());
                    let words = ["type", "veth", "peer", "name", &name, "netns", &pid];
                    switch.run(&[&["ip", "link", "add", "name", &port], &words[..]].concat())?;
                    switch.run(&["ip", "link", "set", &port, "master", &name, "up"])?;
                }
            }
            None if self.count() == 2 => {
                let pid = self.hosts[1].process.id().to_string();
                let words = ["type", "veth", "peer", "name", &name, "netns", &pid];
                self.run(0, &[&["ip", "link", "add", "name", &name], &words[..]].concat())?;
            }
            None => self.run(0, &["ip", "link", "add", "name", &name, "type", "dummy"])?,
        }
        for host in 0..self.count() {
            self.run(host, &["ip", "address", "add", &format!("{}/24", address(host, rail)), "dev", &name])?;
            self.run(host, &["ip", "link", "set", &name, "up"])?;
        }
        (0..self.count()).try_for_each(|host| self.await_running(host, &name))
    }

    /// The kernel may take a second to mark an interface as running; libfabric does not
    /// list it before.
    fn await_running(&self, host: usize, name: &str) -> Result<(), String> {
        let script = format!(
            "for i in $(seq 100); do ip -o link show {name} | grep -qE 'state (UP|UNKNOWN)' && exit 0; sleep 0.05; done; \
             echo '{name} does not run' >&2; exit 1"
        );
        self.run(host, &["sh", "-c", &script])
    }

    /// Runs a command on a host to its end.
    ///
    /// # Errors
    /// It has failed: what it has said.
    pub fn run(&self, host: usize, words: &[&str]) -> Result<(), String> {
        self.hosts[host].run(words)
    }
}

/// The commands that give a host a /tmp of its own, in which only what the tests run from is seen:
/// a user may have cloned the sources there.
fn own_tmp(name: &str) -> String {
    let mut script = format!("mkdir tmp.{name}\nmount -t tmpfs -o mode=1777 tmpfs tmp.{name}\n");
    for seen in [workspace().to_owned(), build_dir(), stage().to_owned()] {
        if let Ok(below) = seen.strip_prefix("/tmp") {
            let (seen, below) = (seen.display(), below.display());
            script += &format!("mkdir -p 'tmp.{name}/{below}'\nmount --bind '{seen}' 'tmp.{name}/{below}'\n");
        }
    }
    script + &format!("mount --rbind tmp.{name} /tmp\n")
}

impl Holder {
    /// The words that enter the user namespace that all hosts have in common; none for root.
    fn user(&self, from_outside: bool) -> Vec<String> {
        if getuid().is_root() || !from_outside {
            return Vec::new();
        }
        let user = format!("--user=/proc/{}/ns/user", self.process.id());
        vec!["nsenter".to_owned(), user, "--preserve-credentials".to_owned()]
    }

    fn enter(&self, from_outside: bool) -> Vec<String> {
        let mut words = self.user(from_outside);
        if words.is_empty() {
            words.push("nsenter".to_owned());
        }
        words.extend(["net", "mount", "uts"].map(|kind| {
            let path = if kind == "mount" { "mnt" } else { kind };
            format!("--{kind}=/proc/{}/ns/{path}", self.process.id())
        }));
        words
    }

    /// Runs a command on the host to its end.
    fn run(&self, words: &[&str]) -> Result<(), String> {
        let enter = self.enter(true);
        let output = Command::new(&enter[0])
            .args(&enter[1..])
            .args(words)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("{}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Hosts {
    /// Ends every process on the hosts.
    fn drop(&mut self) {
        for pid in self.processes() {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn address(host: usize, rail: usize) -> Ipv4Addr {
    let byte = |number: usize| u8::try_from(number).expect("at most 254 hosts and rails");
    Ipv4Addr::new(10, 77, byte(rail), byte(host + 1))
}
