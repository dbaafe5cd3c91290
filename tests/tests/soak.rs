//! A short soak: every operation at once, while tasks are killed and restarted. `make soak` is the long one.

use openlapi_tests::Soak;

/// With this seed two die at once, and one more while those rejoin. It has deadlines of its own.
#[test]
fn tasks_die_and_come_back_among_all_operations() {
    let soak = Soak { seed: 1, seconds: 5, tasks: 4 };
    println!("{}", soak.run().unwrap_or_else(|what| panic!("{what}")));
}
