//! The paths of large messages through shared memory.

use crate::ltest::passed;
use openlapi_tests::Job;

/// As measured, each path alone, and with copies refused.
pub const PATHS: [(&str, &str); 4] = [
    ("LAPI_SHM_BULK", "auto"),
    ("LAPI_SHM_BULK", "pipeline"),
    ("LAPI_SHM_BULK", "attach"),
    ("LAPI_SHM_ATTACH", "deny"),
];

/// Runs a job over each path and expects it to pass.
#[track_caller]
pub fn every_path(make: impl Fn() -> Job, procs: usize) {
    for (name, value) in PATHS {
        passed(&make().env(name, value).run(), procs);
    }
}
