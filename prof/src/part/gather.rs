//! Makes a part of what the threads' buffers hold.

use super::data::{Event, FORMAT, Moved, Part, SiteRow, SizeCount, TaskPair};
use crate::calls::{Call, Class};
use crate::identity::{self, Span};
use crate::record::{self, Alike, BINS, Count, EVENTS, NO_PEER, SIZES, Stay, Timeline, Traffic};
use crate::symbols::Symbols;
use openlapi::base::clock::ticks;
use std::collections::HashMap;
use std::env;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, OnceLock};

/// Everything until now. `interim`: why the part is made before the task ends.
pub fn gather(interim: Option<&str>) -> Part {
    let (about, span) = (about(), Span::now());
    let open = open();
    let (sites, rows) = sites(&span, &open);
    let stretches = stretches(&span, &open);
    Part {
        format: FORMAT,
        job: about.job.clone(),
        task: identity::task(),
        tasks: identity::tasks(),
        host: about.host.clone(),
        pid: std::process::id(),
        program: about.program.clone(),
        interim: interim.map(str::to_owned),
        started: span.started,
        wall: span.wall,
        processors: processors(),
        cpu: span.cpu,
        threads: record::threads() as u32,
        links: links(&span),
        stretch: stretches.length,
        timeline: stretches.calls,
        timeline_bytes: stretches.bytes,
        timeline_time: stretches.time,
        events_limit: EVENTS.limit() as u64,
        events_left_out: left_out(),
        events_to_come: to_come(),
        events: events(&span, &rows),
        thread_names: thread_names(),
        sites,
    }
}

/// What does not change during the life of a process.
#[derive(Debug)]
pub struct About {
    job: String,
    host: String,
    program: String,
}

/// Reads it once. The first call must come from a thread of the program: the program's other
/// threads may change the environment while the watcher runs.
pub fn about() -> &'static About {
    static ABOUT: OnceLock<About> = OnceLock::new();
    ABOUT.get_or_init(|| About { job: job(), host: host(), program: program() })
}

/// The number that the launcher has given to this task; for what must be known before LAPI_Init.
pub fn task_of_environment() -> Option<u32> {
    let names = ["MP_CHILD", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"];
    match names.iter().find_map(|name| env::var(name).ok()) {
        Some(value) => value.parse().ok(),
        None => Some(0),
    }
}

fn job() -> String {
    let names = ["MP_PARTITION", "PMI_JOBID", "PMIX_NAMESPACE", "SLURM_JOB_ID"];
    let found = names.iter().filter_map(|name| Some(format!("{name}={}", env::var(name).ok()?)));
    found.take(1).collect()
}

fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// Those that this process may use.
fn processors() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.unwrap_or_default().trim().to_owned()
}

fn program() -> String {
    env::args_os().next().unwrap_or_default().to_string_lossy().into_owned()
}

/// The calls and handlers that a thread is in, the outermost first.
struct Open {
    buffer: &'static record::Buffer,
    calls: Vec<(record::Current, Stay)>,
}

/// Those of all threads, until now.
fn open() -> Vec<Open> {
    let (origin, now) = (identity::origin(), ticks());
    let of = |buffer: &'static record::Buffer| {
        let long_since = buffer.long_since.get();
        let current = buffer.open.current();
        let innermost = current.len().saturating_sub(1);
        let mut calls: Vec<(record::Current, Stay)> = Vec::new();
        for (at, current) in current.into_iter().enumerate() {
            // A call that was not to be timed, and has not turned out to be long, is about to end.
            let start = if current.start == 0 { long_since } else { current.start };
            if start == 0 || start > now {
                continue;
            }
            let inside = if at == innermost { buffer.handlers_inside.get() } else { 0 };
            let (begin, end) = (start.saturating_sub(origin), now - origin);
            calls.push((current, Stay { begin, end, inside }));
        }
        Open { buffer, calls }
    };
    record::all().map(of).collect()
}

