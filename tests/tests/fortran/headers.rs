//! A Fortran compiler finds in `lapif.h` the values that a C compiler finds in `lapi.h`.
//!
//! Two programs are written from the installed `lapif.h`: one in Fortran, which passes every
//! constant, and every component of every type, to a routine; and one in C, which has that routine,
//! and the values and offsets of `lapi.h`.

use crate::{compilers, gfortran, passed};
use openlapi_tests::{Job, build_dir, compile_with, skipped, stage};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A derived type and its components.
struct Type {
    name: String,
    components: Vec<String>,
}

/// The types of a header, and its constants of four bytes.
fn read(header: &str) -> (Vec<Type>, Vec<String>) {
    let (mut types, mut constants) = (Vec::<Type>::new(), Vec::new());
    for line in header.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("TYPE ").filter(|name| !name.starts_with('(')) {
            types.push(Type { name: name.to_owned(), components: Vec::new() });
        } else if let Some((_, component)) = line.split_once(" :: ") {
            let name = component.split(['(', ' ']).next().expect("a name").to_owned();
            types.last_mut().expect("components stand in types").components.push(name);
        } else if let Some(name) = line.strip_prefix("INTEGER(KIND=4) ") {
            constants.push(name.to_owned());
        }
    }
    // It looks at the compiler's integers, and is no type of LAPI.
    types.retain(|of| of.name != "LAPIF_CHECK_T");
    assert!(
        types.len() > 50 && constants.len() > 200,
        "{} types, {} constants",
        types.len(),
        constants.len()
    );
    (types, constants)
}

/// The name of a type in C; pointers to functions and the like have no structure.
fn in_c(name: &str) -> String {
    match name {
        "LAPI_ADDR_T" | "COMPL_HNDLR_T" | "HDR_HNDLR_T" | "SCOMPL_HNDLR_T" | "VHDR_HNDLR_T"
        | "DDM_FUNC_T" => "void *".to_owned(),
        "RMW_OPS_T" => "RMW_ops_t".to_owned(),
        // The manual's name for the argument of LAPI_MSGPOLL; in C the state alone has it.
        "LAPI_MSG_STATE_T" => "lapi_msg_info_t".to_owned(),
        other => other.to_lowercase(),
    }
}

/// The name of a component in C, if it has one.
fn component_in_c<'a>(of: &str, component: &'a str) -> Option<&'a str> {
    let ours = component.starts_with("pad") || component == "val";
    match (of, component) {
        ("LAPI_CNTR_T", "flags") => Some("record.flags"),
        ("LAPI_CNTR_T", "reserve") => Some("record.waiter"),
        ("LAPI_XFER_T", "flags") => Some("Get.flags"),
        ("LAPI_XFER_T" | "LAPI_UTIL_T", "reserve") => None,
        _ if ours => None,
        _ => Some(component),
    }
}

/// Constants that C does not have, or not as a number of four bytes.
const FORTRAN_ALONE: [&str; 3] = ["LAPI_ADDR_TYPE", "LAPI_LONG_TYPE", "LAPI_LONG_LONG_TYPE"];

