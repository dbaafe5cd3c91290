//! The floors of ARCHITECTURE.md: imports run downwards only.
//!
//! The sources are read as the compiler reads them, without comments and literals and without what
//! is compiled for tests alone, and every path in them that begins at `crate`, at `super` or at one
//! of our crates is held to the rules below.

mod circles;
mod source;
mod tokens;
mod words;

use source::{PathUsed, Source, sources};

/// All crates that have modules.
const CRATES: &[&str] = &[
    "src",
    "capi/src",
    "lapi/src",
    "fortran/src",
    "prof/src",
    "python/src",
    "tools/src",
    "libfabric-sys/src",
    "tests/src",
];

/// The floors of the core, from the ground up. A module uses its own floor and those below.
const FLOORS: &[&[&str]] = &[
    &["base"],
    &["wire", "dgsp"],
    &["proto", "transport"],
    &["job"],
    &["engine"],
    &["report"],
    &["api"],
    &["fuzz"],
];
/// The rooms of the engine, from the ground up. A room uses itself and those below.
const ROOMS: &[&str] = &["context", "plan", "transfer", "progress"];
/// These share a floor and do not see each other.
const APART: &[&str] = &["proto", "transport"];
/// These may be used from anywhere,
const ANYWHERE: &[&str] = &["abi", "error", "config"];
/// and use nothing but each other and this.
const GROUND: &str = "base";

/// Here alone the core of a context is used; the other floors use operations and plain values.
const ENGINE: &str = "src/engine/";

/// What `capi` may use of the core.
const CAPI: &[&str] = &["abi", "api", "error", "for_each_call"];
/// What `lapi`, the Rust interface beside it, may use of all our crates.
const LAPI: &[&str] = &["openlapi::abi", "openlapi::api", "openlapi::error"];
/// What `fortran` may use of the core, beside `capi`.
const FORTRAN: &[&str] = &["abi", "for_each_call"];
/// What `prof` may use of all our crates: the core's types, table of calls, clock, lists of tasks
/// and output that waits, its hooks for the profiler, and what a fuzz target is. The calls it
/// finds by their names.
const PROF: &[&str] = &[
    "openlapi::abi",
    "openlapi::for_each_call",
    "openlapi::base::clock",
    "openlapi::base::handler_runs",
    "openlapi::base::long_calls",
    "openlapi::base::patient",
    "openlapi::base::ranges",
    "openlapi::fuzz",
];
/// What `python` may use of all our crates: the core's types and table of calls. The calls it finds
/// by their names.
const PYTHON: &[&str] = &["openlapi::abi", "openlapi::for_each_call"];
/// What `cdylib` may use of all our crates.
const CDYLIB: &[&str] = &["openlapi_capi", "openlapi_fortran"];

/// Users of shared memory itself outside of `transport`: everything else uses the traits
/// of `transport`.
const SHM_USERS: &[&str] = &["src/transport/", "src/job/connect/", "src/job/join/"];
/// Where the kernel's cross-memory calls stand, and where sockets do.
const CROSS_MEMORY: &str = "src/transport/shm/";
const SOCKETS: &[&str] = &[
    "src/job/",
    // Packets in datagrams.
    "src/transport/udp/",
    // The kernel's view of the links, and what the provider does with its sockets.
    "src/transport/link_state.rs",
    "src/transport/fabric/workarounds.rs",
];
/// Where the process is ended: by what a program of LAPI wants, not by what has happened in a
/// session.
const ENDS_THE_PROCESS: &[&str] = &["src/api/"];
/// What runs in simulations of whole jobs: it reads the clock, and waits, by these functions
/// of `base` alone.
const SIMULATED: &[&str] = &["src/proto/", "src/engine/", "src/transport/udp/"];
const CLOCK: &str = "src/base/clock.rs";
/// What a socket begins with.
const SOCKET_NAMES: &[&str] =
    &["UnixStream", "UnixListener", "UnixDatagram", "TcpStream", "TcpListener", "UdpSocket"];

