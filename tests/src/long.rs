//! The long form of tests, which takes the time and the memory of an idle machine.

/// Whether it was asked for: `TEST_LONG=yes` in the environment, as `ci/test-net.sh` and
/// `make test TEST_LONG=yes` set it.
pub fn long_form() -> bool {
    std::env::var("TEST_LONG").is_ok_and(|asked| asked == "yes")
}
