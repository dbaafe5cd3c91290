//! Says whether calls have places on the target's processor.

use std::env;

/// Processors of which `src/site` has the instructions that note where a call comes from.
const WITH_CALL_SITES: [&str; 3] = ["aarch64", "powerpc64", "x86_64"];

fn main() {
    println!("cargo:rustc-check-cfg=cfg(call_sites)");
    let machine = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo names the target's processor");
    if WITH_CALL_SITES.contains(&&*machine) {
        println!("cargo:rustc-cfg=call_sites");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
