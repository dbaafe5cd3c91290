//! What the rules find, and what they let through.

use super::*;

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
        ("src/memory/bytes.rs", "use crate::base::ring;"),
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
        ("src/engine/progress/wait.rs", "use crate::api::session;"),
        ("src/job/key_file.rs", "fn f() { std::env::var_os(\"HOME\"); }"),
        ("src/config/mod.rs", "use std::{env, fs};"),
        ("src/api/session.rs", "fn f() { unsafe { libc::_exit(1) } }"),
        ("src/base/ring.rs", "fn f() { std::process::abort() }"),
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
        ("src/api/session.rs", "use crate::engine::context::core::Wire;"),
    ];
    for (file, text) in broken {
        assert_eq!(judged(file, text, core_rules).len(), 1, "{file}: {text}");
    }
    assert_eq!(judged("src/calls/put.rs", "use openlapi::{abi::*, transport::shm};", capi_rules).len(), 1);
    assert_eq!(judged("src/calls/put.rs", "use openlapi::engine::context::Held;", capi_rules).len(), 1);
    assert_eq!(
        judged("src/init.rs", "use openlapi::{api, engine::progress::closing};", runtime_rules).len(),
        1
    );
    assert_eq!(judged("src/port.rs", "use openlapi::engine::context::Held;", lapi_rules).len(), 1);
    assert_eq!(judged("src/port.rs", "use openlapi_capi::LAPI_Put;", lapi_rules).len(), 1);
    assert_eq!(judged("src/lib.rs", "pub use openlapi::api;", cdylib_rules).len(), 1);
    assert_eq!(judged("src/lib.rs", "use openlapi::engine::context::Held;", door_rules).len(), 1);
    assert_eq!(judged("src/lib.rs", "use openlapi_capi::LAPI_Put;", door_rules).len(), 1);
    assert_eq!(judged("src/api/env.rs", "use openlapi_session::Session;", without_doors).len(), 1);
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
        (
            "src/api/put_get.rs",
            "use super::address::collective; use crate::engine::context::{Context, Held};",
        ),
        ("src/engine/context/lock.rs", "use super::core::Core;"),
        ("src/engine/bulk.rs", "use crate::{proto, transport, job, wire, dgsp, base, abi, error, config};"),
        ("src/engine/transfer/send.rs", "use super::super::context::Held; pub(crate) fn f() {}"),
        ("src/engine/progress/wait.rs", "use crate::engine::{context::Held, plan, transfer::send};"),
        ("src/api/session.rs", "use crate::engine::context::Held;"),
        ("src/base/process.rs", "fn f() { std::process::id(); } #[cfg(test)] use std::env;"),
        ("src/base/undisturbed.rs", "fn f() { libc::getenv(name) }"),
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
    let fine = "use openlapi::{abi::*, api::put_get, error::Result}; use openlapi_runtime::request;";
    assert!(judged("src/calls/put.rs", fine, capi_rules).is_empty());
    assert!(judged("src/init.rs", "use openlapi::{api::session, job::Link};", runtime_rules).is_empty());
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
fn a_copy_of_bytes_is_found() {
    let count = |text: &str| copies(&Source::new("src/engine/a.rs", &[], text)).len();
    let broken = [
        "use std::ptr; fn f() { unsafe { ptr::copy(a, b, 1) } }",
        "fn f() { unsafe { std::ptr::copy_nonoverlapping(a, b, 1) } }",
        "fn f() { unsafe { at.write_unaligned(1) } }",
        "fn f() { unsafe { AtomicU64::from_ptr(at) } }",
    ];
    for text in broken {
        assert_eq!(count(text), 1, "{text}");
    }
    let fine = "fn f() { bytes::copy(a, b); CStr::from_ptr(a); a.copy_to(b) } #[cfg(test)] fn g() { a.read_unaligned() }";
    assert_eq!(count(fine), 0);
}

#[test]
fn a_structure_of_c_is_found() {
    let names = |text: &str| Source::new("src/api/a.rs", &[], text).names_among(&structures_of_c());
    let uses = "use crate::abi::*;\nfn f(_: &lapi_put_t) -> lapi_handle_t { 0 }\n#[cfg(test)] fn g(_: lapi_get_t) {}";
    assert_eq!(names(uses), [(2, "lapi_put_t".to_owned())]);
    assert!(names("/* lapi_put_t */ const X: &str = \"lapi_xfer_t\"; fn f(_: lapi_dev_t) {}").is_empty());
}

#[test]
fn methods_of_traits_are_found() {
    let text = "trait A: B { /// fn c();\n fn d(&self, e: [u8; 2]) -> F { g() } unsafe fn h(); }
        impl A for I { fn d(&self) {} fn j() {} } fn k() {} trait L {} struct M { n: fn() }
        trait O { type P; #[inline] fn q() -> [R; 3]; } #[cfg(test)] trait S { fn t(); }";
    let methods = Source::new("src/transport/contract/a.rs", &[], text).methods_of_traits();
    let found: Vec<_> = methods.iter().map(|method| (method.name.as_str(), method.has_body)).collect();
    assert_eq!(found, [("d", true), ("h", false), ("q", false)]);
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
