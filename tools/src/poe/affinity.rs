//! Which processors each task may use (MP_TASK_AFFINITY).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::str::FromStr;

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

use super::claims::Claims;
use super::error::{Error, say};

/// The request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Affinity {
    /// Tasks run where the kernel puts them. Lists of memory domains, and adapters, which IBM's
    /// machines had, mean this too.
    Free,
    /// The processors of one memory domain for each task, domains in turn.
    Domains,
    /// This number of cores, with all their hardware threads, for each task.
    Cores(usize),
    /// This number of processors (hardware threads) for each task.
    Processors(usize),
    /// These processors for each task, in turn.
    List(Vec<Vec<usize>>),
}

impl FromStr for Affinity {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let text = text.to_ascii_lowercase();
        let (word, count) = match text.split_once(':') {
            Some(("list", list)) => return each_list(list).map(Self::List).ok_or(()),
            Some((word, count)) => (word, count.parse().ok().filter(|count| *count > 0).ok_or(())?),
            None => (&*text, 1),
        };
        match word {
            "core" => Ok(Self::Cores(count)),
            "cpu" => Ok(Self::Processors(count)),
            _ if text.contains(':') => Err(()),
            "yes" => Ok(Self::Cores(1)),
            "numa" | "mcm" => Ok(Self::Domains),
            "no" | "none" | "sni" | "-1" => Ok(Self::Free),
            list if list.split(',').all(|number| number.parse::<u32>().is_ok()) => Ok(Self::Free),
            _ => Err(()),
        }
    }
}

/// Reads `0,2,4-5`: an element for each task. No number of a processor has more than five digits.
fn each_list(list: &str) -> Option<Vec<Vec<usize>>> {
    let number = |text: &str| text.parse().ok().filter(|number: &usize| *number < CpuSet::count());
    let element = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let range: Vec<usize> = (number(first)?..=number(last)?).collect();
        (!range.is_empty()).then_some(range)
    };
    list.split(',').map(element).collect()
}

/// Such sets in words, for each of the tasks.
pub(super) fn described(sets: &[CpuSet], tasks: usize) -> Vec<String> {
    let cores = cores();
    let text = |set: Option<&CpuSet>| {
        let is_in = |cpu: &&usize| set.is_none_or(|set| set.is_set(**cpu) == Ok(true));
        let mut processors: Vec<usize> = cores.iter().flatten().filter(is_in).copied().collect();
        processors.sort_unstable();
        let count = cores.iter().filter(|core| core.iter().any(|cpu| is_in(&cpu))).count();
        let plural = |count| if count == 1 { "" } else { "s" };
        let list: Vec<String> = processors.iter().map(usize::to_string).collect();
        let list = format!("processor{} {}", plural(list.len()), list.join(", "));
        match set {
            Some(_) => format!("bound to {count} core{}, {list}", plural(count)),
            None => format!("not bound, {list}"),
        }
    };
    if sets.is_empty() { vec![text(None); tasks] } else { sets.iter().map(|set| text(Some(set))).collect() }
}

/// How the processors of a job are chosen.
pub(super) struct Choice<'a> {
    pub asked: Option<Affinity>,
    /// Other jobs share the cores (MP_CPU_USE=multiple).
    pub shared: bool,
    /// `poe` warns when it cannot do what was asked.
    pub verbose: bool,
    /// What other jobs have taken, and this one takes; `None`: they are not looked at.
    pub claims: Option<&'a mut Claims>,
}

