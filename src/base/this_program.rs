//! The program of these tests, for tests that start it again as another process.

use std::process::Command;

/// Starts this program; `TEST_RUNNER` has the words of a command that runs programs of another
/// processor (`make test-cross`), where this is one.
pub(crate) fn this_program() -> Command {
    let program = std::env::current_exe().expect("this program");
    let runner = std::env::var("TEST_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace();
    let Some(first) = words.next() else { return Command::new(program) };
    let mut command = Command::new(first);
    command.args(words).arg(program);
    command
}
