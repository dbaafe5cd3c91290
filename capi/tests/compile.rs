//! The headers compile alone in every standard of C and C++ that programs use, and programs as they
//! are written for LAPI compile with them. Nothing is linked.

mod c;

use std::fs;
use std::path::PathBuf;

const STRICT: &[&str] = &["-pedantic", "-Wextra"];

/// The installed headers, and the one that is copied to where a program is. Whether it has
/// functions, which are `static inline`: the strict C of 1989 knows no such word.
fn headers() -> Vec<(PathBuf, bool)> {
    let installed = fs::read_dir(c::include_dir()).expect("the headers");
    let mut headers: Vec<PathBuf> = installed.map(|entry| entry.expect("an entry").path()).collect();
    headers.push(c::include_dir().join("../samples/coll/lapi_coll.h"));
    headers.sort();
    assert!(headers.len() >= 4, "{headers:?}");
    let has_functions = |header: &PathBuf| {
        fs::read_to_string(header).expect("a header").lines().any(|line| line.starts_with("static inline "))
    };
    headers.into_iter().map(|header| (header.clone(), has_functions(&header))).collect()
}

#[test]
fn each_header_compiles_alone() {
    for compiler in c::compilers() {
        for (header, has_functions) in headers() {
            let name = header.file_name().expect("a file").to_string_lossy().into_owned();
            // uint and ulong must be there even where the C library hides them.
            let program = format!("#include \"{}\"\nextern uint a;\nextern ulong b;\n", header.display());
            for standard in ["-std=c99", "-std=c11", "-std=c17", "-std=gnu99"] {
                compiler.check(&format!("{name}.c"), standard, STRICT, &program);
            }
            for standard in ["-std=c++11", "-std=c++17"] {
                compiler.check(&format!("{name}.cpp"), standard, STRICT, &program);
            }
            // C of 1989 has no long long: it is let pass, not approved of.
            for standard in ["-std=c89", "-std=gnu89"] {
                if !(has_functions && standard == "-std=c89") {
                    compiler.check(&format!("{name}.c"), standard, &[], &program);
                }
            }
        }
    }
}

#[test]
fn headers_can_be_included_twice_and_in_any_order() {
    for compiler in c::compilers() {
        let program =
            "#include <css_shared.h>\n#include <lapi.h>\n#include <css_shared.h>\n#include <lapi.h>\n";
        compiler.check("twice.c", "-std=c99", STRICT, program);
        compiler.check("twice.cpp", "-std=c++11", STRICT, program);
    }
}

#[test]
fn the_macro_for_64_bits_is_defined_where_it_is_true() {
    let program = "#include <lapi.h>\n\
        #ifdef __64BIT__\nchar check[sizeof(long) == 8 ? 1 : -1];\n\
        #else\nchar check[sizeof(long) == 4 ? 1 : -1];\n#endif\n";
    for compiler in c::compilers() {
        compiler.check("bits.c", "-std=c99", STRICT, program);
    }
}

/// A program may have functions under names that <sys/socket.h> declares.
#[test]
fn names_of_sockets_are_the_programs() {
    let program = "#include <lapi.h>\n\
        #ifdef __cplusplus\nextern \"C\" {\n#endif\n\
        double send(double to); void bind(char a, char b); long accept(void); void connect(long a);\n\
        char listen(double a); double recv(long from); void socket(char name); int shutdown(void); int ntohl;\n\
        #ifdef __cplusplus\n}\n#endif\n\
        lapi_udp_t address = { 1, 2 };\n\
        double send(double to) { return to; }\n";
    for compiler in c::compilers() {
        for standard in ["-std=c99", "-std=gnu99", "-std=gnu17"] {
            compiler.check("sockets.c", standard, STRICT, program);
        }
        for standard in ["-std=c++11", "-std=gnu++17"] {
            compiler.check("sockets.cpp", standard, STRICT, program);
        }
    }
}

/// A program of the kind the library is for: old style, casts, macros asked for by `#ifdef`.
#[test]
fn an_old_program_compiles_unchanged() {
    let program = read("legacy.c");
    for compiler in c::compilers() {
        // Later clangs warn of functions in the style of before 1989, which such programs have;
        // earlier ones do not know the option.
        let clang: &[&str] = &["-Wno-unknown-warning-option", "-Wno-deprecated-non-prototype"];
        let options = if compiler.to_string() == "clang" { clang } else { &[] };
        for standard in ["-std=gnu89", "-std=gnu99", "-std=gnu17"] {
            compiler.check("legacy.c", standard, options, &program);
        }
    }
}

/// Every call has exactly the type of its man page, by both of its names.
#[test]
fn prototypes_are_those_of_the_manual() {
    let program = read("prototypes.c");
    for compiler in c::compilers() {
        compiler.check("prototypes.c", "-std=c99", STRICT, &program);
        compiler.check("prototypes.cpp", "-std=c++11", STRICT, &program);
    }
}

#[test]
fn enumerations_are_enumerations_and_handlers_are_functions() {
    let program = read("kinds.cpp");
    for compiler in c::compilers() {
        compiler.check("kinds.cpp", "-std=c++11", STRICT, &program);
    }
}

fn read(name: &str) -> String {
    fs::read_to_string(c::programs_dir().join(name)).expect("a program in tests/c/headers")
}
