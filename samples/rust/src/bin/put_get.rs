//! Every task puts six numbers into the window of the next task, learns from a counter when its own
//! have arrived, and gets those of the next one back.

use lapi::{Context, TargetCounter, Window};

fn main() -> lapi::Result<()> {
    let context = Context::open()?;
    let (me, tasks) = (context.task(), context.tasks());
    let next = (me + 1) % tasks;
    let window = Window::<u32>::new(&context, 6)?;
    let arrived = TargetCounter::new(&context)?;

    let numbers: Vec<u32> = (0..6).map(|number| 10 * me + number).collect();
    window.put_notify(next, 0, &numbers, &arrived)?;
    arrived.wait(1)?;
    println!("task {me}: arrived: {:?}", window.to_vec(0..6));

    // Every task has put its numbers.
    context.gfence()?;
    // Two halves at a time: both have come when the scope ends.
    let (mut low, mut high) = ([0; 3], [0; 3]);
    context.scope(|scope| {
        scope.get(&window, next, 0, &mut low)?;
        scope.get(&window, next, 3, &mut high)
    })??;
    let back = [low, high].concat();
    println!("task {me}: got back: {back:?}");
    assert_eq!(back, numbers);
    window.free()
}