#[test]
fn imports_of_the_core_run_downwards() {
    let sources = sources("src");
    for floor in FLOORS.iter().copied().flatten().chain(ANYWHERE).filter(|floor| **floor != "dgsp") {
        assert!(
            sources.iter().any(|source| source.module.first().is_some_and(|own| own == floor)),
            "no {floor}"
        );
    }
    assert!(
        sources.iter().map(|source| source.paths().len()).sum::<usize>() > 200,
        "hardly a path was found"
    );
    holds(&sources, core_rules);
}

#[test]
fn the_core_of_a_context_is_private_to_the_engine() {
    let sources = sources("src");
    let (engine, others): (Vec<_>, Vec<_>) = sources.iter().partition(|source| source.stands_in(&[ENGINE]));
    assert!(engine.iter().any(|source| !source.calls_of_method("core").is_empty()), "no call was found");
    let found: Vec<String> = others
        .iter()
        .flat_map(|source| source.calls_of_method("core").into_iter().map(move |line| (source, line)))
        .map(|(source, line)| format!("{}:{line}: .core() is private to {ENGINE}", source.file))
        .collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

/// Simulations have a virtual clock, and threads that wait there.
#[test]
fn what_is_simulated_asks_one_clock() {
    let sources: Vec<Source> =
        sources("src").into_iter().filter(|source| source.stands_in(SIMULATED)).collect();
    let clock = |source: &Source| source.paths().iter().any(|path| path.names.contains(&"clock".to_owned()));
    assert!(sources.iter().filter(|source| clock(source)).count() > 10, "hardly a clock was found");
    holds(&sources, clock_rules);
    let elapsed = sources.iter().flat_map(|source| {
        let lines = source.calls_of_method("elapsed");
        lines.into_iter().map(move |line| format!("{}:{line}: .elapsed() asks the system", source.file))
    });
    let elapsed: Vec<String> = elapsed.collect();
    assert!(elapsed.is_empty(), "\n{}\n", elapsed.join("\n"));
}

#[test]
fn no_modules_of_a_folder_stand_in_a_circle() {
    for root in CRATES {
        let sources = sources(root);
        let own = |source: &Source| source.paths().iter().any(|path| path.names[0] == "crate");
        assert!(sources.len() > 2 && sources.iter().any(own), "{root}: hardly a path was found");
        let found = circles::circles(&sources);
        assert!(found.is_empty(), "{root}\n{}\n", found.join("\n"));
    }
}

#[test]
fn the_c_interface_uses_the_calls_and_their_types() {
    let sources = sources("capi/src");
    assert!(sources.iter().flat_map(Source::paths).any(|path| path.names[0] == "openlapi"));
    holds(&sources, capi_rules);
}

#[test]
fn the_rust_interface_stands_beside_the_c_interface() {
    let sources = sources("lapi/src");
    assert!(sources.iter().flat_map(Source::paths).any(|path| path.names[0] == "openlapi"));
    holds(&sources, lapi_rules);
}

#[test]
fn the_shared_library_only_hands_on() {
    let sources = sources("cdylib/src");
    for used in CDYLIB {
        assert!(sources.iter().flat_map(Source::paths).any(|path| path.names[0] == *used), "no {used}");
    }
    holds(&sources, cdylib_rules);
}

#[test]
fn fortran_stands_on_the_c_interface() {
    let sources = sources("fortran/src");
    assert!(sources.iter().flat_map(Source::paths).any(|path| path.names[0] == "openlapi_capi"));
    holds(&sources, fortran_rules);
}

#[test]
fn the_profiler_uses_the_types_alone() {
    let sources = sources("prof/src");
    assert!(sources.iter().flat_map(Source::paths).any(|path| path.names[0] == "openlapi"));
    holds(&sources, prof_rules);
}

#[test]
fn the_python_package_uses_the_types_alone() {
    let sources = sources("python/src");
    assert!(sources.iter().flat_map(Source::paths).any(|path| path.names[0] == "openlapi"));
    holds(&sources, python_rules);
}

fn holds(sources: &[Source], rules: fn(&Source, &PathUsed) -> Option<String>) {
    let broken: Vec<String> = sources.iter().flat_map(|source| source.violations(rules)).collect();
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

fn core_rules(source: &Source, path: &PathUsed) -> Option<String> {
    let names = &path.names;
    if names.iter().any(|name| name.starts_with("process_vm_")) && !source.stands_in(&[CROSS_MEMORY]) {
        return Some(format!("cross-memory calls stand in {CROSS_MEMORY}"));
    }
    let net = names
        .windows(2)
        .any(|pair| pair == ["rustix", "net"] || pair == ["std", "net"] || pair == ["unix", "net"]);
    let socket = SOCKET_NAMES.contains(&path.last()) || path.starts_with(&["libc", "socket"]);
    if (net || socket) && !source.stands_in(SOCKETS) {
        return Some(format!("sockets stand in {SOCKETS:?}"));
    }
    if path.starts_with(&["crate", "transport", "shm"]) && !source.stands_in(SHM_USERS) {
        return Some(format!("shared memory itself is used in {SHM_USERS:?} alone"));
    }
    if ends_the_process(path) && !source.stands_in(ENDS_THE_PROCESS) {
        return Some(format!("the process is ended in {ENDS_THE_PROCESS:?} alone"));
    }
    let core = path.starts_with(&["crate", "engine", "context"])
        && path.names.get(3).is_some_and(|name| name.eq_ignore_ascii_case("core"));
    if core && !source.stands_in(&[ENGINE]) {
        return Some(format!("the core of a context is private to {ENGINE}"));
    }
    let (user, used) = (source.module.first()?.as_str(), path.in_own_crate()?);
    if user == used {
        return if user == "engine" { room_rules(source, path) } else { None };
    }
    let Some(level) = level(user) else {
        return match ANYWHERE.contains(&user) {
            true if ANYWHERE.contains(&used) || used == GROUND => None,
            true => Some(format!("`{user}` may use {ANYWHERE:?} and `{GROUND}` alone")),
            false => Some(format!("`{user}` has no floor")),
        };
    };
    match self::level(used) {
        None if ANYWHERE.contains(&used) => None,
        None => Some(format!("`{used}` has no floor")),
        Some(below) if below > level => Some(format!("`{user}` stands below `{used}`")),
        Some(_) if APART.contains(&user) && APART.contains(&used) => {
            Some(format!("`{user}` and `{used}` do not see each other"))
        }
        Some(_) => None,
    }
}

/// Whether it is a function that does not return, and ends the process.
fn ends_the_process(path: &PathUsed) -> bool {
    let of_libc = ["_exit", "exit", "quick_exit", "abort"];
    path.names[0] == "libc" && of_libc.contains(&path.last())
        || path.names.windows(2).any(|pair| pair == ["process", "exit"] || pair == ["process", "abort"])
}

fn room_rules(source: &Source, path: &PathUsed) -> Option<String> {
    let room = |name: &str| ROOMS.iter().position(|room| *room == name);
    let (user, used) = (source.module.get(1)?.as_str(), path.names.get(2)?.as_str());
    match (room(user), room(used)) {
        (_, None) => Some(format!("`engine::{used}` is not a room of the engine")),
        (Some(level), Some(below)) if below > level => {
            Some(format!("`engine::{user}` stands below `engine::{used}`"))
        }
        (None, _) => Some(format!("`engine::{user}` is not a room of the engine")),
        _ => None,
    }
}

fn level(module: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&module))
}

