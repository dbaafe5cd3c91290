//! The committed bindings are those of the system's headers, and the library that runs
//! understands them.

use libfabric_sys::bindings as fi;
use std::io::Write as _;
use std::path::Path;

/// What the bindings contain. Everything that these use comes with them.
fn generate(headers: &str) -> Option<String> {
    // bindgen panics without libclang.
    let made = std::panic::catch_unwind(|| {
        bindgen::Builder::default()
            .header(headers)
            .allowlist_type("fi_.*|fid.*")
            .allowlist_var("FI_.*")
            .default_enum_style(bindgen::EnumVariation::Consts)
            .prepend_enum_name(false)
            .generate_comments(false)
            .merge_extern_blocks(true)
            .derive_debug(false)
            // The sizes differ between 32 and 64 bits; the types follow them.
            .layout_tests(false)
            .formatter(bindgen::Formatter::Prettyplease)
            .generate()
    });
    Some(made.ok()?.ok()?.to_string())
}

/// Without the test harness, which hides the output of tests that pass.
fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "\nSKIPPED: libfabric's bindings: {why}");
}

/// Headers of another version have other bindings: what we use of them is compared by the tests of
/// the transport, which run.
#[test]
fn are_those_of_the_headers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let version = std::fs::read_to_string("/usr/include/rdma/fabric.h").unwrap_or_default();
    let minor = version.lines().find_map(|line| line.strip_prefix("#define FI_MINOR_VERSION "));
    if minor.map(str::trim) != Some("17") {
        return skipped("the headers of libfabric 1.17 are not installed (Debian 12: libfabric-dev)");
    }
    let headers = root.join("headers.h");
    let Some(made) = generate(headers.to_str().expect("a path in UTF-8")) else {
        return skipped("libclang is not installed (Debian: libclang-dev)");
    };
    let file = root.join("src/bindings.rs");
    if std::env::var_os("UPDATE_BINDINGS").is_some() {
        std::fs::write(&file, &made).expect("the file can be written");
    }
    let committed = std::fs::read_to_string(&file).expect("the bindings");
    assert!(committed == made, "UPDATE_BINDINGS=1 cargo test -p libfabric-sys makes src/bindings.rs again");
}

#[test]
fn describe_what_the_library_returns() {
    let library = match libfabric_sys::Library::get() {
        Ok(library) => library,
        Err(why) => return skipped(why),
    };
    assert!(library.version() >= libfabric_sys::version(1, 17));
    let mut list = std::ptr::null_mut();
    // SAFETY: no hints; the list is freed below, and read before that.
    unsafe {
        let code = library.get_info(
            library.api_version(),
            std::ptr::null(),
            std::ptr::null(),
            0,
            std::ptr::null(),
            &raw mut list,
        );
        assert_eq!(code, 0, "{}", library.strerror(-code));
        let mut found = Vec::new();
        let mut at: *mut fi::fi_info = list;
        while let Some(info) = at.as_ref() {
            let fabric = &*info.fabric_attr;
            found.push(std::ffi::CStr::from_ptr(fabric.prov_name).to_string_lossy().into_owned());
            assert!((*info.ep_attr).max_msg_size > 0 && (*info.tx_attr).iov_limit >= 1);
            at = info.next;
        }
        library.free_info(list);
        assert!(!found.is_empty(), "libfabric without a provider");
    }
}
