//! Each task has some measurements; all of them learn the mean and the extremes, and task 0
//! collects how many each task has.

use lapi::{Collectives, Context};

fn main() -> lapi::Result<()> {
    let context = Context::open()?;
    let me = context.task();
    let mut collectives = Collectives::new(&context)?;

    let measured: Vec<f64> = (0..=me).map(|number| f64::from(10 * me + number)).collect();
    let mut sums = [measured.iter().sum(), measured.len() as f64];
    collectives.allreduce(&mut sums, |one, other| one + other)?;
    let mut least = [measured.iter().copied().fold(f64::INFINITY, f64::min)];
    collectives.allreduce(&mut least, f64::min)?;
    let mut most = [measured.iter().copied().fold(f64::NEG_INFINITY, f64::max)];
    collectives.allreduce(&mut most, f64::max)?;
    let mean = sums[0] / sums[1];
    println!("task {me}: {} measurements; mean {mean:.2}, from {} to {}", sums[1], least[0], most[0]);

    if let Some(counts) = collectives.gather(&[measured.len() as u32], 0)? {
        println!("task 0: measurements by task: {counts:?}");
    }
    collectives.free()
}
