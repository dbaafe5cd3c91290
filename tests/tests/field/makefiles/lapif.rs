//! What Fortran programs and `lapif.h` expect of each other: kinds of integers, an uninitialised
//! LAPI_INFO_T, lengths, crashes.

use std::fs;
use std::path::{Path, PathBuf};

use super::{folder, ok, source, wrapper};
use openlapi_tests::{Job, stage, workspace};

/// Writes and compiles a program.
fn build(name: &str, driver: &str, options: &str, text: &str) -> (PathBuf, std::process::Output) {
    let dir = folder(name);
    fs::write(dir.join("prog.f"), text).expect("a source");
    let output = wrapper(driver, &dir, &format!("{options} prog.f -o prog"));
    (dir, output)
}

/// The first program of the page, as it is there: by drivers whose variables begin with anything,
/// and optimised.
#[test]
fn the_first_program_of_the_page_runs() {
    let page = fs::read_to_string(workspace().join("docs/fortran.md")).expect("the page");
    let program =
        page.split("```fortran\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a program");
    for (driver, options) in
        [("mpfort", "-O2"), ("mpxlf_r", "-O3"), ("xlf90_r", "-O2 -qfixed"), ("mpfort", "-g")]
    {
        let (dir, output) = build("page", driver, options, program);
        ok(&output);
        let run = Job::new(dir.join("prog")).procs(3).run();
        let mut lines: Vec<_> = run
            .ok()
            .stdout
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .split(" task")
            .map(str::to_owned)
            .collect();
        lines.sort();
        assert_eq!(lines.len(), 3, "{run}");
        for (task, from) in [(0, 102), (1, 100), (2, 101)] {
            let expected = format!("{task} has got {from}");
            assert!(lines.iter().any(|line| line.ends_with(&expected)), "{expected} in {run}");
        }
    }
}

/// An uninitialised variable of this type on a stack full of ones, in each form of the source.
#[test]
fn an_uninitialised_lapi_info_is_zero() {
    let text = "      PROGRAM P\n      CALL FILL\n      CALL START\n      END\n      RECURSIVE SUBROUTINE FILL\n      INTEGER*8 A(4000)\n      CALL SET(A)\n      END\n      SUBROUTINE SET(A)\n      INTEGER*8 A(4000)\n      A = -1\n      END\n      RECURSIVE SUBROUTINE START\n      INCLUDE 'lapif.h'\n      TYPE (LAPI_INFO_T) INFO\n      INTEGER HNDL, IERROR\n      CALL LAPI_INIT(HNDL, INFO, IERROR)\n      IF (IERROR .NE. LAPI_SUCCESS) STOP 3\n      CALL LAPI_TERM(HNDL, IERROR)\n      END\n";
    for (driver, options) in
        [("mpfort", "-O0 -ffixed-form"), ("xlf95_r", "-O0"), ("mpfort", "-O2 -ffixed-form")]
    {
        let (dir, output) = build("info", driver, options, text);
        ok(&output);
        Job::new(dir.join("prog")).procs(2).run().ok();
    }
}

#[test]
fn eight_byte_integers_are_refused_by_name() {
    let fixed = "      INCLUDE 'lapif.h'\n      INTEGER IERROR\n      CALL LAPI_TERM(0, IERROR)\n      END\n";
    for (driver, options) in
        [("mpxlf_r", "-qintsize=8"), ("mpfort", "-fdefault-integer-8"), ("mpxlf90_r", "-qintsize=8")]
    {
        let (_, output) = build("wide", driver, options, fixed);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("lapi_needs_integers_of_4_bytes"), "{said}");
    }
    ok(&build("wide", "mpxlf_r", "-c -qrealsize=8 -qautodbl=dbl8", fixed).1);
}

