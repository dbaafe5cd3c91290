//! Gives the shared library its soname, so that programs bind to the interface's version and
//! not to a file.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,liblapi_r.so.1");
    println!("cargo:rerun-if-changed=build.rs");
}