#[test]
fn types_and_constants_are_those_of_c() {
    let header = fs::read_to_string(stage().join("include/lapif.h")).expect("it is installed");
    let (types, constants) = read(&header);
    let mut fortran = String::from("program layout\n  implicit none\n  include 'lapif.h'\n");
    for (at, of) in types.iter().enumerate() {
        writeln!(fortran, "  type({}) :: x{at}(2)", of.name).unwrap();
    }
    let mut c = String::from(
        "#include <lapi.h>\n#include <netinet/in.h>\n#include <stddef.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
         static int facts;\n\
         static void is(long got, long want, const char *what) {\n    facts++;\n    if (got == want) return;\n    \
         printf(\"%s: %ld in Fortran, %ld in C\\n\", what, got, want);\n    exit(1);\n}\n\
         void facts_(int *want) { is(facts, *want, \"the number of facts\"); puts(\"PASS 0\"); }\n",
    );
    let mut facts = 0;
    let mut fact = |call: String, function: String| {
        writeln!(fortran, "  call f{facts}({call})").unwrap();
        writeln!(c, "void f{facts}_{function}").unwrap();
        facts += 1;
    };
    for (at, of) in types.iter().enumerate() {
        let (name, in_c) = (&of.name, in_c(&of.name));
        fact(
            format!("x{at}(1), x{at}(2)"),
            format!("(char *one, char *two) {{ is(two - one, sizeof({in_c}), \"the size of {name}\"); }}"),
        );
        for component in &of.components {
            let Some(component_in_c) = component_in_c(name, component) else { continue };
            fact(
                format!("x{at}(1), x{at}(1)%{component}"),
                format!(
                    "(char *whole, char *part) {{ is(part - whole, offsetof({in_c}, {component_in_c}), \
                     \"{component} of {name}\"); }}"
                ),
            );
        }
    }
    for name in constants.iter().filter(|name| !FORTRAN_ALONE.contains(&name.as_str())) {
        fact(name.clone(), format!("(int *value) {{ is(*value, (int)({name}), \"{name}\"); }}"));
    }
    fact(
        "LAPI_MAX_MSG_SZ".to_owned(),
        "(long *value) { is(*value, LAPI_MAX_MSG_SZ, \"LAPI_MAX_MSG_SZ\"); }".to_owned(),
    );
    writeln!(fortran, "  call facts({facts})\nend program layout").unwrap();

    let dir = build_dir().join("tests/fortran-layout");
    fs::create_dir_all(&dir).expect("the folder can be made");
    let (source, other) = (dir.join("layout.f90"), dir.join("layout.c"));
    fs::write(&source, fortran).expect("the program can be written");
    fs::write(&other, c).expect("the program can be written");
    let paths = [&source, &other].map(|path| path.to_str().expect("an ordinary name").to_owned());
    // One for each kind of machine.
    let name = format!("f-layout-{}.o", gfortran());
    let object = compile_with(&stage().join("bin/mpcc_r"), &name, &[&paths[1]], &["-c"]);
    // Nothing of the library is linked. A header beside the program makes it another one.
    fs::write(dir.join("lapif.h"), header).expect("the header can be written");
    for compiler in compilers() {
        let flags = [object.to_str().expect("an ordinary name"), "-w"];
        let program =
            compile_with(Path::new(&compiler), &format!("f-layout-{compiler}"), &[&paths[0]], &flags);
        passed(&Job::direct(program).run(), 1);
    }
}

/// The sizes of the manual's tables for 32-bit programs. Nothing is linked: that needs a
/// 32-bit C library.
#[test]
fn programs_of_32_bits_have_the_layout_of_the_manual() {
    let sizes = [
        ("LAPI_VEC_T", 16),
        ("LAPI_AM_T", 64),
        ("LAPI_AMV_T", 64),
        ("LAPI_AMDGSP_T", 72),
        ("LAPI_GET_T", 52),
        ("LAPI_GETV_T", 48),
        ("LAPI_PUT_T", 56),
        ("LAPI_PUTV_T", 48),
        ("LAPI_RMW_T", 48),
        ("LAPI_INFO_T", 40),
    ];
    let dir = build_dir().join("tests/fortran-32");
    fs::create_dir_all(&dir).expect("the folder can be made");
    let compile = |name: &str, text: &str| {
        fs::write(dir.join(name), text).expect("the program can be written");
        let made = Command::new(stage().join("bin/mpfort"))
            .args(["-compiler", "gfortran", "-q32", "-fsyntax-only", name])
            .current_dir(&dir)
            .output()
            .expect("the wrapper can be run");
        (made.status.success(), String::from_utf8_lossy(&made.stderr).into_owned())
    };
    let plain = "program a\n  print *, 1\nend program a\n";
    if let (false, why) = compile("plain.f90", plain) {
        skipped("Fortran's layouts of 32 bits", &format!("gfortran: {}", why.trim().replace('\n', " ")));
        return;
    }
    let program = |wrong: usize| {
        let mut text = String::from("program sizes\n  implicit none\n  include 'lapif.h'\n");
        for (at, (name, size)) in sizes.iter().enumerate() {
            writeln!(text, "  type({name}) :: x{at}").unwrap();
            // An array with one element too few is an error of the program.
            let size = size + usize::from(at == wrong);
            writeln!(
                text,
                "  integer, parameter :: n{at}(storage_size(x{at}) / 8) = [integer :: (1, n0=1,{size})]"
            )
            .unwrap();
        }
        text.replace("n0=", "i=").replace("implicit none", "implicit none\n  integer :: i")
            + "end program sizes\n"
    };
    let (fits, why) = compile("sizes.f90", &program(usize::MAX));
    assert!(fits, "{why}");
    let (fits, _) = compile("wrong.f90", &program(3));
    assert!(!fits, "a wrong size is not noticed");
}