/// The processors of each of `tasks` tasks; empty when they are not pinned.
///
/// By default each task of a job of several gets a core of its own, if there are enough cores that
/// are not shared and that no other job has. A job of one task has nothing to gain.
pub(super) fn sets(choice: Choice<'_>, tasks: usize) -> Result<Vec<CpuSet>, Error> {
    let Choice { asked, shared, verbose, claims } = choice;
    let insists = asked.is_some();
    let affinity = match asked {
        Some(affinity) => affinity,
        None if tasks == 1 || shared => Affinity::Free,
        None => Affinity::Cores(1),
    };
    let all = cores();
    let mut none = Claims::none();
    let claims = claims.unwrap_or(&mut none);
    let mut chosen = match &affinity {
        Affinity::Free => return Ok(Vec::new()),
        // Tasks of other jobs may use the same domain.
        Affinity::Domains => {
            let domains = domains(Path::new("/sys/devices/system/node"), &all);
            return Ok(domains.iter().cycle().take(tasks).map(|domain| cpu_set(domain)).collect());
        }
        Affinity::List(list) => listed(list, &all, tasks)?,
        _ => claims.take(|claims| {
            let is_free = |core: &&Vec<usize>| !core.iter().any(|cpu| claims.are_taken(*cpu));
            let free: Vec<Vec<usize>> = all.iter().filter(is_free).cloned().collect();
            divide(&free, &affinity, tasks)
        }),
    };
    if insists {
        if chosen.is_empty() {
            // Cores of other jobs, rather than none.
            chosen = divide(&all, &affinity, tasks);
        }
        claims.hold(&chosen);
    }
    if chosen.is_empty() && insists && verbose {
        say(&format!("warning: not enough processors for {tasks} tasks; no task is pinned"));
    }
    Ok(chosen.iter().map(|processors| cpu_set(processors)).collect())
}

/// The first elements of a list, when each task has one that `poe` may use.
fn listed(list: &[Vec<usize>], cores: &[Vec<usize>], tasks: usize) -> Result<Vec<Vec<usize>>, Error> {
    if list.len() < tasks {
        let count = list.len();
        return Err(Error::asked(format!(
            "-task_affinity: the list has processors for {count} of {tasks} tasks"
        )));
    }
    let list = &list[..tasks];
    let missing = list.iter().flatten().find(|cpu| !cores.iter().flatten().any(|mine| mine == *cpu));
    match missing {
        Some(cpu) => {
            Err(Error::asked(format!("-task_affinity: poe may not use processor {cpu} (see lapi_info)")))
        }
        None => Ok(list.to_vec()),
    }
}

/// Divides the processors of `cores` among the tasks; empty when there are too few.
fn divide(cores: &[Vec<usize>], affinity: &Affinity, tasks: usize) -> Vec<Vec<usize>> {
    let (units, each): (Vec<Vec<usize>>, usize) = match *affinity {
        Affinity::Free | Affinity::Domains | Affinity::List(_) => return Vec::new(),
        Affinity::Cores(each) => (cores.to_vec(), each),
        Affinity::Processors(each) => {
            // First one thread of every core, so that tasks share a core only when they must.
            let depth = cores.iter().map(Vec::len).max().unwrap_or(0);
            let threads = (0..depth).flat_map(|level| cores.iter().filter_map(move |core| core.get(level)));
            (threads.map(|processor| vec![*processor]).collect(), each)
        }
    };
    if each.checked_mul(tasks).is_none_or(|needed| needed > units.len()) {
        return Vec::new();
    }
    units.chunks(each).take(tasks).map(<[Vec<usize>]>::concat).collect()
}

/// The processors that `poe` may use, by core.
fn cores() -> Vec<Vec<usize>> {
    let Ok(mine) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    let mut left: BTreeSet<usize> =
        (0..CpuSet::count()).filter(|cpu| mine.is_set(*cpu) == Ok(true)).collect();
    let mut cores = Vec::new();
    while let Some(first) = left.pop_first() {
        let path = format!("/sys/devices/system/cpu/cpu{first}/topology/thread_siblings_list");
        let mut core = vec![first];
        core.extend(
            cpu_list(&fs::read_to_string(path).unwrap_or_default())
                .into_iter()
                .filter(|cpu| left.remove(cpu)),
        );
        cores.push(core);
    }
    cores
}

/// The memory domains (NUMA nodes) that have some of these processors, in ascending order, each
/// with those; one of all where the kernel does not say.
fn domains(folder: &Path, cores: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mine: BTreeSet<usize> = cores.iter().flatten().copied().collect();
    let found = fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|entry| {
        let number: usize = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
        let list = cpu_list(&fs::read_to_string(entry.path().join("cpulist")).ok()?);
        let processors: Vec<usize> = list.into_iter().filter(|cpu| mine.contains(cpu)).collect();
        (!processors.is_empty()).then_some((number, processors))
    });
    let found: BTreeMap<usize, Vec<usize>> = found.collect();
    if found.is_empty() { vec![mine.into_iter().collect()] } else { found.into_values().collect() }
}

