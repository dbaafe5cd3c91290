//! The samples: gets in C++, and a note in C that outlives its program and a daemon that is killed.

mod support;

use support::compiled;
use support::pool::{Kind, PLAIN, Pool};

#[test]
fn gets_of_both_kinds() {
    let program = compiled("c++", "fam_get", &["samples/get.cpp"], "libopenfam.so.3", &["-std=c++14"]);
    let pool = Pool::new("get", PLAIN);
    // A region of its name must not be left of the first run.
    for _ in 0..2 {
        let outcome = pool.job(&program).run();
        let squares = |from: i32, to: i32| (from..=to).map(|at| format!(" {}", at * at)).collect::<String>();
        let expected =
            format!("elements 6 to 15:{}\nelements 16 to 35:{}\n", squares(6, 15), squares(16, 35));
        assert_eq!(outcome.ok().stdout, expected, "{outcome}");
    }
}

#[test]
fn a_note_outlives_its_program_and_its_daemon() {
    let program = compiled("cc", "fam_note", &["samples/note.c"], "libopenfam_c.so", &["-std=c99"]);
    let mut pool = Pool::new("note", Kind { persistent: true, ..PLAIN });
    let note =
        |pool: &Pool, words: &[&str]| words.iter().fold(pool.job(&program), |job, word| job.arg(word)).run();
    note(&pool, &["write", "it is still here"]).ok();
    assert_eq!(note(&pool, &["read"]).ok().stdout, "it is still here (read 0 times before)\n");
    pool.kill(0);
    pool.start(0);
    assert_eq!(note(&pool, &["read"]).ok().stdout, "it is still here (read 1 times before)\n");
    note(&pool, &["remove"]).ok();
    let gone = note(&pool, &["read"]);
    assert!(gone.exited(1).stdout.starts_with("c_fam_get_blocking: error"), "{gone}");
}
