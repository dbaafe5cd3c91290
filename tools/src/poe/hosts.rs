//! The machines of a job: this one, or those of a host file or of a Slurm allocation.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;
use std::process::Command;

use crate::named_file;
use nix::ifaddrs::getifaddrs;

use super::error::{Error, reason, say};
use super::settings::Settings;

/// The machines that a job may use.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct List {
    /// Where they are named; for messages.
    source: String,
    /// The machines, each with the number of tasks that its line has place for.
    entries: Vec<(String, usize)>,
    /// All of them are this machine.
    is_here: bool,
}

impl List {
    /// The machines of MP_HOSTFILE; else, when `several` are asked for in a Slurm allocation with
    /// others than this, those of the allocation. `None`: only this machine.
    pub(super) fn of(settings: &Settings, several: bool) -> Result<Option<Self>, Error> {
        // "NULL" is the old way to say that there is none, and this the usual one.
        let is_none = |file: &str| file.eq_ignore_ascii_case("null") || file == "/dev/null";
        let file = settings.text("MP_HOSTFILE")?.filter(|file| !is_none(file));
        let mine = this_host()?;
        let is_here = |list: &Self| list.distinct().into_iter().all(|host| is_this(host, &mine));
        match file {
            Some(file) => {
                let text = named_file::read(Path::new(file)).map_err(|error| Error::system(file, error))?;
                let list = Self::parse(file, &text)?;
                Ok(Some(Self { is_here: is_here(&list), ..list }))
            }
            None if several => Ok(allocation(settings)?.filter(|list| !is_here(list))),
            None => Ok(None),
        }
    }

    /// Reads a host file: `HOST` or `HOST:N` in each line, with nothing of interest after it; lines
    /// that begin with !, * or # are comments.
    pub(super) fn parse(file: &str, text: &str) -> Result<Self, Error> {
        let mut entries = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let Some(word) = line.split_whitespace().next().filter(|word| !word.starts_with(['!', '*', '#']))
            else {
                continue;
            };
            // More than one colon: an address of IPv6.
            let (host, count) = match word.split_once(':') {
                Some((host, count)) if !count.contains(':') => (host, count.parse().ok()),
                _ => (word, Some(1)),
            };
            match count {
                Some(count @ 1..=65_536) if !host.is_empty() => {
                    entries.push((host.to_owned(), count));
                }
                _ => {
                    return Err(Error::asked(format!(
                        "{file}, line {number}: \"{word}\" is not HOST or HOST:N"
                    )));
                }
            }
        }
        if entries.is_empty() {
            return Err(Error::asked(format!("{file} names no host")));
        }
        Ok(Self { source: file.to_owned(), entries, is_here: false })
    }

    /// Where they are named.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Whether all of them are this machine: then they only say how many tasks there are.
    pub(super) fn is_here(&self) -> bool {
        self.is_here
    }

    /// How many machines there are.
    pub(super) fn machines(&self) -> usize {
        if self.is_here { 1 } else { self.distinct().len() }
    }

    /// The number of tasks that it has place for.
    pub(super) fn tasks(&self) -> usize {
        self.entries.iter().map(|(_, count)| count).sum()
    }

    /// The machine of each of these tasks, in the order of the entries.
    fn places(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().flat_map(|(host, count)| std::iter::repeat_n(&**host, *count))
    }

    /// Each machine once, in the order of their first entries.
    pub(super) fn distinct(&self) -> Vec<&str> {
        let mut known = HashSet::new();
        self.entries.iter().map(|(host, _)| &**host).filter(|host| known.insert(*host)).collect()
    }

    /// The machine of each of `tasks` tasks. Task i is on the machine of entry i, unless the number
    /// of machines, or that of tasks on each, is given (MP_NODES, MP_TASKS_PER_NODE): then each
    /// machine has a block of tasks.
    pub(super) fn place(&self, settings: &Settings, tasks: usize) -> Result<Vec<String>, Error> {
        let number = |variable| -> Result<Option<usize>, Error> {
            Ok(settings.given(variable)?.and_then(|text| text.parse().ok()))
        };
        let nodes = match (number("MP_NODES")?, number("MP_TASKS_PER_NODE")?) {
            (None, None) if tasks <= self.tasks() => {
                return Ok(self.places().take(tasks).map(str::to_owned).collect());
            }
            (None, None) => {
                let (source, entries) = (&self.source, self.tasks());
                return Err(Error::asked(format!(
                    "{source} names hosts for {entries} tasks, but the job has {tasks}"
                )));
            }
            (Some(nodes), _) => nodes.min(tasks),
            (None, Some(each)) => tasks / each,
        };
        let distinct = self.distinct();
        if nodes > distinct.len() {
            let (source, count) = (&self.source, distinct.len());
            return Err(Error::asked(format!("{nodes} hosts are needed, but {source} names {count}")));
        }
        let share = |node| tasks / nodes + usize::from(node < tasks % nodes);
        let blocks = distinct.iter().take(nodes).enumerate();
        Ok(blocks.flat_map(|(node, host)| std::iter::repeat_n((*host).to_owned(), share(node))).collect())
    }
}

