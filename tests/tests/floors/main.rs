//! The floors of ARCHITECTURE.md: imports run downwards only.
//!
//! The sources are read as the compiler reads them, without comments and literals and without what
//! is compiled for tests alone, and every path in them that begins at `crate`, at `super` or at one
//! of our crates is held to the rules below.

mod circles;
mod examples;
mod source;
mod tokens;
mod words;

use source::{PathUsed, Source, sources, sources_of};
use std::collections::BTreeSet;
use std::fs;

/// All crates that have modules, but the doors.
const CRATES: &[&str] = &[
    "src",
    "runtime/src",
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
    &["memory"],
    &["base"],
    &["wire", "dgsp"],
    &["proto", "transport"],
    &["job"],
    &["engine"],
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

/// Here alone the program's bytes are copied and changed,
const MEMORY: &str = "src/memory/";
/// by functions whose paths end so, and by these methods.
const COPIES: &[&[&str]] = &[&["ptr", "copy"], &["copy_nonoverlapping"]];
const COPYING: &[&str] = &[
    "copy_from_nonoverlapping",
    "copy_to_nonoverlapping",
    "read_unaligned",
    "read_volatile",
    "write_unaligned",
    "write_volatile",
];
/// What copies other bytes. Across address spaces the system copies the program's: see
/// [`CROSS_MEMORY`].
const OTHER_BYTES: &[&str] = &[
    // What the loader has mapped.
    "src/base/loader.rs",
    "src/base/undisturbed.rs",
    // Descriptions of places, aligned in any way.
    "src/dgsp/program.rs",
    "src/dgsp/vector.rs",
    // What tests and fuzzing alone have.
    "src/base/biased_lock/tests.rs",
    "src/dgsp/testing/",
    // Heads, addresses and control messages.
    "src/transport/parcel.rs",
    "src/transport/fabric/ofi/",
    "src/transport/udp/socket/",
];

/// Here alone the core of a context is used; the other floors use operations and plain values.
const ENGINE: &str = "src/engine/";

/// What `runtime` may use of all our crates: of the engine only what a context is, and what it does
/// at the moment, for reports.
const RUNTIME: &[&str] = &[
    "openlapi::abi",
    "openlapi::api",
    "openlapi::base",
    "openlapi::config",
    "openlapi::dgsp::registry",
    "openlapi::engine::context",
    "openlapi::error",
    "openlapi::job",
    "openlapi::transport::Inbound",
    "openlapi::transport::PeerState",
    "openlapi::transport::Task",
    "openlapi::wire::launcher",
    "openlapi::wire::packet",
];
/// What `capi` may use of all our crates.
const CAPI: &[&str] =
    &["openlapi::abi", "openlapi::api", "openlapi::error", "openlapi::for_each_call", "openlapi_runtime"];
/// What `lapi`, the Rust interface beside it, may use of all our crates.
const LAPI: &[&str] = &["openlapi::abi", "openlapi::api", "openlapi::error", "openlapi_runtime", SESSIONS];
/// The door that the others stand on, and the interfaces of Rust and Python, too.
const SESSIONS: &str = "openlapi_session";
/// What a door, a library of another interface, may use of all our crates: sessions, those of the
/// core among them, what opens them, the environment as programs of LAPI have it, forks, and no C
/// interface.
const DOOR: &[&str] = &[
    SESSIONS,
    "openlapi::abi",
    "openlapi::api",
    "openlapi::base",
    "openlapi::config",
    "openlapi::dgsp::Layout",
    "openlapi::error",
    "openlapi::fuzz",
    "openlapi::job",
    "openlapi::wire::VERSION",
    "openlapi::wire::bytes",
    "openlapi::wire::exchange",
    "openlapi::wire::user_header",
    "openlapi_runtime::console",
    "openlapi_runtime::environment",
    "openlapi_runtime::fork",
    "openlapi_runtime::once",
];
/// What `fortran` may use of the core, beside `capi`.
const FORTRAN: &[&str] = &["abi", "for_each_call"];
/// What `prof` may use of all our crates: the core's types, table of calls, clock, lists of tasks,
/// output that waits and what is mapped, its hooks for the profiler, and what a fuzz target is. The
/// calls it finds by their names.
const PROF: &[&str] = &[
    "openlapi::abi",
    "openlapi::for_each_call",
    "openlapi::base::clock",
    "openlapi::base::handler_runs",
    "openlapi::base::loader",
    "openlapi::base::long_calls",
    "openlapi::base::patient",
    "openlapi::base::ranges",
    "openlapi::fuzz",
];
/// What `python` may use of all our crates: the core's types and table of calls, user headers of
/// any length, and sessions. The calls it finds by their names.
const PYTHON: &[&str] =
    &["openlapi::abi", "openlapi::for_each_call", "openlapi::wire::user_header", SESSIONS];
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
    // The channel by which a peer is known to live: what this task says there ends.
    "src/transport/shm/peer.rs",
];
/// Where the environment is read in the core: what a provider of libfabric has put there is taken
/// away again.
const ENVIRONMENT: &[&str] = &["src/base/undisturbed.rs"];
/// The calls, in Rust's terms,
const API: &str = "src/api/";
/// and those whose structures are what a program of gather/scatter is made of.
const DGSP: &[&str] = &["src/api/dgsp.rs"];
/// What runs in simulations of whole jobs: it reads the clock, and waits, by these functions
/// of `base` alone.
const SIMULATED: &[&str] = &["src/proto/", "src/engine/", "src/transport/udp/"];
const CLOCK: &str = "src/base/clock.rs";
/// What every transport has to answer, and by how many methods at most.
const CONTRACT: &str = "src/transport/contract/";
const CONTRACT_METHODS: usize = 22;
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

