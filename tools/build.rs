//! Notes how the tools, and the library with them, were built: `lapi_info` prints it.

use std::env;
use std::process::Command;

fn main() {
    let given = |name: &str| env::var(name).unwrap_or_else(|_| "unknown".to_owned());
    let rustc = Command::new(given("RUSTC")).arg("--version").output();
    let rustc = rustc.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned());
    println!("cargo:rustc-env=OPENLAPI_PROFILE={}", given("PROFILE"));
    println!("cargo:rustc-env=OPENLAPI_TARGET={}", given("TARGET"));
    println!("cargo:rustc-env=OPENLAPI_RUSTC={}", rustc.unwrap_or_else(|_| "unknown".to_owned()));
    println!("cargo:rerun-if-changed=build.rs");
}