/// The machines of the Slurm allocation in which `poe` runs, if there is one. Where they cannot be
/// found, it is said why.
fn allocation(settings: &Settings) -> Result<Option<List>, Error> {
    let Ok(nodes) = std::env::var("SLURM_JOB_NODELIST") else { return Ok(None) };
    match hosts_of(&nodes) {
        Ok(hosts) => {
            let entries = hosts.into_iter().map(|host| (host, 1)).collect();
            Ok(Some(List { source: "the Slurm allocation".to_owned(), entries, is_here: false }))
        }
        Err(why) => {
            if settings.info_level()? > 0 {
                say(&format!("warning: the hosts of the Slurm allocation ({nodes}) are not known: {why}"));
            }
            Ok(None)
        }
    }
}

/// The hosts of a list of Slurm's such as `node[0-3]`, or why they are not known.
fn hosts_of(nodes: &str) -> Result<Vec<String>, String> {
    const SCONTROL: &str = "scontrol";
    let lines = |bytes: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(bytes);
        text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
    };
    let output = Command::new(SCONTROL)
        .args(["show", "hostnames", nodes])
        .output()
        .map_err(|error| format!("{SCONTROL}: {}", reason(&error)))?;
    let (hosts, said) = (lines(&output.stdout), lines(&output.stderr));
    if output.status.success() && !hosts.is_empty() {
        return Ok(hosts);
    }
    Err(match (said.is_empty(), output.status.success()) {
        (false, _) => format!("{SCONTROL} says: {}", said.join("; ")),
        (true, true) => format!("{SCONTROL} names none"),
        (true, false) => format!("{SCONTROL} has failed ({})", output.status),
    })
}

/// Writes the machines that are used to the file that MP_SAVEHOSTFILE names: this one, or one a
/// line for each task.
pub(super) fn save(settings: &Settings, hosts: Option<&[String]>) -> Result<(), Error> {
    let Some(file) = settings.text("MP_SAVEHOSTFILE")? else { return Ok(()) };
    let text = match hosts {
        Some(hosts) => hosts.iter().fold(String::new(), |mut text, host| {
            let _ = writeln!(text, "{host}");
            text
        }),
        None => format!("{}\n", this_host()?),
    };
    std::fs::write(file, text).map_err(|error| Error::system(file, error))
}

fn this_host() -> Result<String, Error> {
    let mine = nix::unistd::gethostname()
        .map_err(|error| Error::system("cannot find the name of this machine", error))?;
    Ok(mine.to_string_lossy().into_owned())
}

/// The addresses of the interfaces of this machine.
pub(super) fn addresses() -> Vec<IpAddr> {
    let found = getifaddrs().into_iter().flatten().filter_map(|interface| {
        let address = interface.address?;
        let four = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        four.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
    });
    found.collect()
}