/// Memory of another kind than this process's own needs other copies: they have one place.
#[test]
fn the_bytes_of_the_program_are_touched_in_one_place() {
    let sources = sources("src");
    let touches = |source: &Source| !copies(source).is_empty();
    for exempt in OTHER_BYTES {
        assert!(sources.iter().any(|source| source.stands_in(&[exempt]) && touches(source)), "{exempt}");
    }
    let (own, others): (Vec<_>, Vec<_>) = sources.iter().partition(|source| source.stands_in(&[MEMORY]));
    assert!(own.iter().filter(|source| touches(source)).count() > 2, "hardly a copy was found");
    let found = others.iter().filter(|source| !source.stands_in(OTHER_BYTES));
    let found: Vec<String> = found.flat_map(|source| copies(source)).collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

/// What copies bytes, or takes the program's memory for an atomic variable.
fn copies(source: &Source) -> Vec<String> {
    let paths = source.paths().into_iter().filter(|path| {
        let names: Vec<&str> = path.names.iter().map(String::as_str).collect();
        let atomic = matches!(names[..], [.., name, "from_ptr"] if name.starts_with("Atomic"));
        atomic || COPIES.iter().any(|copy| names.ends_with(copy))
    });
    let methods = COPYING.iter().flat_map(|name| source.calls_of_method(name));
    let lines: BTreeSet<usize> = paths.map(|path| path.line).chain(methods).collect();
    lines.iter().map(|line| format!("{}:{line}: copies of bytes stand in {MEMORY}", source.file)).collect()
}

/// A wrapper of a transport answers each method, or does not compile.
#[test]
fn the_contract_of_the_transports_is_small_and_has_no_default() {
    let sources = sources("src");
    let of_contract = sources.iter().filter(|source| source.stands_in(&[CONTRACT]));
    let methods: Vec<_> = of_contract.flat_map(Source::methods_of_traits).collect();
    assert!(methods.len() > 12, "hardly a method was found: {methods:?}");
    assert!(methods.len() <= CONTRACT_METHODS, "{} methods: {methods:?}", methods.len());
    let with_body: Vec<_> = methods.iter().filter(|method| method.has_body).collect();
    assert!(with_body.is_empty(), "{with_body:?}");
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
    for root in CRATES
        .iter()
        .map(|root| (*root).to_owned())
        .chain(doors().into_iter().map(|door| format!("{door}/src")))
    {
        let sources = sources(&root);
        let own = |source: &Source| source.paths().iter().any(|path| path.names[0] == "crate");
        assert!(sources.len() > 2 && sources.iter().any(own), "{root}: hardly a path was found");
        let found = circles::circles(&sources);
        assert!(found.is_empty(), "{root}\n{}\n", found.join("\n"));
    }
    for file in doors().iter().flat_map(|door| programs(door)) {
        let found = circles::circles(&sources_of(&file));
        assert!(found.is_empty(), "{file}\n{}\n", found.join("\n"));
    }
}

/// A session is opened and used without C: its structures stand in `runtime` and above.
#[test]
fn the_calls_are_in_terms_of_rust() {
    let structures = structures_of_c();
    assert!(structures.len() > 20 && structures.contains("lapi_info_t"), "{structures:?}");
    let sources = sources("src");
    let (calls, others): (Vec<_>, Vec<_>) = sources.iter().partition(|source| source.stands_in(&[API]));
    assert!(
        others.iter().any(|source| !source.names_among(&structures).is_empty()),
        "no structure was found"
    );
    let found: Vec<String> = calls
        .iter()
        .filter(|source| !source.stands_in(DGSP))
        .flat_map(|source| source.names_among(&structures).into_iter().map(move |name| (source, name)))
        .map(|(source, (line, name))| format!("{}:{line}: {name} is a structure of C", source.file))
        .collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

/// The structures and unions of `abi` that have C's layout.
fn structures_of_c() -> BTreeSet<String> {
    let folder = openlapi_tests::workspace().join("src/abi");
    let files = fs::read_dir(folder).expect("src/abi").map(|entry| entry.expect("an entry").path());
    let mut found = BTreeSet::new();
    for text in files.map(|file| fs::read_to_string(file).expect("a source")) {
        let mut is_c = false;
        for line in text.lines() {
            is_c |= line.starts_with("#[repr(C");
            let kinds = ["pub struct ", "pub union "];
            if let Some(rest) = kinds.iter().find_map(|kind| line.strip_prefix(kind)) {
                let name = rest.split(|end: char| !end.is_alphanumeric() && end != '_').next();
                found.extend(name.filter(|_| std::mem::take(&mut is_c)).map(str::to_owned));
            }
        }
    }
    found
}

#[test]
fn the_runtime_uses_sessions_and_what_reports_show() {
    let sources = sources("runtime/src");
    assert!(sources.iter().flat_map(Source::paths).any(|path| path.names[0] == "openlapi"));
    holds(&sources, runtime_rules);
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

/// The folders of the doors.
fn doors() -> Vec<String> {
    let all = fs::read_dir(openlapi_tests::workspace().join("doors")).expect("the doors");
    let names = all.map(|door| door.expect("a door").file_name().into_string().expect("ASCII"));
    let doors: Vec<String> = names.map(|name| format!("doors/{name}")).collect();
    assert!(doors.iter().any(|door| door == "doors/session"), "{doors:?}");
    doors
}

/// The files with which a door's programs begin.
fn programs(door: &str) -> Vec<String> {
    let path = openlapi_tests::workspace().join(door).join("Cargo.toml");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let programs = text.split("[[bin]]").skip(1).map(|program| {
        let file = program.lines().find_map(|line| line.strip_prefix("path = "));
        format!("{door}/{}", file.expect("a program has a path").trim_matches('"'))
    });
    programs.collect()
}

#[test]
fn a_door_stands_on_sessions_and_the_library_on_no_door() {
    let mut packages = Vec::new();
    for door in doors() {
        let sources = sources(&format!("{door}/src"));
        assert!(
            sources.iter().flat_map(Source::paths).any(|path| path.names[0].starts_with("openlapi")),
            "{door}"
        );
        holds(&sources, door_rules);
        programs(&door).iter().for_each(|file| holds(&sources_of(file), door_rules));
        packages.push(door.replace("doors/", "openlapi-"));
    }
    let daemon = programs("doors/rpmem").iter().map(|file| sources_of(file).len()).sum::<usize>();
    assert!(daemon > 5, "{daemon} files of rpmemd");
    for root in CRATES {
        holds(&sources(root), without_doors);
    }
    for library in ["capi", "cdylib", "fortran", "runtime", "prof", "."] {
        let path = openlapi_tests::workspace().join(library).join("Cargo.toml");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for package in &packages {
            assert!(!text.contains(package), "{library} is linked into liblapi_r, and needs {package}");
        }
    }
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
    if ends_the_process(path) {
        return Some("the core does not end the process: it reports".to_owned());
    }
    if reads_environment(path) && !source.stands_in(ENVIRONMENT) {
        return Some("the core is given its environment".to_owned());
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

/// Whether it is the environment of the process.
fn reads_environment(path: &PathUsed) -> bool {
    let of_libc = ["getenv", "secure_getenv", "setenv", "unsetenv", "putenv"];
    path.starts_with(&["std", "env"]) || path.names[0] == "libc" && of_libc.contains(&path.last())
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

fn runtime_rules(_: &Source, path: &PathUsed) -> Option<String> {
    uses_alone("runtime", RUNTIME, path)
}

fn capi_rules(_: &Source, path: &PathUsed) -> Option<String> {
    uses_alone("capi", CAPI, path)
}

fn lapi_rules(_: &Source, path: &PathUsed) -> Option<String> {
    uses_alone("lapi", LAPI, path)
}

fn door_rules(_: &Source, path: &PathUsed) -> Option<String> {
    uses_alone("a door", DOOR, path)
}

fn without_doors(source: &Source, path: &PathUsed) -> Option<String> {
    let above = source.stands_in(&["lapi/src/", "python/src/"]);
    (path.names[0] == SESSIONS && !above).then(|| "the library stands on no door".to_owned())
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
    uses_alone("prof", PROF, path)
}

fn python_rules(_: &Source, path: &PathUsed) -> Option<String> {
    uses_alone("python", PYTHON, path)
}

/// A crate has no more of our crates than this.
fn uses_alone(who: &str, parts: &[&str], path: &PathUsed) -> Option<String> {
    let allowed = |prefix: &&str| path.starts_with(&prefix.split("::").collect::<Vec<_>>());
    let ours = path.names[0].starts_with("openlapi") || path.names[0] == "lapi_r";
    (ours && !parts.iter().any(allowed)).then(|| format!("{who} uses {parts:?} alone"))
}
