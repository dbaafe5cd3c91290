//! Whole builds: makefiles with the lines of real programs, and a configure script, whose compilers
//! are AIX's by name.

use std::fs;
use std::path::Path;

use super::{command, folder, ok, source};
use openlapi_tests::{Job, stage};

/// Writes files, runs make, and returns what it printed.
#[track_caller]
fn make(dir: &Path, files: &[(&str, &str)], args: &[&str]) -> String {
    for (name, text) in files {
        fs::write(dir.join(name), text).expect("a file");
    }
    ok(&command("make", dir).args(args).output().expect("make runs"))
}

const FREE: &str = "module shared\n  real :: x = 1.0 / 3.0\nend module shared\n";
const MAIN: &str = "program main\n  use shared\n#ifdef PARALLEL\n  include 'lapif.h'\n  type (LAPI_INFO_T) info\n  integer hndl, ierror\n  call LAPI_INIT(hndl, info, ierror)\n  if (ierror /= LAPI_SUCCESS) stop 3\n  call LAPI_TERM(hndl, ierror)\n#endif\n  print '(I0, 1X, L1)', kind(x), x == 1.0 / 3.0\nend program main\n";

/// As ocean models have it: preprocessed files, `-qsuffix`, options for the linker,
/// libraries of xlf.
#[test]
fn a_makefile_of_an_ocean_model() {
    let dir = folder("ocean");
    let makefile = "\
FC = mpxlf95_r -qsuffix=f=f90:cpp=F90
FFLAGS = -O3 -qstrict -qmaxmem=-1 -qarch=auto -qtune=auto -qcache=auto -qfree=f90 -q64 -qrealsize=8 -qfloat=rsqrt:fltint
CPPFLAGS = -WF,-DPARALLEL,-DAIX,-P
LDFLAGS = -q64 -bmaxdata:0x80000000 -bmaxstack:0x10000000 -bloadmap:map -brtl
LIBS = -lxlf90_r -lxlopt -lm
ocean: shared.o main.o
\t$(FC) $(LDFLAGS) shared.o main.o -o $@ $(LIBS)
shared.o: shared.f90
\t$(FC) -c $(FFLAGS) shared.f90
main.o: main.F90 shared.o
\t$(FC) -c $(FFLAGS) $(CPPFLAGS) main.F90
";
    make(&dir, &[("Makefile", makefile), ("shared.f90", FREE), ("main.F90", MAIN)], &["ocean"]);
    assert_eq!(Job::new(dir.join("ocean")).procs(2).run().ok().stdout, "8 T\n8 T\n");
}

/// As weather models have it: one set of options for free form and one for fixed, and files that
/// are compiled for debugging.
#[test]
fn a_makefile_of_a_weather_model() {
    let dir = folder("weather");
    let makefile = "\
FC = mpxlf90_r
CC = cc_r
BASE = -w -qspill=20000 -qmaxmem=32767 -qhalt=s -qnoprint -qfullpath -qxlf77=leadzero -qzerosize
DEBUG = -g -C -qflttrap=ov:zero:inv:en -qsigtrap -qinitauto=7FF7FFFF
weather: numbers.o main.o types.o
\t$(FC) -bbigtoc -qsmp=omp:noauto:schedule=static shared.o main.o -o $@
\t$(CC) types.o -o types -lc_r -lpthreads
main.o: main.F90
\t$(FC) -c -O3 -qhot -qipa=level=1 $(BASE) -qrealsize=8 -qintsize=4 -WF,-DPARALLEL shared.f90 main.F90
numbers.o: $(FIXED)
\t$(FC) -c $(BASE) $(DEBUG) -qfixed=72 $(FIXED) -o $@
types.o: $(TYPES)
\t$(CC) -c -O2 -qstrict -qlanglvl=extc99 -qcpluscmt -qro -qinfo=all:noppt -DAIX $(TYPES)
";
    let (fixed, types) = (format!("FIXED={}", source("numbers.f")), format!("TYPES={}", source("types.c")));
    let files = [("Makefile", makefile), ("shared.f90", FREE), ("main.F90", MAIN)];
    make(&dir, &files, &["weather", &fixed, &types]);
    assert_eq!(Job::new(dir.join("weather")).procs(2).run().ok().stdout, "8 T\n8 T\n");
}