/// The rows, and which of them an address and a call have.
fn sites(span: &Span, open: &[Open]) -> (Vec<SiteRow>, HashMap<(usize, u16), u32>) {
    // Kept for the next part, and not waited for in the child of a fork, whose parent
    // may have held it.
    static KNOWN: Mutex<Option<Symbols>> = Mutex::new(None);
    let (mut known, mut new) = (KNOWN.try_lock(), None);
    let symbols = known.as_deref_mut().unwrap_or(&mut new).get_or_insert_default();
    let (mut rows, mut places) = (Vec::<SiteRow>::new(), HashMap::new());
    let mut place_of = |rows: &mut Vec<SiteRow>, call: Call, address: usize| {
        *places.entry((address, call as u16)).or_insert_with(|| {
            let name = if call.is_handler() { symbols.function(address) } else { symbols.call(address) };
            rows.push(SiteRow {
                call: call.name().to_owned(),
                class: Class::NAMES[call.class() as usize].to_owned(),
                site: name.text,
                object: name.object,
                line: name.line,
                address: format!("{address:#x}"),
                ..SiteRow::default()
            });
            rows.len() as u32 - 1
        }) as usize
    };
    for (call, site) in record::all().flat_map(record::Buffer::sites) {
        let place = place_of(&mut rows, call, site.address.load(Ordering::Relaxed));
        let row = &mut rows[place];
        let alike = site.alike();
        row.count += site.count.get() + alike.calls;
        row.errors += site.errors.get();
        row.bytes += site.bytes.get();
        row.time += span.ns(site.ticks.get());
        row.longest = row.longest.max(span.ns(site.longest.get()));
        if (call.class() as usize) < Class::MOVING || call == Call::HeaderHandler {
            add_sizes(&mut row.sizes, &site.sizes);
        }
        if let Some(Traffic { bytes, .. }) = alike.traffic {
            row.bytes += alike.calls * bytes;
            add_size(&mut row.sizes, record::size_class(bytes), alike.calls);
        }
    }
    for (current, stay) in open.iter().flat_map(|open| &open.calls) {
        let place = place_of(&mut rows, current.call, current.site);
        let (row, time) = (&mut rows[place], span.ns(stay.end.saturating_sub(stay.begin)));
        row.count += 1;
        row.open += 1;
        row.time += time;
        row.longest = row.longest.max(time);
    }
    (rows, places)
}

/// By number; an empty one for a buffer that no thread has had.
fn thread_names() -> Vec<String> {
    let mut names = Vec::new();
    for buffer in record::all() {
        let at = buffer.number() as usize;
        if names.len() <= at {
            names.resize(at + 1, String::new());
        }
        names[at] = buffer.name();
    }
    while names.last().is_some_and(String::is_empty) {
        names.pop();
    }
    names
}

fn links(span: &Span) -> Vec<TaskPair> {
    let mut links: Vec<TaskPair> = Vec::new();
    let alike: Vec<(Class, u64, Traffic)> = record::all()
        .flat_map(record::Buffer::sites)
        .filter_map(|(call, site)| {
            let Alike { calls, traffic } = site.alike();
            Some((call.class(), calls, traffic.filter(|_| calls > 0)?))
        })
        .collect();
    for target in 0..identity::tasks() {
        let mut link: Option<TaskPair> = None;
        let fresh = || TaskPair {
            origin: identity::task(),
            target,
            network: !identity::shares_memory(target),
            put: Moved::default(),
            get: Moved::default(),
            am: Moved::default(),
            rmw: Moved::default(),
            sizes: Vec::new(),
        };
        for peer in record::all().filter_map(|buffer| buffer.peers().get(target as usize)) {
            if peer.moves.iter().all(|moves| moves.count.get() == 0) {
                continue;
            }
            let link = link.get_or_insert_with(fresh);
            for (sum, moves) in
                [&mut link.put, &mut link.get, &mut link.am, &mut link.rmw].into_iter().zip(&peer.moves)
            {
                sum.count += moves.count.get();
                sum.bytes += moves.bytes.get();
                sum.time += span.ns(moves.ticks.get());
            }
            add_sizes(&mut link.sizes, &peer.sizes);
        }
        for (class, calls, Traffic { bytes, .. }) in alike.iter().filter(|(.., moved)| moved.peer == target) {
            // The call that they are like may have failed, and has not made the link then.
            let link = link.get_or_insert_with(fresh);
            let sum =
                [&mut link.put, &mut link.get, &mut link.am, &mut link.rmw].into_iter().nth(*class as usize);
            if let Some(sum) = sum {
                sum.count += calls;
                sum.bytes += calls * bytes;
                add_size(&mut link.sizes, record::size_class(*bytes), *calls);
            }
        }
        links.extend(link);
    }
    links
}