/// The module serves such programs: it is compiled without the option, and tells integers of four
/// bytes from those of eight.
#[test]
fn the_module_serves_programs_with_eight_byte_integers() {
    let dir = folder("module");
    let module = stage().join("include/lapi.f90");
    ok(&wrapper("mpxlf90_r", &dir, &format!("-c {}", module.display())));
    let text = |kind: &str| {
        format!(
            "program p\n  use lapi\n  integer wide\n  integer ({kind}) hndl, ierror, tasks\n  type (LAPI_INFO_T) info\n  \
             call LAPI_INIT(hndl, info, ierror)\n  if (ierror /= LAPI_SUCCESS) stop 3\n  \
             call LAPI_QENV(hndl, NUM_TASKS, tasks, ierror)\n  call LAPI_TERM(hndl, ierror)\n  \
             print '(I0, A, I0, I2)', kind(wide), ' and ', kind(tasks), tasks\nend program p\n"
        )
    };
    fs::write(dir.join("p.f90"), text("KIND=4")).expect("a source");
    ok(&wrapper("mpxlf90_r", &dir, "-qintsize=8 p.f90 lapi.o -o p"));
    assert_eq!(Job::new(dir.join("p")).procs(2).run().ok().stdout, "8 and 4 2\n8 and 4 2\n");
    fs::write(dir.join("p.f90"), text("KIND=8")).expect("a source");
    let output = wrapper("mpxlf90_r", &dir, "-qintsize=8 -c p.f90");
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("INTEGER(8)"));
}

/// A length of four bytes is read together with what lies behind it.
#[test]
fn a_length_of_four_bytes_is_asked_about() {
    let program = "      PROGRAM P\n      INCLUDE 'lapif.h'\n      TYPE (LAPI_INFO_T) INFO\n      INTEGER HNDL, IERROR, BUFFER(2), BYTES(2)\n      INTEGER (KIND=LAPI_ADDR_TYPE) PLACE\n      COMMON /SHARED/ BUFFER, BYTES\n      CALL LAPI_INIT(HNDL, INFO, IERROR)\n      CALL LAPI_ADDRESS(BUFFER, PLACE, IERROR)\n      BYTES(1) = 8\n      BYTES(2) = 1200000000\n      CALL LAPI_PUT(HNDL, 0, BYTES, PLACE, BUFFER, LAPI_ADDR_NULL,\n     & LAPI_ADDR_NULL, LAPI_ADDR_NULL, IERROR)\n      PRINT '(A,L1)', 'put ', IERROR .EQ. LAPI_ERR_DATA_LEN\n      CALL LAPI_GET(HNDL, 0, BYTES, PLACE, BUFFER, LAPI_ADDR_NULL,\n     & LAPI_ADDR_NULL, IERROR)\n      PRINT '(A,L1)', 'get ', IERROR .EQ. LAPI_ERR_DATA_LEN\n      CALL LAPI_TERM(HNDL, IERROR)\n      END\n";
    let (dir, output) = build("length", "mpxlf_r", "", program);
    ok(&output);
    let run = Job::new(dir.join("prog")).procs(1).env("MP_INFOLEVEL", "2").run();
    assert_eq!(run.ok().stdout, "put T\nget T\n");
    assert!(run.stderr.contains("was a 4-byte INTEGER passed for len?"), "{run}");
}

/// One description of a crash: LAPI's, without that of gfortran's library in between.
#[test]
fn a_crash_is_described_once() {
    let program = "      PROGRAM P\n      INCLUDE 'lapif.h'\n      TYPE (LAPI_INFO_T) INFO\n      INTEGER HNDL, IERROR, X\n      POINTER (WHERE, X)\n      CALL LAPI_INIT(HNDL, INFO, IERROR)\n      WHERE = 8\n      X = 1\n      END\n";
    let (dir, output) = build("crash", "mpxlf_r", "-g", program);
    ok(&output);
    let run = Job::new(dir.join("prog")).procs(1).run();
    assert_ne!(run.status, Some(0), "{run}");
    assert!(run.stderr.contains("signal 11 (SIGSEGV) at address 0x8"), "{run}");
    assert!(!run.stderr.contains("Backtrace for this error"), "{run}");
    // Who wants gfortran's asks for it.
    let shown =
        ok(&wrapper("mpxlf_r", Path::new("."), &format!("-show -fbacktrace {}", source("numbers.f"))));
    assert!(shown.find("-fno-backtrace") < shown.find("-fbacktrace"), "{shown}");
}
