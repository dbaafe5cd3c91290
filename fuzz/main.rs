//! Feeds the target that FUZZ_TARGET names. The arguments are libFuzzer's.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openlapi::fuzz::Target;
use std::sync::LazyLock;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let [core, tools] = [openlapi::fuzz::TARGETS, openlapi_tools::poe::fuzz::TARGETS];
    let doors =
        [openlapi_session::fuzz::TARGETS, openlapi_netio3::fuzz::TARGETS, rpmem::fuzz::TARGETS, gm::fuzz::TARGETS, fam::fuzz::TARGETS].concat();
    let all = [core, tools, openlapi_prof::fuzz::TARGETS, &doors[..]].concat();
    let Some(target) = all.iter().find(|target| target.name == name) else {
        let names: Vec<&str> = all.iter().map(|target| target.name).collect();
        eprintln!("FUZZ_TARGET is \"{name}\"; the targets are {}", names.join(", "));
        std::process::exit(2);
    };
    *target
});

fuzz_target!(init: LazyLock::force(&TARGET), |input: &[u8]| {
    (TARGET.feed)(input);
});