/// Adds a histogram to one that names only the sizes that occur.
fn add_sizes(sum: &mut Vec<SizeCount>, sizes: &[Count; SIZES]) {
    for (class, count) in sizes.iter().map(Count::get).enumerate() {
        add_size(sum, class, count);
    }
}

fn add_size(sum: &mut Vec<SizeCount>, class: usize, count: u64) {
    if count > 0 {
        let from = if class == 0 { 0 } else { 1 << (class - 1) };
        match sum.binary_search_by_key(&from, |size| size.from) {
            Ok(at) => sum[at].count += count,
            Err(at) => sum.insert(at, SizeCount { from, count }),
        }
    }
}

/// The calls that the events stand for that found no room.
fn left_out() -> u64 {
    record::all().map(|buffer| buffer.claim.left_out.get()).sum()
}

/// The calls after the last event of their place.
fn to_come() -> u64 {
    if EVENTS.limit() == 0 { 0 } else { record::all().flat_map(|buffer| record::pending(buffer).0).sum() }
}

/// The length of a stretch, and the calls, bytes and time in each.
struct Stretches {
    length: u64,
    calls: Vec<[u64; Class::COUNT]>,
    bytes: Vec<[u64; Class::MOVING]>,
    time: Vec<[u64; Class::COUNT]>,
}

fn stretches(span: &Span, open: &[Open]) -> Stretches {
    let timelines = || record::all().map(|buffer| &buffer.timeline);
    let until = open.iter().flat_map(|open| &open.calls).map(|(_, stay)| stay.end).max().unwrap_or(0);
    let shift = timelines().map(Timeline::shift).fold(Timeline::shift_until(until), u32::max);
    let (calls, ticks): (Vec<_>, Vec<_>) = open
        .iter()
        .map(|Open { buffer, calls }| {
            let calls: Vec<_> = calls.iter().map(|(current, stay)| (*stay, current.call.class())).collect();
            let [calls, ticks] = buffer.timeline.with_open(shift, &calls);
            (calls, ticks)
        })
        .unzip();
    let ticks = summed(ticks.into_iter());
    let mut calls = summed(calls.into_iter());
    let mut bytes = summed(timelines().map(|timeline| timeline.bytes(shift)));
    // Counted and not yet entered: they belong to the last stretch.
    for (pending, pending_bytes) in record::all().map(record::pending) {
        let add =
            |sums: &mut [u64], more: &[u64]| sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        calls.last_mut().into_iter().for_each(|last| add(last, &pending));
        bytes.last_mut().into_iter().for_each(|last| add(last, &pending_bytes));
    }
    Stretches {
        length: span.ns(1 << shift).max(1),
        calls,
        bytes,
        time: ticks.into_iter().map(|bin| bin.map(|ticks| span.ns(ticks))).collect(),
    }
}

/// The sum over all threads, until the last stretch that has anything.
fn summed<const N: usize>(threads: impl Iterator<Item = Vec<[u64; N]>>) -> Vec<[u64; N]> {
    let mut sum = vec![[0; N]; BINS];
    for counts in threads {
        for (sum, counts) in sum.iter_mut().zip(counts) {
            sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
    }
    let used = sum.iter().rposition(|bin| bin.iter().any(|count| *count != 0)).map_or(0, |last| last + 1);
    sum.truncate(used);
    sum
}

fn events(span: &Span, rows: &HashMap<(usize, u16), u32>) -> Vec<Event> {
    let origin = identity::origin();
    let mut events: Vec<Event> = EVENTS
        .written()
        .filter_map(|(call, event)| {
            let site = event.site.load(Ordering::Relaxed);
            // A place that found no room is counted under address 0.
            let row = *rows.get(&(site, call as u16)).or_else(|| rows.get(&(0, call as u16)))?;
            let peer = event.peer.load(Ordering::Relaxed);
            Some(Event {
                row,
                thread: event.thread.load(Ordering::Relaxed),
                start: span.ns(event.start.load(Ordering::Relaxed).saturating_sub(origin)),
                time: span.ns(event.ticks.load(Ordering::Relaxed)),
                peer: (peer != NO_PEER).then_some(peer),
                bytes: event.bytes.load(Ordering::Relaxed),
                calls: event.calls.load(Ordering::Relaxed),
            })
        })
        .collect();
    // What encloses comes before what it encloses.
    events.sort_by_key(|event| (event.thread, event.start, u64::MAX - event.time));
    events
}