fn clock_rules(source: &Source, path: &PathUsed) -> Option<String> {
    let last: Vec<&str> = path.names.iter().rev().take(2).map(String::as_str).collect();
    let of_the_system = [["now", "Instant"], ["sleep", "thread"], ["yield_now", "thread"]];
    let asks = of_the_system.iter().any(|names| last == names) && !source.stands_in(&[CLOCK]);
    asks.then(|| format!("the time is that of {CLOCK}"))
}

fn capi_rules(_: &Source, path: &PathUsed) -> Option<String> {
    let allowed = |prefix: &&str| {
        path.starts_with(&["openlapi"].into_iter().chain(prefix.split("::")).collect::<Vec<_>>())
    };
    let foreign = path.names[0].starts_with("openlapi") && !CAPI.iter().any(allowed);
    foreign.then(|| format!("capi uses of the core {CAPI:?} alone"))
}

fn lapi_rules(_: &Source, path: &PathUsed) -> Option<String> {
    let allowed = |prefix: &&str| path.starts_with(&prefix.split("::").collect::<Vec<_>>());
    let ours = path.names[0].starts_with("openlapi") || path.names[0] == "lapi_r";
    (ours && !LAPI.iter().any(allowed)).then(|| format!("lapi uses {LAPI:?} alone"))
}