/// As chemistry codes have it: FORTRAN 77 with integers of eight bytes, whose
/// communication is in C.
#[test]
fn a_makefile_of_a_chemistry_code() {
    let dir = folder("chemistry");
    let makefile = "\
FC = mpxlf_r -q64 -qintsize=8 -qextname
CC = mpcc_r -q64
chemistry: energy.o ddi.o
\t$(FC) -bmaxdata:0 -bdatapsize:64K energy.o ddi.o -o $@ -lf -lxlf -llapi_r
energy.o: energy.f
\t$(FC) -c -O2 -qarch=pwr4 -qmaxmem=-1 -qnosave -qflag=E:E energy.f
ddi.o: ddi.c
\t$(CC) -c -O3 -qstrict -qarch=auto -qnoinfo -DINT_SIZE=long ddi.c
";
    let energy = "      INTEGER N\n      CALL DDI_INIT(N)\n      IF (N.NE.2) STOP 1\n      PRINT '(A,I0)', 'bytes ', KIND(N)\n      END\n";
    let ddi = "#include <lapi.h>\nvoid ddi_init_(INT_SIZE *n)\n{\n    lapi_handle_t hndl;\n    lapi_info_t info = { 0 };\n    int tasks = 0;\n    LAPI_Init(&hndl, &info);\n    LAPI_Qenv(hndl, NUM_TASKS, &tasks);\n    LAPI_Term(hndl);\n    *n = tasks;\n}\n";
    make(&dir, &[("Makefile", makefile), ("energy.f", energy), ("ddi.c", ddi)], &["chemistry"]);
    assert_eq!(Job::new(dir.join("chemistry")).procs(2).run().ok().stdout, "bytes 8\nbytes 8\n");
}

/// `-+`: files of any name are C++, but those that are compiled.
#[test]
fn sources_of_any_name_are_of_the_language_that_is_named() {
    let dir = folder("sourcetype");
    let files = [
        ("main.c", "namespace first { int seven(); }\nint main() { return first::seven() - 7; }\n"),
        ("seven.data", "namespace first { int seven() { return 7; } }\n"),
    ];
    for (name, text) in files {
        fs::write(dir.join(name), text).expect("a file");
    }
    for option in ["-+", "-qsourcetype=c++"] {
        let run = |args: &str| ok(&super::wrapper("xlC", &dir, &format!("{option} {args}")));
        run("-c main.c -o main.o");
        run("-c seven.data -o seven.o");
        ok(&command("ar", &dir).args(["rcs", "seven.a", "seven.o"]).output().expect("ar runs"));
        for files in
            ["main.o seven.o", "main.o seven.a", "main.o seven.data", "main.c seven.o", "main.c seven.data"]
        {
            run(&format!("-o program {files}"));
            ok(&command("./program", &dir).output().expect("the program runs"));
        }
    }
    let shown = |args: &str| ok(&super::wrapper("xlC", &dir, &format!("-show -c {args}")));
    let command = shown("-+ a.x b.o c.y d.z -qsourcetype=default e.C");
    assert!(command.contains(" -x c++ a.x -x none b.o -x c++ c.y d.z -x none e.C "), "{command}");
    // The language that gcc's own option names is left to it.
    let command = shown("-+ a.x -x c b.o -qsourcetype=default c.o -xc d.o");
    assert!(command.contains(" -x c++ a.x -x c b.o -x none c.o -xc d.o "), "{command}");
}