/// Whether a host is the one we run on: by its name, or because an interface has one of its
/// addresses. (That an address can be bound says nothing: net.ipv4.ip_nonlocal_bind.)
fn is_this(host: &str, mine: &str) -> bool {
    let short = |name: &str| name.split('.').next().unwrap_or(name).to_ascii_lowercase();
    if host.eq_ignore_ascii_case("localhost") || host.eq_ignore_ascii_case(mine) {
        return true;
    }
    if !(host.contains('.') && mine.contains('.')) && short(host) == short(mine) {
        return true;
    }
    let here = addresses();
    (host, 0).to_socket_addrs().is_ok_and(|its| {
        its.into_iter().any(|address| address.ip().is_loopback() || here.contains(&address.ip()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> List {
        List::parse("f", text).expect("the file is right")
    }

    #[test]
    fn a_host_file_has_a_host_a_line() {
        let text = "! comment\n* comment\n# comment\n\none\n  two:2 extra words\nfe80::1\none:1\n";
        assert_eq!(list(text).places().collect::<Vec<_>>(), ["one", "two", "two", "fe80::1", "one"]);
        assert_eq!(list(text).distinct(), ["one", "two", "fe80::1"]);
        for (text, message) in [
            ("a\n\nb:x\n", "f, line 3: \"b:x\" is not HOST or HOST:N"),
            (":2\n", "f, line 1: \":2\" is not HOST or HOST:N"),
            ("# a\na:0\n", "f, line 2: \"a:0\" is not HOST or HOST:N"),
            ("\n# one\n", "f names no host"),
        ] {
            assert_eq!(List::parse("f", text).expect_err(message).to_string(), message);
        }
    }

    /// The number in a line may be large: nothing is kept for each of its tasks.
    #[test]
    fn a_line_for_many_tasks_is_one_entry() {
        let list = list(&"one:65536\ntwo:65536\n".repeat(500));
        assert_eq!((list.entries.len(), list.tasks()), (1000, 1000 * 65_536));
        assert_eq!(list.distinct(), ["one", "two"]);
        let placed = list.place(&Settings::of(&[]), 65_537).expect("there is place");
        assert_eq!((placed[65_535].as_str(), placed[65_536].as_str()), ("one", "two"));
    }

    #[test]
    fn tasks_follow_the_lines_or_are_in_blocks() {
        let place = |variables: &[(&str, &str)], tasks| {
            let placed = list("b\na\nb\nc\n").place(&Settings::of(variables), tasks);
            placed.map(|hosts| hosts.concat()).map_err(|error| error.to_string())
        };
        assert_eq!(place(&[], 3).as_deref(), Ok("bab"));
        assert_eq!(place(&[], 4).as_deref(), Ok("babc"));
        assert_eq!(place(&[], 5), Err("f names hosts for 4 tasks, but the job has 5".to_owned()));
        assert_eq!(place(&[("MP_NODES", "2")], 5).as_deref(), Ok("bbbaa"));
        assert_eq!(place(&[("MP_TASKS_PER_NODE", "2")], 6).as_deref(), Ok("bbaacc"));
        assert_eq!(place(&[("MP_NODES", "3"), ("MP_TASKS_PER_NODE", "1")], 3).as_deref(), Ok("bac"));
        assert_eq!(place(&[("MP_NODES", "4")], 4), Err("4 hosts are needed, but f names 3".to_owned()));
    }

    #[test]
    fn the_number_of_tasks_comes_from_the_file_when_it_is_not_given() {
        let asked = |variables: &[(&str, &str)]| {
            super::super::commands::tasks_asked(&Settings::of(variables), Some(&list("b\na:2\n")))
                .ok()
                .flatten()
        };
        assert_eq!(asked(&[]), Some(3));
        assert_eq!(asked(&[("MP_PROCS", "2")]), Some(2));
        assert_eq!(asked(&[("MP_TASKS_PER_NODE", "4")]), Some(8));
        assert_eq!(asked(&[("MP_NODES", "2"), ("MP_TASKS_PER_NODE", "3")]), Some(6));
        assert_eq!(asked(&[("MP_PGMMODEL", "mpmd")]), None);
    }

    #[test]
    fn names_of_this_host_are_one_machine_for_all_tasks() {
        let here = List { is_here: true, ..list("localhost:4\n127.0.0.1\n") };
        let asked = |variables: &[(&str, &str)]| {
            super::super::commands::tasks_asked(&Settings::of(variables), Some(&here))
                .map_err(|e| e.to_string())
        };
        assert_eq!(asked(&[]), Ok(Some(5)));
        assert_eq!(asked(&[("MP_PROCS", "7")]), Ok(Some(7)));
        assert_eq!(asked(&[("MP_TASKS_PER_NODE", "3")]), Ok(Some(3)));
        let many = list("localhost:65536\n");
        let message = super::super::commands::tasks_asked(&Settings::of(&[]), Some(&many)).expect_err("many");
        let said = "f, the number of tasks: \"65536\" is not a number from 1 to 1024";
        assert_eq!(message.to_string(), said);
    }

    #[test]
    fn this_host_has_several_names() {
        for name in ["localhost", "here", "HERE", "here.example.org", "127.0.0.1", "::1"] {
            assert!(is_this(name, "here"), "{name}");
        }
        assert!(is_this("here", "here.example.org"));
        // An address of the range that is reserved for documents.
        assert!(!is_this("192.0.2.1", "here"));
        assert!(!is_this("here.example.com", "here.example.org"));
    }
}
