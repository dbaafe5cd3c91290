//! Gives the shared library its soname, so that programs bind to the interface's version and
//! not to a file.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libopenlapi_netio3.so.0");
    println!("cargo:rerun-if-changed=build.rs");
}
