//! Gives the shared library its soname, and lets it find the LAPI that is installed beside it.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,liblapiprof.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN");
    println!("cargo:rerun-if-changed=build.rs");
}
