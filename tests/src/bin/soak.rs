//! `make soak`: soak SECONDS SEED TASKS HOSTS [RAILS]

use std::process::ExitCode;

use openlapi_tests::Soak;

fn main() -> ExitCode {
    let numbers: Option<Vec<u64>> = std::env::args().skip(1).map(|word| word.parse().ok()).collect();
    let (Some([seconds, seed, tasks, hosts]), rails) = (match numbers.as_deref() {
        Some([first @ .., rails]) if first.len() == 4 => (Some(first), *rails),
        other => (other, 1),
    }) else {
        eprintln!("usage: soak SECONDS SEED TASKS HOSTS [RAILS]");
        return ExitCode::from(2);
    };
    println!("soak: seed {seed}, {seconds} s, {tasks} tasks, {hosts} hosts, {rails} rails");
    let (tasks, hosts, rails) = (*tasks as usize, *hosts as usize, rails as usize);
    match (Soak { seed: *seed, seconds: *seconds, tasks, hosts, rails }).run() {
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
