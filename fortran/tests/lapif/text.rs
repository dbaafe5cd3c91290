//! The text of the headers.

use super::{constants, types};
use std::fmt::Write;

/// The width of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Bits32,
    Bits64,
}

impl Target {
    /// The bytes of an address, and of a long.
    pub fn word(self) -> usize {
        if self == Self::Bits64 { 8 } else { 4 }
    }

    /// The greatest long.
    pub fn longest(self) -> String {
        if self == Self::Bits64 { format!("{}_8", i64::MAX) } else { i32::MAX.to_string() }
    }
}

/// All of the header.
pub fn header(target: Target) -> String {
    let mut text = format!(
        "! lapif.h: LAPI for Fortran, {}-bit programs.\n\
         ! SPDX-License-Identifier: Apache-2.0 OR MIT\n\
         !\n\
         ! Generated from fortran/tests/lapif, by\n\
         ! UPDATE_HEADER=1 cargo test -p openlapi-fortran --test lapif\n\
         !\n\
         ! For include 'lapif.h' in fixed and in free form: statements stand\n\
         ! in columns 7 to 72, and none is continued.\n\n",
        8 * target.word()
    );
    for constant in constants::all(target) {
        writeln!(text, "      INTEGER(KIND={}) {}", constant.kind, constant.name).expect("a string grows");
        writeln!(text, "      PARAMETER ({}={})", constant.name, constant.value).expect("a string grows");
    }
    text.push_str(
        "\n! An error here: INTEGER has 8 bytes (-qintsize=8,\n\
         ! -fdefault-integer-8), and LAPI's arguments have 4.\n\
         ! docs/fortran.md says what to do.\n",
    );
    // The message names the component, whose shape differs from that of the bytes of an INTEGER.
    for line in [
        "TYPE LAPIF_CHECK_T",
        "  SEQUENCE",
        "  INTEGER(KIND=1) :: LAPI_NEEDS_INTEGERS_OF_4_BYTES(4)",
        "END TYPE LAPIF_CHECK_T",
        "TYPE (LAPIF_CHECK_T) LAPIF_CHECK",
        "PARAMETER (LAPIF_CHECK=LAPIF_CHECK_T(TRANSFER(0,(/1_1/))))",
    ] {
        writeln!(text, "      {line}").expect("a string grows");
    }
    text.push_str(
        "\n! Where an address or a variable may be left out. Its value is 0 and\n\
         ! stays 0; LAPI knows it by its place.\n",
    );
    common(&mut text, target, "LAPI_ADDR_NULL", "LAPIF_NULL");
    text.push_str("\n! The handle of contiguous bytes; set by LAPI_INIT.\n");
    common(&mut text, target, "LAPI_BYTE", "LAPIF_BYTE");
    let types = types::all();
    let mut ordered: Vec<_> = types.iter().collect();
    // A type stands before those that are made of it.
    ordered.sort_by_key(|of| of.name != "LAPI_DGSM_BLOCK_T");
    for of in ordered {
        writeln!(text, "\n      TYPE {}\n        SEQUENCE", of.name).expect("a string grows");
        for field in of.fields(target) {
            let initial = if of.is_zero { " = 0" } else { "" };
            writeln!(text, "        {}{initial}", field.declaration(target)).expect("a string grows");
        }
        writeln!(text, "      END TYPE {}", of.name).expect("a string grows");
    }
    text
}

fn common(text: &mut String, target: Target, name: &str, block: &str) {
    writeln!(text, "      INTEGER(KIND={}) {name}", target.word()).expect("a string grows");
    writeln!(text, "      COMMON /{block}/ {name}").expect("a string grows");
}