fn fortran_rules(_: &Source, path: &PathUsed) -> Option<String> {
    let ours = path.names[0].starts_with("openlapi");
    let allowed =
        path.names[0] == "openlapi_capi" || FORTRAN.iter().any(|name| path.starts_with(&["openlapi", name]));
    (ours && !allowed).then(|| format!("fortran uses openlapi_capi, and of the core {FORTRAN:?} alone"))
}

fn cdylib_rules(_: &Source, path: &PathUsed) -> Option<String> {
    let foreign = path.names[0].starts_with("openlapi") && !CDYLIB.contains(&path.names[0].as_str());
    foreign.then(|| format!("cdylib uses {CDYLIB:?} alone"))
}

fn prof_rules(_: &Source, path: &PathUsed) -> Option<String> {
    finds_calls_by_name("prof", PROF, path)
}

fn python_rules(_: &Source, path: &PathUsed) -> Option<String> {
    finds_calls_by_name("python", PYTHON, path)
}

/// A crate that must not link the core has no more of our crates than this.
fn finds_calls_by_name(who: &str, parts: &[&str], path: &PathUsed) -> Option<String> {
    let allowed = |prefix: &&str| path.starts_with(&prefix.split("::").collect::<Vec<_>>());
    let ours = path.names[0].starts_with("openlapi") || path.names[0] == "lapi_r";
    (ours && !parts.iter().any(allowed)).then(|| format!("{who} uses {parts:?} alone"))
}

/// The rules that a file of this name and text breaks.
fn judged(file: &str, text: &str, rules: fn(&Source, &PathUsed) -> Option<String>) -> Vec<String> {
    Source::new(file, &module_of(file), text).violations(rules)
}

