//! Every task adds to a sum and takes tickets at task 0 by remote atomics, and then looks at its
//! own memory while no task writes there.

use lapi::{Context, Window};

const ROUNDS: i64 = 100;

fn main() -> lapi::Result<()> {
    let context = Context::open()?;
    let (me, tasks) = (context.task(), context.tasks());
    let mut window = Window::<i64>::new(&context, 2)?;

    for _ in 0..ROUNDS {
        window.fetch_add(0, 0, i64::from(me) + 1)?;
        let ticket = window.fetch_add(0, 1, 1)?;
        assert!((0..ROUNDS * i64::from(tasks)).contains(&ticket), "ticket {ticket}");
    }
    let (sum, tickets) = window.exclusive(|numbers| (numbers[0], numbers[1]))?;
    if me == 0 {
        println!("task 0: the sum is {sum}, and {tickets} tickets were taken");
    }
    window.free()
}