/// Reads the kernel's way to write a set of processors, such as `0-3,8`.
fn cpu_list(text: &str) -> Vec<usize> {
    text.trim()
        .split(',')
        .filter_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some(first.parse().ok()?..=last.parse().ok()?)
        })
        .flatten()
        .collect()
}

fn cpu_set(processors: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    for processor in processors {
        set.set(*processor).expect("the processor comes from such a set");
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_old_scripts_are_understood() {
        for (text, meant) in [
            ("yes", Some(Affinity::Cores(1))),
            ("CORE", Some(Affinity::Cores(1))),
            ("core:4", Some(Affinity::Cores(4))),
            ("CPU:2", Some(Affinity::Processors(2))),
            ("no", Some(Affinity::Free)),
            ("MCM", Some(Affinity::Domains)),
            ("numa", Some(Affinity::Domains)),
            ("SNI", Some(Affinity::Free)),
            ("-1", Some(Affinity::Free)),
            ("0,2,1", Some(Affinity::Free)),
            ("LIST:0,2-3", Some(Affinity::List(vec![vec![0], vec![2, 3]]))),
            ("list:1", Some(Affinity::List(vec![vec![1]]))),
            ("list:", None),
            ("list:1,,2", None),
            ("list:3-2", None),
            ("list:99999", None),
            ("core:0", None),
            ("mcm:2", None),
            ("perhaps", None),
            ("", None),
        ] {
            assert_eq!(text.parse().ok(), meant, "{text}");
        }
    }

    #[test]
    fn each_task_gets_its_own() {
        let cores = [vec![0, 4], vec![1, 5], vec![2, 6], vec![3, 7]];
        assert_eq!(divide(&cores, &Affinity::Cores(1), 2), [vec![0, 4], vec![1, 5]]);
        assert_eq!(divide(&cores, &Affinity::Cores(2), 2), [vec![0, 4, 1, 5], vec![2, 6, 3, 7]]);
        assert_eq!(
            divide(&cores, &Affinity::Processors(1), 5),
            [vec![0], vec![1], vec![2], vec![3], vec![4]]
        );
        assert!(divide(&cores, &Affinity::Cores(1), 5).is_empty());
        assert!(divide(&cores, &Affinity::Cores(usize::MAX), 2).is_empty());
        assert!(divide(&[], &Affinity::Cores(1), 1).is_empty());
    }

    #[test]
    fn a_list_has_processors_for_every_task() {
        let cores = [vec![0, 4], vec![1, 5]];
        assert_eq!(
            listed(&[vec![4], vec![0, 1], vec![9]], &cores, 2).expect("they exist"),
            [vec![4], vec![0, 1]]
        );
        let said = |list: &[Vec<usize>]| listed(list, &cores, 2).expect_err("it is wrong").to_string();
        assert!(said(&[vec![0]]).contains("for 1 of 2 tasks"));
        assert!(said(&[vec![0], vec![1, 2]]).contains("processor 2"));
    }

    #[test]
    fn memory_domains_have_the_processors_that_may_be_used() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        for (name, list) in [("node10", "8-11"), ("node2", "0-3,6"), ("node3", "4,5"), ("possible", "2-10")] {
            let node = folder.path().join(name);
            fs::create_dir(&node).and_then(|()| fs::write(node.join("cpulist"), list)).expect("written");
        }
        let cores = [vec![0, 6], vec![1], vec![8], vec![11]];
        assert_eq!(domains(folder.path(), &cores), [vec![0, 1, 6], vec![8, 11]]);
        assert_eq!(domains(&folder.path().join("none"), &cores), [vec![0, 1, 6, 8, 11]]);
    }

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(cpu_list("0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(cpu_list(""), [0usize; 0]);
    }
}
