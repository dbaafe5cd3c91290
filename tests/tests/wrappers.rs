//! The compile wrappers as build systems use them, the helper archive, and the files that
//! `make install` installs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use openlapi_tests::{build_dir, stage, workspace};

/// A compiler run: status, standard output, standard error.
struct Ran {
    ok: bool,
    stdout: String,
    stderr: String,
}

/// Runs a program in a folder of its own, with these variables and no others that
/// choose a compiler.
fn run_in(dir: &Path, program: &Path, args: &[&str], env: &[(&str, &str)]) -> Ran {
    let mut command = Command::new(program);
    for chooser in ["CC", "CXX", "FC", "MP_COMPILER", "MP_MSG_API"] {
        command.env_remove(chooser);
    }
    let output =
        command.args(args).current_dir(dir).envs(env.iter().copied()).output().expect("it can be run");
    let text = |bytes| String::from_utf8(bytes).expect("compilers write UTF-8");
    Ran { ok: output.status.success(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

impl Ran {
    #[track_caller]
    fn ok(self) -> Self {
        assert!(self.ok, "{}{}", self.stdout, self.stderr);
        self
    }
}

fn wrapper(name: &str) -> PathBuf {
    stage().join("bin").join(name)
}

/// The command that a wrapper would run.
#[track_caller]
fn shown(name: &str, args: &[&str], env: &[(&str, &str)]) -> String {
    let args: Vec<&str> = ["-show"].iter().chain(args).copied().collect();
    run_in(workspace(), &wrapper(name), &args, env).ok().stdout.trim_end().to_owned()
}

/// A fresh folder.
fn folder(name: &str) -> PathBuf {
    let dir = build_dir().join("tests").join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("the folder can be made");
    dir
}

fn script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}")).expect("the script can be written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it can be made executable");
}

#[test]
fn a_program_is_linked_with_everything_it_needs() {
    let prefix = stage().display();
    assert_eq!(
        shown("mpcc_r", &["-O2", "a.c", "-o", "a"], &[]),
        format!(
            "cc -O2 a.c -o a -fcommon -I{prefix}/include -pthread -no-pie -L{prefix}/lib -Wl,-rpath,{prefix}/lib -llapi_r -laixcompat"
        )
    );
    assert!(shown("mpCC_r", &["a.C"], &[]).starts_with("c++ a.C "));
    assert!(shown("cc_r", &["a.c"], &[]).starts_with("cc a.c "));
    for (name, same) in
        [("mpcc", "mpcc_r"), ("mpCC", "mpCC_r"), ("mpxlf", "mpxlf_r"), ("mpxlf90", "mpxlf90_r")]
    {
        assert_eq!(shown(name, &["-q64", "a"], &[]), shown(same, &["-q64", "a"], &[]));
    }
    assert!(shown("mpcc", &["a.c"], &[("CC", "/opt/bin/mpcc")]).starts_with("cc a.c "));
}

/// Variables without an initial value in a header are one variable for old programs, as they
/// were until gcc 10.
/// A user's CDPATH has nothing to do with where a wrapper is installed.
#[test]
fn a_wrapper_finds_its_installation_whatever_cdpath_says() {
    let elsewhere = folder("wrappers-cdpath");
    fs::create_dir(elsewhere.join("bin")).expect("a folder");
    let path = format!(".:{}", elsewhere.display());
    let command = "exec bin/mpcc_r -show -c x.c";
    let ran = run_in(stage(), Path::new("/bin/sh"), &["-c", command], &[("CDPATH", &path)]).ok();
    assert!(ran.stdout.contains(&format!("-I{}/include", stage().display())), "{}", ran.stdout);
}

#[test]
fn tentative_definitions_are_one_variable() {
    let dir = folder("wrapper_common");
    fs::write(dir.join("shared.h"), "int shared;\nvoid set(void);\n").expect("a header");
    fs::write(dir.join("a.c"), "#include \"shared.h\"\nint main(void) { set(); return shared - 7; }\n")
        .expect("a source");
    fs::write(dir.join("b.c"), "#include \"shared.h\"\nvoid set(void) { shared = 7; }\n").expect("a source");
    run_in(&dir, &wrapper("mpcc_r"), &["a.c", "b.c", "-o", "one"], &[]).ok();
    run_in(&dir, &dir.join("one"), &[], &[]).ok();
    let refused = run_in(&dir, &wrapper("mpcc_r"), &["-fno-common", "a.c", "b.c", "-o", "two"], &[]);
    assert!(!refused.ok && refused.stderr.contains("multiple definition"), "{}", refused.stderr);
    for (name, given) in [("mpcc_r", "-fno-common"), ("mpcc_r", "-fcommon"), ("mpCC_r", "-O2")] {
        let command = shown(name, &[given, "a.c"], &[]);
        assert_eq!(command.matches("-fcommon").count(), usize::from(given == "-fcommon"), "{command}");
    }
}

#[test]
fn libraries_come_only_where_something_is_linked() {
    for mode in ["-c", "-S", "-E", "-M", "-MM"] {
        let command = shown("mpcc_r", &[mode, "a.c"], &[]);
        assert!(command.contains("/include -pthread") && !command.contains("-llapi_r"), "{command}");
    }
    let library = shown("mpcc_r", &["-shared", "a.o", "-o", "a.so"], &[]);
    assert!(library.contains("-llapi_r") && !library.contains("-no-pie"), "{library}");
    // Options for dependencies do not prevent linking.
    assert!(shown("mpcc_r", &["-MD", "-MF", "a.d", "a.c"], &[]).contains("-llapi_r"));
    // Values of options are not input files.
    for args in [&["--version"][..], &["-v"], &["-dumpmachine"], &["-o", "a"], &["-I", "dir"]] {
        let command = shown("mpcc_r", args, &[]);
        assert!(!command.contains("-llapi_r"), "{command}");
    }
}

/// On AIX -M writes dependencies beside the object file, and gcc's in place of it.
#[test]
fn dependencies_leave_the_object_file_alone() {
    let dir = folder("wrapper_dependencies");
    fs::write(dir.join("status.h"), "#define STATUS 0\n").expect("a header");
    for source in ["a.c", "a.C"] {
        fs::write(dir.join(source), "#include \"status.h\"\nint main(void) { return STATUS; }\n")
            .expect("a source");
    }
    for (name, source) in [("xlc_r", "a.c"), ("mpcc_r", "a.c"), ("xlC_r", "a.C")] {
        fs::write(dir.join("options"), format!("-c {source} -o a.o\n")).expect("a file of options");
        for args in [
            &["-M", "-c", source, "-o", "a.o"][..],
            &["-c", source, "-o", "a.o", "-M"],
            &["-M", "-qoptfile=options"],
        ] {
            run_in(&dir, &wrapper(name), args, &[]).ok();
            run_in(&dir, &wrapper(name), &["a.o", "-o", "a"], &[]).ok();
            run_in(&dir, &dir.join("a"), &[], &[]).ok();
            let rule = fs::read_to_string(dir.join("a.d")).expect("dependencies");
            assert!(rule.starts_with("a.o: ") && rule.contains(" status.h"), "{rule}");
            for made in ["a", "a.d", "a.o"] {
                fs::remove_file(dir.join(made)).expect("it was made");
            }
        }
        // A pipe can be read once.
        let script = r#""$0" -show "$1" @<(echo -DX=1)"#;
        let from = wrapper(name);
        let args = ["-c", script, from.to_str().expect("a path"), source];
        let shown = run_in(&dir, Path::new("bash"), &args, &[]).ok().stdout;
        assert!(shown.contains(" -DX=1 "), "{shown}");
        let printed = run_in(&dir, &wrapper(name), &["-M", source], &[]).ok().stdout;
        assert!(printed.starts_with("a.o: ") && printed.contains(" status.h"), "{printed}");
    }
}

#[test]
fn a_query_prints_the_options_for_a_build_without_the_wrapper() {
    let prefix = stage().display();
    let flags = |query: &str| {
        run_in(workspace(), &wrapper("mpcc_r"), &[query], &[]).ok().stdout.trim_end().to_owned()
    };
    assert_eq!(flags("-showme:compile"), format!("-fcommon -I{prefix}/include -pthread"));
    let link = format!("-pthread -no-pie -L{prefix}/lib -Wl,-rpath,{prefix}/lib -llapi_r -laixcompat");
    assert_eq!(flags("-showme:link"), link);
    for query in ["-show", "-showme"] {
        assert_eq!(flags(query), format!("cc -fcommon -I{prefix}/include {link}"));
    }
    let given =
        run_in(workspace(), &wrapper("mpcc_r"), &["-showme:compile", "-q32", "-O2", "a.c"], &[]).ok().stdout;
    assert_eq!(given.trim_end(), format!("-m32 -fcommon -I{prefix}/include -pthread"));
    assert_eq!(flags("-showme:version"), format!("mpcc_r (OpenLAPI) {}", env!("CARGO_PKG_VERSION")));

    // What it prints is enough for the compiler alone.
    let dir = folder("wrappers_query");
    fs::write(
        dir.join("a.c"),
        "#include <lapi.h>\nint main(void) { return LAPI_Fence(0) == LAPI_SUCCESS; }\n",
    )
    .unwrap();
    let (compile, link) = (flags("-showme:compile"), flags("-showme:link"));
    let build = format!("cc {compile} -c a.c && cc a.o {link} -o a && ./a");
    run_in(&dir, Path::new("/bin/sh"), &["-c", &build], &[]).ok();
}

#[test]
fn options_of_the_old_compilers_are_translated_or_dropped() {
    let args =
        "-q64 -qarch=pwr4 -qlanglvl=extc99 -bmaxdata:0x80000000 a.c -lf -lxlf90 -lxlf -lc_r -lpthreads -lm";
    let command = shown("mpcc_r", &args.split(' ').collect::<Vec<_>>(), &[]);
    assert!(command.starts_with("cc -m64 -std=gnu99 a.c -lm -fcommon -I"), "{command}");
    assert!(shown("mpcc_r", &["-q32", "-c", "a.c"], &[]).starts_with("cc -m32 -c a.c "));
    assert_eq!(shown("mpcc_r", &["-qversion"], &[]), "cc --version");
}

/// xlf reads them so, except names.
#[test]
fn options_of_xlf_may_have_capital_letters() {
    let command =
        shown("mpxlf_r", &["-qREALSIZE=8", "-qXlf2003=NOAUTOREALLOC", "-qmoddir=Mods", "-c", "a.f"], &[]);
    assert!(command.contains(" -fdefault-real-8 -fno-realloc-lhs -JMods -c a.f "), "{command}");
    for option in ["-qALIAS=NOSTD", "-qxlf2003=OLDNANINF"] {
        let refused = run_in(workspace(), &wrapper("mpxlf_r"), &[option, "-c", "a.f"], &[]);
        assert!(!refused.ok && refused.stderr.contains(&option.to_lowercase()), "{}", refused.stderr);
    }
}

#[test]
fn files_of_options_have_comments() {
    let dir = folder("wrapper_comments");
    fs::write(dir.join("options"), "# don't use -E, see main.c\n-O2 '-DNAME=a b'\n  # -c\n-DLAST #1\n")
        .expect("a file of options");
    let command = run_in(&dir, &wrapper("xlc_r"), &["-show", "-qoptfile=options", "a.c"], &[]).ok().stdout;
    assert!(command.contains(" -O2 '-DNAME=a b' -DLAST '#1' a.c "), "{command}");
    assert!(command.contains("-llapi_r"), "{command}");
}

#[test]
fn the_compiler_can_be_chosen() {
    let chosen = |name, args: &[&str], env: &[(&str, &str)]| {
        shown(name, args, env).split(" a.c").next().map(str::to_owned).unwrap_or_default()
    };
    assert_eq!(chosen("mpcc_r", &["-compiler", "clang", "a.c"], &[("MP_COMPILER", "gcc")]), "clang");
    assert_eq!(chosen("mpcc_r", &["a.c"], &[("MP_COMPILER", "gcc-12"), ("CC", "tcc")]), "gcc-12");
    assert_eq!(chosen("mpcc_r", &["a.c"], &[("CC", "ccache gcc -std=c99")]), "ccache gcc -std=c99");
    assert_eq!(chosen("mpCC_r", &["a.c"], &[("MP_COMPILER", "/usr/bin/gcc-12")]), "/usr/bin/g++-12");
    let of_another_machine = [("MP_COMPILER", "aarch64-linux-gnu-gcc")];
    assert_eq!(chosen("mpcc_r", &["a.c"], &of_another_machine), "aarch64-linux-gnu-gcc");
    assert_eq!(chosen("mpCC_r", &["a.c"], &of_another_machine), "aarch64-linux-gnu-g++");
    assert_eq!(chosen("mpCC_r", &["a.c"], &[("MP_COMPILER", "clang")]), "clang++");
    assert_eq!(chosen("mpCC_r", &["a.c"], &[("CXX", "g++-12")]), "g++-12");
    // A configure script that was given CC=mpcc_r passes it on to the wrapper itself.
    assert_eq!(chosen("mpcc_r", &["a.c"], &[("CC", "mpcc_r")]), "cc");
    assert_eq!(
        chosen("cc_r", &["a.c"], &[("CC", "ccache /opt/bin/mpcc_r -O2"), ("MP_COMPILER", "mpcc_r")]),
        "cc"
    );
    assert_eq!(chosen("mpCC_r", &["a.c"], &[("CXX", "mpCC_r -q64")]), "c++");
    let missing = run_in(workspace(), &wrapper("mpcc_r"), &["-compiler"], &[]);
    assert!(!missing.ok && missing.stderr.contains("-compiler"), "{}", missing.stderr);
}

#[test]
fn fortran_has_its_own_compiler_form_and_header() {
    let prefix = stage().display();
    let rest = format!(
        "-I{prefix}/include -pthread -no-pie -L{prefix}/lib -Wl,-rpath,{prefix}/lib -llapi_r -laixcompat"
    );
    let gfortran = "gfortran -fallow-argument-mismatch -fno-backtrace";
    let of_xlf = "-fbackslash -fd-lines-as-comments -fcray-pointer";
    let xlf = format!("{gfortran} -fno-automatic {of_xlf}");
    // Free form has no D lines, and gfortran would warn.
    let xlf90 = format!("{gfortran} -ffree-form -fbackslash -fcray-pointer");
    // What the drivers begin with, and then options.
    for (name, begin) in
        [("mpxlf_r", xlf.as_str()), ("xlf_r", &xlf), ("mpxlf90_r", &xlf90), ("mpfort", gfortran)]
    {
        assert_eq!(
            shown(name, &["-qextname", "a.f", "-o", "a"], &[]),
            format!("{begin} -funderscoring a.f -o a {rest}")
        );
    }
    let forms = |name, args: &[&str]| shown(name, args, &[]).split(" a.f").next().map(str::to_owned);
    let fixed = format!("{gfortran} -ffree-form {of_xlf} -ffixed-form");
    assert_eq!(forms("mpxlf90_r", &["-qfixed", "a.f"]), Some(fixed));
    let free = format!("{gfortran} -fno-automatic -fbackslash -fcray-pointer");
    for (name, args, begin) in [
        ("mpxlf_r", &["-c", "a.f90"][..], &free),
        ("mpxlf_r", &["-c", "a.F03", "b.o"], &free),
        ("mpxlf_r", &["-qfree", "-c", "a.f"], &free),
        ("mpxlf_r", &["-qfixed", "-c", "a.f90"], &xlf),
        ("mpxlf_r", &["-c", "a.f90", "b.f"], &xlf),
        ("mpxlf_r", &["a.o"], &xlf),
        ("mpxlf90_r", &["-qfixed", "-qfree=f90", "-c", "a.f"], &xlf90),
    ] {
        let command = shown(name, args, &[]);
        let rest = command.strip_prefix(begin.as_str()).unwrap_or_else(|| panic!("{command}"));
        assert!(!rest.contains("-fd-lines"), "{command}");
    }
    let long = format!("{xlf} -ffixed-form -ffixed-line-length-132");
    assert_eq!(forms("mpxlf_r", &["-qfixed=132", "a.f"]), Some(long));
    assert_eq!(forms("mpfort", &["-qfree=f90", "a.f"]), Some(format!("{gfortran} -ffree-form")));
    let defined = shown("mpxlf_r", &["-WF,-DONE,-DTWO=2", "-c", "a.F"], &[]);
    assert!(defined.starts_with(&format!("{xlf} -DONE -DTWO=2 -c a.F -I")), "{defined}");
    // 32-bit programs have a header of their own; it comes first.
    let narrow = shown("mpxlf_r", &["-q32", "-c", "a.f"], &[]);
    assert!(narrow.contains(&format!("-m32 -c a.f -I{prefix}/include/32 -I{prefix}/include")), "{narrow}");
    let wide = shown("mpxlf_r", &["-q32", "-q64", "-c", "a.f"], &[]);
    assert!(!wide.contains("include/32"), "{wide}");
    // Options of Fortran have no effect in C.
    assert!(shown("mpcc_r", &["-qfree", "-c", "a.c"], &[]).starts_with("cc -c a.c "));
}

/// As a build with warnings as errors does.
#[test]
fn free_form_has_no_warning() {
    let dir = folder("wrapper_free");
    for (name, file) in
        [("mpxlf90_r", "a.f"), ("xlf95", "a.f90"), ("mpxlf2003_r", "a.f90"), ("mpxlf_r", "a.f90")]
    {
        fs::write(dir.join(file), "program a\n  print *, 1\nend program\n").expect("a source");
        let ran = run_in(&dir, &wrapper(name), &["-Werror", "-c", file], &[]).ok();
        assert_eq!(ran.stderr, "", "{name}");
    }
}

#[test]
fn what_is_not_installed_is_named() {
    let dir = folder("wrapper_missing");
    for (name, file, variable) in
        [("mpxlf_r", "a.f", "FC"), ("mpCC_r", "a.C", "CXX"), ("mpcc_r", "a.c", "CC")]
    {
        let ran = run_in(&dir, &wrapper(name), &["-c", file], &[("MP_COMPILER", "no-such -O2")]);
        let said = format!(
            "{name}: there is no no-such: install it, or name another compiler by MP_COMPILER, {variable} or -compiler\n"
        );
        assert_eq!((ran.ok, &*ran.stderr), (false, &*said));
    }
    // An installation without the 32-bit library.
    for part in ["bin", "share/openlapi"] {
        fs::create_dir_all(dir.join(part)).expect("a folder");
    }
    for part in ["bin/mpcc_r", "share/openlapi/xl-options"] {
        fs::copy(stage().join(part), dir.join(part)).expect("it can be copied");
    }
    // It may be in a folder that the command names.
    for (args, times) in
        [(&["-q32", "a.c"][..], 1), (&["-q32", "-c", "a.c"], 0), (&["a.c"], 0), (&["-q32", "-L.", "a.c"], 0)]
    {
        let args = [&["-compiler", "true"], args].concat();
        let ran = run_in(&dir, Path::new("bin/mpcc_r"), &args, &[]).ok();
        assert_eq!(
            ran.stderr.matches("OpenLAPI was installed without LIB32=yes\n").count(),
            times,
            "{args:?}"
        );
    }
}

#[test]
fn the_fortran_compiler_can_be_chosen() {
    let dir = folder("wrapper_fortran");
    script(&dir.join("other"), "echo 'another compiler, version 20'");
    script(
        &dir.join("gfortran-9"),
        "case $1 in -dumpversion) echo 9 ;; *) echo 'GNU Fortran (GCC) 9.4.0' ;; esac",
    );
    script(
        &dir.join("far-linux-gnu-gfortran"),
        "case $1 in -dumpversion) echo 12 ;; *) echo 'GNU Fortran (GCC) 12.2.0' ;; esac",
    );
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").expect("there is a PATH"));
    let chosen = |args: &[&str], env: &[(&str, &str)]| {
        let env = [&[("PATH", path.as_str())], env].concat();
        let args = [args, &["-c", "a.f"]].concat();
        shown("mpfort", &args, &env).split(" -c a.f").next().map(str::to_owned).unwrap_or_default()
    };
    // Only gfortran of 10 and later is strict, and has the option to relax this.
    assert_eq!(chosen(&["-compiler", "other"], &[("MP_COMPILER", "gfortran")]), "other");
    assert_eq!(chosen(&[], &[("FC", "gfortran-9 -O2")]), "gfortran-9 -O2 -fno-backtrace");
    assert_eq!(chosen(&[], &[("MP_COMPILER", "gcc-9"), ("FC", "other")]), "gfortran-9 -fno-backtrace");
    // That of another machine.
    assert_eq!(
        chosen(&[], &[("MP_COMPILER", "far-linux-gnu-gcc")]),
        "far-linux-gnu-gfortran -fallow-argument-mismatch -fno-backtrace"
    );
    assert_eq!(chosen(&[], &[("FC", "other")]), "other");
    // A configure script that was given FC=mpxlf_r passes it on to the wrapper itself.
    let gfortran = "gfortran -fallow-argument-mismatch -fno-backtrace";
    assert_eq!(chosen(&[], &[("FC", "/opt/bin/mpxlf_r")]), gfortran);
    assert_eq!(chosen(&[], &[("CC", "other"), ("MP_COMPILER", "mpfort")]), gfortran);
    // Of a compiler that is neither gfortran nor flang nothing is known but the form.
    let other = shown("xlf90_r", &["-compiler", "other", "-c", "a.f"], &[("PATH", path.as_str())]);
    assert!(other.starts_with("other -ffree-form -c a.f "), "{other}");
}

#[test]
fn words_stay_whole() {
    let dir = folder("wrapper words");
    fs::write(dir.join("a b.c"), "#include <stdio.h>\nint main(void) { puts(TEXT); return 0; }\n")
        .expect("a source");
    let args = ["a b.c", "-DTEXT=\"it's $HOME * \\\"\"", "-o", "a b"];
    run_in(&dir, &wrapper("mpcc_r"), &args, &[]).ok();
    assert_eq!(run_in(&dir, &dir.join("a b"), &[], &[]).ok().stdout, "it's $HOME * \"\n");
    // What -show prints can be given to a shell.
    fs::remove_file(dir.join("a b")).expect("it was made");
    let command = run_in(&dir, &wrapper("mpcc_r"), &[&["-show"][..], &args[..]].concat(), &[]).ok().stdout;
    run_in(&dir, Path::new("sh"), &["-c", &command], &[]).ok();
    assert_eq!(run_in(&dir, &dir.join("a b"), &[], &[]).ok().stdout, "it's $HOME * \"\n");
}

#[test]
fn the_prefix_is_where_the_wrapper_is_whatever_leads_there() {
    let dir = folder("wrapper_links");
    std::os::unix::fs::symlink(wrapper("mpCC_r"), dir.join("first")).expect("a link");
    std::os::unix::fs::symlink("first", dir.join("second")).expect("a link");
    let include = format!("-I{}/include", stage().display());
    let command = run_in(&dir, Path::new("./second"), &["-show", "a.c"], &[]).ok().stdout;
    assert!(command.contains(&include) && command.starts_with("c++ "), "{command}");
    // The folder may be a link, too.
    std::os::unix::fs::symlink(stage().join("bin"), dir.join("programs")).expect("a link");
    let there = run_in(&dir, Path::new("programs/mpCC_r"), &["-show", "a.c"], &[]).ok().stdout;
    assert_eq!(there, command);
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").expect("there is a PATH"));
    let found =
        run_in(workspace(), Path::new("sh"), &["-c", "second -show a.c"], &[("PATH", &path)]).ok().stdout;
    assert_eq!(found, command);
}

#[test]
fn a_configure_script_is_content() {
    let dir = folder("wrapper_configure");
    // The first checks of configure scripts: does it work, can its result run, does it know -g,
    // where are the headers?
    let script = r#"
        set -e
        echo 'int main(void) { return 0; }' >conftest.c
        $CC --version >/dev/null
        $CC -o conftest -g -O2 conftest.c 2>err
        test ! -s err
        ./conftest
        $CC -c conftest.c 2>err
        test ! -s err
        $CC -o conftest conftest.o
        ./conftest
        echo '#include <stdio.h>' | $CC -E - | grep -q printf
        echo 'syntax error' >conftest.c
        if $CC -c conftest.c 2>/dev/null; then exit 1; fi
        echo 'int f(void) { return 1; }' >f.c
        $CC -fPIC -shared f.c -o libf.so
        echo 'int f(void); int main(void) { return f() - 1; }' >main.c
        $CC main.c -L. -lf_missing 2>/dev/null && exit 1
        $CC main.c ./libf.so -o main
        ./main
        $CC -print-search-dirs >/dev/null
        $CC -M main.c | grep -q main.c
    "#;
    let path =
        format!("{}:{}", stage().join("bin").display(), std::env::var("PATH").expect("there is a PATH"));
    for compiler in ["mpcc_r", "cc_r"] {
        let env = [("PATH", path.as_str()), ("CC", compiler)];
        let output =
            Command::new("sh").args(["-c", script]).envs(env).current_dir(&dir).output().expect("sh runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn the_executable_has_fixed_addresses_and_finds_the_library() {
    let dir = folder("wrapper_executable");
    fs::write(dir.join("a.c"), "int main(void) { return 0; }\n").expect("a source");
    run_in(&dir, &wrapper("mpcc_r"), &["-Wl,--no-as-needed", "a.c", "-o", "a"], &[]).ok();
    let elf = fs::read(dir.join("a")).expect("it was made");
    // e_type of the ELF header: 2 is an executable at fixed addresses, 3 one that can be anywhere.
    assert_eq!(elf[16..18], [2, 0]);
    let libraries = run_in(&dir, Path::new("ldd"), &["a"], &[]).ok().stdout;
    assert!(
        libraries.contains(&format!("liblapi_r.so.1 => {}/lib/liblapi_r.so.1", stage().display())),
        "{libraries}"
    );
    for name in ["-llapi", "-lpoe", "-lmpi_ibm"] {
        run_in(&dir, &wrapper("mpcc_r"), &["a.c", name, "-o", "b"], &[]).ok();
    }
}

#[test]
fn a_lapi_program_in_cplusplus_compiles_and_runs() {
    let dir = folder("wrapper_cplusplus");
    let source = r#"
        #include <lapi.h>
        #include <cstdio>
        int main() {
            lapi_handle_t handle;
            lapi_info_t info = {};
            int tasks = 0;
            if (LAPI_Init(&handle, &info) || LAPI_Qenv(handle, NUM_TASKS, &tasks) || LAPI_Term(handle)) return 1;
            std::printf("%d\n", tasks);
        }
    "#;
    fs::write(dir.join("a.C"), source).expect("a source");
    run_in(&dir, &wrapper("mpCC_r"), &["-Wall", "-Wextra", "-Werror", "a.C", "-o", "a"], &[]).ok();
    assert_eq!(run_in(&dir, &wrapper("poe"), &["./a", "-procs", "2"], &[]).ok().stdout, "2\n2\n");
}

#[test]
fn atomic_operations_of_aix_are_there_and_give_way() {
    let dir = folder("wrapper_atomics");
    let source = r#"
        #include <sys/atomic_op.h>
        #include <stdio.h>
        int main(void) {
            int word = 5, expected = 7;
            long big = 1L << 40, was = 1L << 40;
            printf("%d ", fetch_and_add(&word, 3));
            printf("%d ", fetch_and_or(&word, 3));
            printf("%d ", fetch_and_and(&word, 6));
            printf("%d ", compare_and_swap(&word, &expected, 9));
            printf("%d %d ", word, expected);
            printf("%d ", compare_and_swap(&word, &expected, 9));
            printf("%d ", _check_lock(&word, 9, 1));
            printf("%d ", _check_lock(&word, 9, 1));
            _clear_lock(&word, 0);
            printf("%d ", word);
            printf("%d ", fetch_and_addlp(&big, 1) == was);
            printf("%d ", fetch_and_orlp(&big, 2) == was + 1);
            printf("%d ", fetch_and_andlp(&big, ~1L) == was + 3);
            printf("%d ", compare_and_swaplp(&big, &was, 0));
            printf("%d\n", compare_and_swaplp(&big, &was, 0));
            return 0;
        }
    "#;
    fs::write(dir.join("a.c"), source).expect("a source");
    run_in(&dir, &wrapper("mpcc_r"), &["-Wall", "-Werror", "a.c", "-o", "a"], &[]).ok();
    assert_eq!(run_in(&dir, &dir.join("a"), &[], &[]).ok().stdout, "5 8 11 0 2 2 1 0 1 0 1 1 1 0 1\n");
    // As C++, and as an old program that declares nothing and has its own.
    run_in(&dir, &wrapper("mpCC_r"), &["-x", "c++", "-Wall", "-Werror", "a.c", "-o", "b"], &[]).ok();
    let own = "int fetch_and_add(int *w, int v) { *w = v; return 77; }\n\
               int main() { int w = 1; int r = fetch_and_add(&w, 2); return !(r == 77 && w == 2 && \
               fetch_and_or(&w, 1) == 2); }\n";
    fs::write(dir.join("own.c"), own).expect("a source");
    run_in(&dir, &wrapper("mpcc_r"), &["-std=gnu89", "-w", "own.c", "-o", "own"], &[]).ok();
    run_in(&dir, &dir.join("own"), &[], &[]).ok();
}

#[test]
fn an_mpi_compilers_flags_are_taken_in() {
    let dir = folder("wrapper_mpi");
    let open_mpi = r#"case $1 in -showme:compile) echo -I/ompi/include ;; -showme:link) echo -L/ompi/lib -lmpi ;; *) exit 1 ;; esac"#;
    // As one prints that was built from its sources.
    let run_path = "-Wl,-rpath -Wl,/opt/mpi/lib -Wl,--enable-new-dtags -L/opt/mpi/lib -lmpi";
    let from_source = format!(
        "case $1 in -showme:compile) echo -I/opt/mpi/include ;; -showme:link) echo {run_path} ;; *) exit 1 ;; esac"
    );
    let mpich = r#"case $1 in -compile_info) echo gcc -O3 -I/mpich/include ;; -link_info) echo gcc -Wl,-rpath -L/mpich/lib -lmpich ;; *) exit 1 ;; esac"#;
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").expect("there is a PATH"));
    for (script_text, include, library) in [
        (open_mpi, "-I/ompi/include", "-L/ompi/lib -lmpi"),
        (&from_source, "-I/opt/mpi/include", run_path),
        (mpich, "-I/mpich/include", "-L/mpich/lib -lmpich"),
    ] {
        script(&dir.join("mpicc"), script_text);
        let asked = shown("mpcc_r", &["-mpi", "a.c"], &[("PATH", &path)]);
        assert!(asked.contains(include) && asked.ends_with(library) && !asked.contains("-O3"), "{asked}");
        let named = shown("mpcc_r", &["a.c"], &[("PATH", &path), ("MP_MSG_API", "LAPI,MPI")]);
        assert_eq!(named, asked);
        let compiled = shown("mpcc_r", &["-mpi", "-c", "a.c"], &[("PATH", &path)]);
        assert!(compiled.contains(include) && !compiled.contains(library), "{compiled}");
        let other = shown("mpcc_r", &["a.c"], &[("PATH", &path), ("MP_MSG_API", "lapi")]);
        assert!(!other.contains(include), "{other}");
    }
    // A required wrapper that is missing is an error; an optional one is not.
    script(&dir.join("mpicc"), "exit 1");
    let missing = run_in(workspace(), &wrapper("mpcc_r"), &["-mpi", "-show", "a.c"], &[("PATH", &path)]);
    assert!(!missing.ok && missing.stderr.contains("-mpi"), "{}", missing.stderr);
    shown("mpcc_r", &["a.c"], &[("PATH", &path), ("MP_MSG_API", "mpi_lapi")]);
}
