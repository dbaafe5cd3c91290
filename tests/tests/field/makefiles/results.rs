//! Options that change results do so: sizes of numbers, static variables, escapes, characters,
//! enums, names of symbols.

use super::{folder, ok, source, wrapper};
use openlapi_tests::Job;

/// Compiles `numbers.f` with a driver and options, and returns what it prints.
#[track_caller]
fn numbers(driver: &str, options: &str) -> String {
    printed(driver, options, "numbers.f")
}

#[track_caller]
fn printed(driver: &str, options: &str, file: &str) -> String {
    let dir = folder(&format!("{driver}{options}-{file}").replace('/', "_"));
    ok(&wrapper(driver, &dir, &format!("{options} {} -o program", source(file))));
    let printed = ok(&super::command("./program", &dir).output().expect("the program runs"));
    std::fs::remove_dir_all(dir).expect("the folder can be removed");
    printed.split_whitespace().collect::<Vec<_>>().join(" ")
}

const REALS: &str = "real 4 4 8 4";
const INTEGERS: &str = "integer 4 4 4";

#[test]
fn numbers_have_the_sizes_that_options_give_them() {
    for (option, reals, integers) in [
        ("", REALS, INTEGERS),
        ("-qrealsize=8", "real 8 4 16 8", INTEGERS),
        ("-qautodbl=dbl4", "real 8 8 8 8", INTEGERS),
        ("-qautodbl=dbl8", "real 4 4 16 4", INTEGERS),
        ("-qautodbl=dbl", "real 8 8 16 8", INTEGERS),
        ("-qrealsize=4 -qautodbl=none -qintsize=4", REALS, INTEGERS),
        ("-qintsize=8", REALS, "integer 8 8 8"),
        // The last one counts.
        ("-qrealsize=8 -qrealsize=4", REALS, INTEGERS),
        ("-qrealsize=4 -qrealsize=8", "real 8 4 16 8", INTEGERS),
        ("-qautodbl=dbl8 -qautodbl=dbl4", "real 8 8 8 8", INTEGERS),
        ("-qautodbl=dbl -qautodbl=none", REALS, INTEGERS),
        ("-qintsize=8 -qintsize=4", REALS, INTEGERS),
    ] {
        let printed = numbers("xlf", option);
        assert_eq!(printed, format!("{reals} {integers} escape 3 local static"), "{option}");
    }
}

#[test]
fn each_driver_begins_with_the_options_that_it_had() {
    let with = |rest: &str| format!("{REALS} {INTEGERS} {rest}");
    assert_eq!(numbers("mpxlf_r", ""), with("escape 3 local static"));
    assert_eq!(numbers("mpxlf_r", "-qnosave -qnoescape -qdlines"), with("escape 4 local automatic debug"));
    assert_eq!(numbers("xlf95_r", "-qfixed"), with("escape 3 local automatic"));
    assert_eq!(numbers("mpxlf2003_r", "-qfixed -qsave"), with("escape 3 local static"));
    // Threads would share what is static; who asks for it gets it.
    assert_eq!(numbers("xlf_r", "-qsmp=omp:noauto"), with("escape 3 local automatic"));
    assert_eq!(numbers("xlf_r", "-qsmp=omp:noauto -qnosmp"), with("escape 3 local static"));
    for (driver, expected) in [
        ("mpcc_r", "char signed bits signed enum 4 second 8"),
        ("xlc_r", "char unsigned bits unsigned enum 4 second 8"),
        ("xlC", "char unsigned bits unsigned enum 4 second 8"),
        ("c99_r", "char unsigned bits unsigned enum 4 second 8"),
    ] {
        assert_eq!(printed(driver, "", "types.c"), expected, "{driver}");
    }
}

#[test]
fn characters_bit_fields_and_enums_are_what_options_say() {
    for (options, expected) in [
        ("-qchars=unsigned", "char unsigned bits signed enum 4 second 8"),
        ("-qbitfields=unsigned", "char signed bits unsigned enum 4 second 8"),
        ("-qenum=small", "char signed bits signed enum 1 second 8"),
        ("-qenum=int -qalign=natural", "char signed bits signed enum 4 second 8"),
        ("-qenum=small -qenum=int", "char signed bits signed enum 4 second 8"),
        ("-qchars=unsigned -qchars=signed", "char signed bits signed enum 4 second 8"),
    ] {
        assert_eq!(printed("mpcc_r", options, "types.c"), expected, "{options}");
    }
    // They would change lapi.h and the system's headers too.
    let dir = folder("packed");
    for option in ["-qalign=packed", "-qalign=bit_packed", "-qalign=mac68k", "-qenum=1", "-qnoro"] {
        let said = super::refused(&wrapper("xlc", &dir, &format!("{option} -c {}", source("types.c"))));
        assert!(said.contains(option), "{said}");
    }
    // What lapi.h cannot stand says so.
    std::fs::write(dir.join("a.c"), "#include <lapi.h>\nint main(void) { return 0; }\n").expect("a source");
    for driver in ["xlc", "c89_r", "c99_r", "xlC"] {
        ok(&wrapper(driver, &dir, "-c a.c"));
    }
    let output = wrapper("xlc", &dir, "-qenum=small -c a.c");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("lapi_needs_enums_of_4_bytes"), "{said}");
}

/// A check that a later option takes back does not end the program.
#[test]
fn the_last_option_about_checks_counts() {
    let dir = folder("checks");
    let text = "int main(int count, char **words)\n{\n    int few[4] = { 0 };\n    volatile int seen = few[count + 3];\n    return words == 0 && seen;\n}\n";
    std::fs::write(dir.join("beyond.c"), text).expect("a source");
    for (options, ends_well) in [
        ("-qcheck", false),
        ("-qcheck -qnocheck", true),
        ("-qcheck=all:nobounds", true),
        ("-qnocheck -qcheck=bounds", false),
    ] {
        ok(&wrapper("xlc", &dir, &format!("{options} beyond.c -o beyond")));
        let output = super::command("./beyond", &dir).output().expect("the program runs");
        assert_eq!(output.status.success(), ends_well, "{options}");
    }
}

/// Without underscores, as xlf had it: C finds Fortran, Fortran finds LAPI and its variables.
#[test]
fn symbols_have_the_names_that_c_of_aix_uses() {
    let dir = folder("mixed");
    ok(&wrapper("mpcc_r", &dir, &format!("-c {}", source("report.c"))));
    let build = |options: &str| {
        wrapper("mpxlf_r", &dir, &format!("{options} {} report.o -o mixed", source("mixed.f")))
    };
    for options in ["", "-qextname"] {
        let output = build(options);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("report_"), "{said}");
    }
    ok(&build("-qnoextname"));
    let job = Job::new(dir.join("mixed")).procs(2).run();
    assert_eq!(job.ok().stdout, "tasks 2\ntasks 2\n");
}
