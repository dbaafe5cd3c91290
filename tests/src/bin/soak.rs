//! `make soak`: soak SECONDS SEED TASKS HOSTS

use std::process::ExitCode;

use openlapi_tests::Soak;

fn main() -> ExitCode {
    let numbers: Option<Vec<u64>> = std::env::args().skip(1).map(|word| word.parse().ok()).collect();
    let Some([seconds, seed, tasks, hosts]) = numbers.as_deref() else {
        eprintln!("usage: soak SECONDS SEED TASKS HOSTS");
        return ExitCode::from(2);
    };
    println!("soak: seed {seed}, {seconds} s, {tasks} tasks, {hosts} hosts");
    let (tasks, hosts) = (*tasks as usize, *hosts as usize);
    match (Soak { seed: *seed, seconds: *seconds, tasks, hosts }).run() {
        Ok(totals) => {
            println!("{totals}");
            ExitCode::SUCCESS
        }
        Err(what) => {
            eprintln!("soak: failed: {what}");
            ExitCode::FAILURE
        }
    }
}
