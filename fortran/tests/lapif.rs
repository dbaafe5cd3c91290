//! `lapif.h` and `lapif32.h` are what is generated here: the constants from `src/abi`, the types
//! from `lapif/types.txt`.
//!
//! To write them again: UPDATE_HEADER=1 cargo test -p openlapi-fortran --test lapif

mod lapif {
    pub mod constants;
    pub mod text;
    pub mod types;
}

use lapif::text::Target;
use lapif::{constants, text, types};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const HEADERS: [(&str, Target); 2] = [("lapif.h", Target::Bits64), ("lapif32.h", Target::Bits32)];

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

#[test]
fn the_headers_are_up_to_date() {
    for (name, target) in HEADERS {
        let generated = text::header(target);
        if std::env::var_os("UPDATE_HEADER").is_some() {
            fs::write(here(name), &generated).expect("the header can be written");
        }
        let committed = fs::read_to_string(here(name)).unwrap_or_default();
        assert!(committed == generated, "{name} is out of date: UPDATE_HEADER=1 writes it again");
    }
}

/// What lets one file be included in fixed and in free form.
#[test]
fn statements_fit_both_forms() {
    for (name, target) in HEADERS {
        for line in text::header(target).lines() {
            let comment = line.starts_with('!');
            assert!(line.len() <= 72 && line.is_ascii() && !line.contains('\t'), "{name}: {line}");
            assert!(comment || line.is_empty() || line.starts_with("      "), "{name}: {line}");
            assert!(comment || !line.contains(['&', '!']), "{name}: {line}");
        }
    }
}

/// Fortran knows no capital letters, and a constant may not be named like a type or a routine.
#[test]
fn no_name_is_there_twice() {
    let table = fs::read_to_string(here("../src/abi/calls.rs")).expect("the calls are there");
    let routines = table.lines().filter_map(|line| line.trim().split_once(" (")?.0.split(' ').next());
    let routines: Vec<&str> = routines.filter(|name| name.starts_with("LAPI_")).collect();
    assert!(routines.len() > 20, "hardly a call was found");
    let constants = constants::all(Target::Bits64);
    let types = types::all();
    let names = constants.iter().map(|constant| constant.name.as_str());
    let names = names.chain(types.iter().map(|of| of.name.as_str())).chain(routines);
    let mut seen = BTreeSet::new();
    for name in names.chain(["LAPI_ADDR_NULL", "LAPI_BYTE", "LAPIF_NULL", "LAPIF_BYTE"]) {
        assert!(name.len() <= 63, "{name} is too long");
        assert!(seen.insert(name.to_uppercase()), "{name} is there twice");
    }
}

/// Compilers may or may not fill gaps in a SEQUENCE type: there must be none.
#[test]
fn no_type_has_gaps() {
    for of in types::all() {
        for (_, target) in HEADERS {
            let mut offset = 0;
            for field in of.fields(target) {
                let size = field.alignment(target);
                assert!(offset % size == 0, "{} of {} in {target:?}", field.name, of.name);
                offset += field.size(target);
            }
            let largest = of.fields(target).map(|field| field.alignment(target)).max().unwrap_or(1);
            // With 4-byte addresses lapi_long_t may stand at multiples of 4: the end need not be a
            // multiple of 8.
            assert!(target == Target::Bits32 || offset % largest == 0, "the end of {}", of.name);
        }
    }
}

/// The sizes that lapi.h has; the addresses of the fields are compared by programs
/// (`tests/tests/fortran`).
#[test]
fn types_are_as_long_as_in_c() {
    use openlapi::abi::*;
    macro_rules! sizes {
        ($($name:ident)*) => { [$((stringify!($name), size_of::<$name>())),*] };
    }
    let sizes = sizes![
        com_thread_info_t lapi_add_udp_port_t lapi_am_t lapi_amdgsp_t lapi_amv_t lapi_cntr_t lapi_dgsm_block_t
        lapi_dgsm_control_t lapi_dgsm_copy_t lapi_dgsm_gosub_t lapi_dgsm_iterate_t lapi_dgsm_mcopy_t
        lapi_dgsp_descr_t lapi_dref_dgsp_t lapi_extend_t lapi_get_pvo_t lapi_get_t lapi_getv_t lapi_hwxfer_t
        lapi_info_t lapi_lvec_t lapi_msg_info_t lapi_pack_dgsp_t lapi_put_t lapi_putv_t lapi_reg_ddm_t lapi_reg_dgsp_t
        lapi_remote_cxt_t lapi_resv_dgsp_t lapi_return_info_t lapi_rmw_t lapi_sh_info_t lapi_statistics_t lapi_thread_func_t lapi_udp_t
        lapi_udpinfo_t lapi_unpack_dgsp_t lapi_util_t lapi_vec_t lapi_xfer_t
    ];
    let types = types::all();
    for (name, size) in sizes {
        let of =
            types.iter().find(|of| of.name.eq_ignore_ascii_case(name)).unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(of.size(Target::Bits64), size, "{name}");
    }
}