/// A file of options is read as if they stood on the command line.
#[test]
fn a_file_of_options_is_examined_too() {
    let dir = folder("file");
    fs::write(dir.join("flags"), "-qchars=unsigned -qarch=pwr4\n\"-DTEXT=a b\" -O2\n").expect("a file");
    for named in ["@flags", "-qoptfile=flags"] {
        let command = ok(&super::wrapper("mpcc_r", &dir, &format!("-show {named} -c a.c")));
        assert!(command.starts_with("cc -funsigned-char '-DTEXT=a b' -O2 -c a.c "), "{command}");
    }
    fs::write(dir.join("flags"), "-qnoro -O2\n").expect("a file");
    assert!(super::refused(&super::wrapper("mpcc_r", &dir, "@flags -c a.c")).contains("-qnoro"));
    assert!(super::refused(&super::wrapper("mpcc_r", &dir, "@missing -c a.c")).contains("@missing"));
    // The compiler is chosen before files are read.
    for text in ["-O2 -compiler=gcc\n", "-o a -compiler gcc\n", "@more\n", "-compiler\n"] {
        fs::write(dir.join("flags"), text).expect("a file");
        fs::write(dir.join("more"), "-compiler gcc\n").expect("a file");
        let said = super::refused(&super::wrapper("mpcc_r", &dir, "-show -O1 @flags -compiler cc -c a.c"));
        assert!(said.contains("-compiler") && said.contains("on the command line"), "{said}");
    }
    fs::write(dir.join("flags"), "-O2 -o\n").expect("a file");
    let command = ok(&super::wrapper("mpcc_r", &dir, "-show @flags a -compiler gcc a.c"));
    assert!(command.starts_with("gcc -O2 -o a a.c "), "{command}");
    // One that names itself, alone and with others; one whose quote does not end; one
    // without options.
    for (text, words) in [
        ("-O2 @flags\n", "does one of them name itself?"),
        ("@flags -qoptfile=flags\n", "does one of them name itself?"),
        ("-O2 -DTEXT='a b\n-g\n", "does a quote have no end?"),
    ] {
        fs::write(dir.join("flags"), text).expect("a file");
        let said = super::refused(&super::wrapper("mpcc_r", &dir, "-show @flags -c a.c"));
        assert!(said.contains(words) && said.lines().count() == 1, "{text}{said}");
    }
    fs::write(dir.join("flags"), "").expect("a file");
    let command = ok(&super::wrapper("mpcc_r", &dir, "-show @flags -c a.c"));
    assert!(command.starts_with("cc -c a.c "), "{command}");
}

/// The questions of configure scripts, with the options of a site file for AIX.
#[test]
fn a_configure_script_that_was_told_of_aix() {
    let dir = folder("configure");
    let script = r#"
        set -e
        CC="xlc_r -q64" CFLAGS="-O2 -qarch=auto -qlanglvl=extc99"
        FC="xlf95_r -q64" FFLAGS="-O2 -qfixed -qextname -qnosave" LDFLAGS="-brtl -bmaxdata:0x80000000"
        echo 'int main(void) { return 0; }' >conftest.c
        $CC $CFLAGS $LDFLAGS conftest.c -o conftest 2>err
        test ! -s err
        ./conftest
        $CC -qversion >version
        grep -q 'Free Software' version
        grep -q 'xlc_r (OpenLAPI)' version
        # An option is tried, and the status shows its absence.
        $CC -qlanglvl=extc89 -c conftest.c
        if $CC -qnosuchoption -c conftest.c 2>err; then exit 1; fi
        grep -q nosuchoption err
        $CC -E conftest.c | grep -q main
        $CC -E -P conftest.c | grep -q main
        printf '      CALL NAMED\n      END\n' >conftest.f
        $FC $FFLAGS -c conftest.f
        nm conftest.o | grep -q ' named_$'
        $FC $FFLAGS -qnoextname -c conftest.f
        nm conftest.o | grep -q ' named$'
        printf '      END\n' >main.f
        $FC $FFLAGS -v $LDFLAGS main.f -o main >log 2>&1
        grep -q -- -llapi_r log
        ./main
        $CC -G -qpic conftest.c -o conftest.so
        $CC -qmkshrobj -qpic conftest.c -bE:exports -o conftest.so
    "#;
    let output = command("sh", &dir).args(["-c", script]).output().expect("sh runs");
    ok(&output);
}

#[test]
fn help_and_version_are_those_of_the_wrapper_too() {
    let dir = folder("help");
    let run = |driver, args| ok(&super::wrapper(driver, &dir, args));
    for (driver, compiler) in [("mpcc_r", "cc"), ("mpCC_r", "c++"), ("xlf_r", "gfortran")] {
        let help = run(driver, "-h");
        assert!(help.contains(&format!("usage: {driver} ")) && help.contains("-showme:link"), "{help}");
        assert!(help.contains(compiler) && !help.contains("--target-help"), "{help}");
        let both = run(driver, "--help");
        assert!(both.starts_with(help.trim_end()) && both.contains("--target-help"), "{both}");
        let version = run(driver, "--version");
        assert!(version.contains("Free Software Foundation"), "{version}");
        let own = format!("{driver} (OpenLAPI) {}, which calls {compiler}", env!("CARGO_PKG_VERSION"));
        // Scripts look for the first number for that of the compiler.
        assert_eq!(version.trim_end().lines().last(), Some(own.as_str()));
    }
    assert!(stage().join("share/openlapi/xl-options").exists());
}