fn module_of(file: &str) -> Vec<String> {
    file.trim_start_matches("src/")
        .trim_end_matches(".rs")
        .trim_end_matches("/mod")
        .split('/')
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_line_that_runs_up_is_found() {
    let broken = [
        ("src/base/ring.rs", "use crate::wire::packet::Head;"),
        ("src/wire/frame.rs", "use crate::proto::Link;"),
        ("src/dgsp/run.rs", "use crate::transport::Task;"),
        ("src/proto/ops.rs", "use crate::{base::rng, engine::stats};"),
        ("src/proto/ops.rs", "use crate::transport::Task;"),
        ("src/transport/mem.rs", "fn f() { let x = crate::proto::outbox::Posted::Free; }"),
        ("src/transport/shm/mod.rs", "use crate::job::Member;"),
        ("src/job/mod.rs", "use super::engine;"),
        ("src/job/identity/mod.rs", "use super::super::engine as above;"),
        ("src/engine/progress/wait.rs", "pub(crate) use crate::api::fence;"),
        ("src/engine/context/core.rs", "use crate::engine::transfer::send;"),
        ("src/engine/transfer/send.rs", "use super::super::progress::wait;"),
        ("src/engine/wait.rs", "use crate::engine::context::core;"),
        ("src/engine/progress/wait.rs", "use crate::engine::wait;"),
        ("src/engine/progress/wait.rs", "use crate::report::look;"),
        ("src/engine/wait.rs", "mod inner { fn f() { println!(\"{}\", super::super::super::api::X); } }"),
        ("src/abi/xfer.rs", "use crate::wire::frame::Task;"),
        ("src/error.rs", "use crate::engine::context::Context;"),
        ("src/engine/wait.rs", "use crate::attic::old;"),
        ("src/attic/old.rs", "use crate::base::rng;"),
        ("src/engine/bulk.rs", "fn f() { unsafe { libc::process_vm_readv(0) } }"),
        ("src/transport/mem.rs", "use rustix::net::socketpair;"),
        ("src/engine/notifier.rs", "use std::os::unix::net::UnixStream;"),
        ("src/engine/notifier.rs", "use std::{io, net::TcpStream};"),
        ("src/transport/shm/mod.rs", "fn f() { unsafe { libc::socket(1, 2, 3) } }"),
        ("src/api/env.rs", "use crate::transport::shm::segment;"),
        ("src/engine/copying.rs", "use super::super::transport::shm::remote::CrossMemory;"),
        ("src/api/address.rs", "use crate::engine::context::{Core, Held};"),
        ("src/report/text.rs", "use crate::engine::context::core::Wire;"),
    ];
    for (file, text) in broken {
        assert_eq!(judged(file, text, core_rules).len(), 1, "{file}: {text}");
    }
    assert_eq!(judged("src/calls/put.rs", "use openlapi::{abi::*, transport::shm};", capi_rules).len(), 1);
    assert_eq!(judged("src/calls/put.rs", "use openlapi::engine::context::Held;", capi_rules).len(), 1);
    assert_eq!(judged("src/port.rs", "use openlapi::engine::context::Held;", lapi_rules).len(), 1);
    assert_eq!(judged("src/port.rs", "use openlapi_capi::LAPI_Put;", lapi_rules).len(), 1);
    assert_eq!(judged("src/lib.rs", "pub use openlapi::api;", cdylib_rules).len(), 1);
    assert_eq!(
        judged("src/ddm.rs", "use openlapi::{abi::*, engine::context::Held};", fortran_rules).len(),
        1
    );
    assert_eq!(judged("src/real.rs", "use openlapi_capi::LAPI_Put;", prof_rules).len(), 1);
    assert_eq!(judged("src/wrap/plain.rs", "use openlapi::{abi::*, api::put_get};", prof_rules).len(), 1);
    assert_eq!(judged("src/port.rs", "use openlapi::{abi::*, base::clock::ticks};", python_rules).len(), 1);
}

#[test]
fn lines_that_run_down_are_let_through() {
    let fine = [
        ("src/api/fence.rs", "use super::address::collective; use crate::engine::context::{Context, Held};"),
        ("src/engine/context/lock.rs", "use super::core::Core;"),
        ("src/engine/bulk.rs", "use crate::{proto, transport, job, wire, dgsp, base, abi, error, config};"),
        ("src/engine/transfer/send.rs", "use super::super::context::Held; pub(crate) fn f() {}"),
        ("src/engine/progress/wait.rs", "use crate::engine::{context::Held, plan, transfer::send};"),
        ("src/report/look.rs", "use crate::engine::context::Held;"),
        ("src/job/mod.rs", "use rustix::net::socketpair; use std::os::unix::net::UnixStream;"),
        ("src/transport/shm/remote.rs", "fn f() { unsafe { libc::process_vm_readv(0) } }"),
        ("src/job/join/shared_memory.rs", "use crate::transport::shm::Own;"),
        ("src/error.rs", "use crate::abi; use crate::base::rng::Rng; use crate::config::table;"),
        (
            "src/base/mod.rs",
            "//! See [`crate::engine`].\n/* crate::api /* crate::api */ */ const X: &str = \"crate::api\";",
        ),
        (
            "src/base/mod.rs",
            "const X: &str = r#\"\" crate::api \"#; const Y: char = '\"'; fn f<'a>() {} const Z: u8 = b'\\'';",
        ),
        (
            "src/base/mod.rs",
            "#[cfg(test)] #[path = \"x.rs\"] mod tests { use crate::api::fence; fn f(x: [u8; 2]) {} }",
        ),
    ];
    for (file, text) in fine {
        assert_eq!(judged(file, text, core_rules), Vec::<String>::new(), "{text}");
    }
    let after = "#[cfg(test)] use crate::api::{fence, check}; fn f() { let a = super::wire::frame::X; }";
    let found = judged("src/base/mod.rs", after, core_rules);
    assert!(
        found.len() == 1 && found[0].contains("crate::wire::frame::X"),
        "after an item for tests: {found:?}"
    );
    let fine = "use openlapi::{abi::*, api::request, error::Result};";
    assert!(judged("src/calls/put.rs", fine, capi_rules).is_empty());
    assert!(judged("src/wrap/xfer.rs", "use openlapi::{abi::*, base::clock::ticks};", prof_rules).is_empty());
}

#[test]
fn calls_of_a_method_are_found() {
    let calls = |text: &str| Source::new("src/api/a.rs", &[], text).calls_of_method("core");
    assert_eq!(calls("fn f() { held.core().ending = true;\n g(held\n.core()); }"), [1, 3]);
    let others = "fn core() { core(); a.core; a.cores(); /* a.core() */ \"a.core()\"; } #[cfg(test)] fn g() { a.core() }";
    assert!(calls(others).is_empty());
}

#[test]
fn a_circle_is_found() {
    let files = |texts: &[(&str, &str)]| -> Vec<Source> {
        texts.iter().map(|(file, text)| Source::new(file, &module_of(file), text)).collect()
    };
    let [a, b, c] = ["src/engine/a.rs", "src/engine/b.rs", "src/engine/c.rs"];
    let down = [(a, "use super::{b::X, c};"), (b, "use crate::engine::c::Y; use crate::wire::a;"), (c, "")];
    assert_eq!(circles::circles(&files(&down)), Vec::<String>::new());
    let two = files(&[(a, "use super::b;"), (b, "fn f() { crate::engine::a::g() }")]);
    assert_eq!(circles::circles(&two), ["engine: a -> b -> a"]);
    let root =
        files(&[("src/a.rs", "use crate::b::X;"), ("src/b/mod.rs", ""), ("src/b/c.rs", "use crate::a;")]);
    assert_eq!(circles::circles(&root), ["the crate: a -> b -> a"]);
    let three = files(&[(a, "use super::c;"), (b, "use super::a;"), (c, "use super::b;")]);
    assert_eq!(circles::circles(&three), ["engine: a -> c -> b -> a"]);
    // A file of a folder represents the folder, and code for tests alone does not count.
    let deep = files(&[
        (a, "use super::d;"),
        ("src/engine/d/mod.rs", ""),
        ("src/engine/d/e.rs", "use super::super::a;"),
    ]);
    assert_eq!(circles::circles(&deep), ["engine: a -> d -> a"]);
    let tests = files(&[(a, "use super::b;"), (b, "#[cfg(test)] use super::a;")]);
    assert!(circles::circles(&tests).is_empty());
}

#[test]
fn a_clock_of_the_system_is_found() {
    let texts = [
        "fn f() { let now = std::time::Instant::now(); }",
        "use std::time::Instant; fn f() { held.unlocked(Instant::now); }",
        "fn f() { std::thread::sleep(TIME) }",
        "use std::thread::yield_now;",
    ];
    for text in texts {
        assert_eq!(judged("src/engine/progress/wait.rs", text, clock_rules).len(), 1, "{text}");
        assert_eq!(judged(CLOCK, text, clock_rules), Vec::<String>::new());
    }
    assert_eq!(
        judged("src/engine/progress/wait.rs", "use crate::base::clock::sleep;", clock_rules),
        Vec::<String>::new()
    );
}
