//! The statements about OpenFAM, by a program in C++: one daemon, three daemons, small blocks, and
//! memory that is mapped; and every call in C. hosts.rs has two hosts.

mod support;

use support::plain;
use support::pool::{Kind, PLAIN, Pool, cases, conformance};

/// All cases with this pool.
fn all(pool: &Pool) {
    for case in cases() {
        let outcome = pool.job(&conformance()).arg(&case).run();
        assert_eq!(outcome.ok().stdout, format!("OK {case}\n"));
    }
}

#[test]
fn one_daemon() {
    all(&Pool::new("one", PLAIN));
}

#[test]
fn three_daemons() {
    all(&Pool::new("three", Kind { daemons: 3, block: 1 << 16, ..PLAIN }));
}

#[test]
fn blocks_smaller_than_elements() {
    let pool = Pool::new("blocks", Kind { daemons: 2, block: 64, ..PLAIN });
    for case in ["gather_and_scatter", "ranges", "of_128_bits", "types"] {
        pool.job(&conformance()).arg(case).run().ok();
    }
}

#[test]
fn memory_that_is_mapped() {
    let pool = Pool::new("mapped", Kind { model: "shared_memory", ..PLAIN });
    pool.job(&conformance()).arg("mapped").run().ok();
}

/// Every call of the C interface.
#[test]
fn in_c() {
    let pool = Pool::new("plain", PLAIN);
    assert_eq!(pool.job(&plain()).run().ok().stdout, "OK plain\n");
}
