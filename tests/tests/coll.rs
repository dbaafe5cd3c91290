//! `samples/coll/lapi_coll.h`: calls for all tasks at once, made of LAPI's own.

#[expect(dead_code, reason = "the program is compiled here, with the header")]
mod ltest;

use ltest::passed;
use openlapi_tests::{Job, Network, build_dir, compile, compile_with, stage, workspace};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

/// The folder of the header, and a flag without effect that changes with it, so that programs are
/// compiled again.
fn flags() -> [String; 2] {
    let mut hash = DefaultHasher::new();
    fs::read(workspace().join("samples/coll/lapi_coll.h")).expect("the header").hash(&mut hash);
    ["-Isamples/coll".to_owned(), format!("-DHEADER=0x{:x}", hash.finish())]
}

fn program() -> PathBuf {
    let [include, header] = flags();
    let sources = ["tests/c/coll/coll.c", "tests/c/common/ltest.c"];
    compile("coll-coll", &sources, &["-Wextra", "-Werror", &include, &header])
}

#[test]
fn all_calls_with_any_number_of_tasks() {
    let program = program();
    for (tasks, seeds) in [(1, 1..3), (2, 1..4), (3, 1..4), (4, 4..7), (7, 1..3), (16, 1..2)] {
        for seed in seeds {
            passed(&Job::new(&program).procs(tasks).arg(seed.to_string()).run(), tasks);
        }
    }
}

/// A message whose datagram is lost arrives after the one that was sent behind it.
#[test]
fn messages_that_overtake_each_other() {
    let Some(hosts) = Network::Udp.hosts("collective calls in C while datagrams are lost", 1) else { return };
    hosts.lose(5).expect("nft refuses the rule, or is not installed (nftables)");
    for seed in ["8", "9", "10"] {
        let job = Job::new(program()).procs(3).arg(seed).env("MP_EUILIB", "ip").env("LAPI_USE_SHM", "no");
        passed(&hosts.place(3, job.deadline(120)).run(), 3);
    }
}

/// The header is one of C99 and of C++, and is included in several files of one program.
#[test]
fn the_header_is_for_c_and_for_several_files_of_cpp() {
    let folder = build_dir().join("tests/coll-cpp");
    fs::create_dir_all(&folder).expect("a folder");
    let other =
        "#include \"lapi_coll.h\"\nint other(lapi_coll_t *coll) { return lapi_coll_barrier(coll); }\n";
    let main = "#include \"lapi_coll.h\"\n#include <cstdio>\nint other(lapi_coll_t *coll);\nint main() {\n  \
                lapi_handle_t hndl;\n  lapi_info_t info = lapi_info_t();\n  lapi_coll_t coll;\n  double one = 1, sum = 0;\n  \
                if (LAPI_Init(&hndl, &info) || lapi_coll_init(&coll, hndl, 0) || other(&coll)) return 1;\n  \
                if (lapi_coll_allreduce(&coll, &one, &sum, 1, LAPI_COLL_DOUBLE, LAPI_COLL_SUM)) return 1;\n  \
                std::printf(\"%g\\n\", sum);\n  return lapi_coll_end(&coll) || LAPI_Term(hndl);\n}\n";
    let [include, header] = flags();
    for (kind, compiler, standard) in [("cpp", "mpCC_r", "-std=c++11"), ("c", "mpcc_r", "-std=c99")] {
        let main = if kind == "c" {
            main.replace("<cstdio>", "<stdio.h>")
                .replace("std::printf", "printf")
                .replace("lapi_info_t info = lapi_info_t()", "lapi_info_t info = {0}")
                .replace("main()", "main(void)")
        } else {
            main.to_owned()
        };
        let sources = [folder.join(format!("main.{kind}")), folder.join(format!("other.{kind}"))];
        fs::write(&sources[0], main).expect("a file");
        fs::write(&sources[1], other).expect("a file");
        let sources = sources.each_ref().map(|path| path.to_str().expect("a path of ours"));
        let compiler = stage().join("bin").join(compiler);
        let flags = ["-Wextra", "-Werror", "-Wno-missing-field-initializers", standard, &include, &header];
        let program = compile_with(&compiler, &format!("coll-{kind}"), &sources, &flags);
        let outcome = Job::new(program).procs(3).run();
        assert_eq!(outcome.ok().stdout, "3\n".repeat(3));
    }
}
