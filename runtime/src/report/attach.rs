//! Waiting for a debugger (MP_ATTACH).

use openlapi::base::clock;
use rustix::process::{PTracer, set_ptracer};
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(100);

/// Waits until a debugger is attached to this process, and says how to do that.
pub fn wait_for_debugger() {
    // Where the system lets only ancestors attach.
    let _ = set_ptracer(PTracer::Any);
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let pid = std::process::id();
    crate::console::log(format_args!("LAPI_Init waits for a debugger (MP_ATTACH): gdb -p {pid}, on {host}"));
    while !is_traced() {
        clock::sleep(LOOK);
    }
}

/// Whether a debugger is attached to this process. One that cannot be asked does not wait.
pub fn is_traced() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_none_or(|tracer| tracer.trim() != "0")
}
