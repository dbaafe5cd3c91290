//! Every task sends its numbers to the next one in an active message. The header handler looks at
//! the header; the completion handler has the data, and sends the sums back in another message.

use lapi::{Accept, Context};
use std::sync::mpsc;

const NUMBERS: u16 = 1;
const SUMS: u16 = 2;

fn main() -> lapi::Result<()> {
    let context = Context::open()?;
    let (me, tasks) = (context.task(), context.tasks());

    context.on_message(NUMBERS, |_, arrival| {
        let source = arrival.source;
        let add: u32 = bytemuck::pod_read_unaligned(arrival.header);
        Accept::then(move |port, data| {
            let sums: Vec<u32> =
                data.chunks_exact(4).map(|bytes| bytemuck::pod_read_unaligned::<u32>(bytes) + add).collect();
            if let Err(error) = port.send(source, SUMS, &[], bytemuck::cast_slice(&sums)) {
                eprintln!("task {}: the sums cannot be sent: {error}", port.task());
            }
        })
    })?;
    let (sender, sums) = mpsc::channel();
    context.on_message(SUMS, move |_, _| {
        let sender = sender.clone();
        Accept::then(move |_, data| {
            let _ = sender.send(data);
        })
    })?;
    // Every task has its handlers.
    context.gfence()?;

    let numbers: Vec<u32> = (1..=6).collect();
    let header = (100 * me).to_ne_bytes();
    context.send_complete((me + 1) % tasks, NUMBERS, &header, bytemuck::cast_slice(&numbers))?;
    let data = sums.recv().expect("the handler keeps its sender");
    let sums: Vec<u32> = data.chunks_exact(4).map(bytemuck::pod_read_unaligned).collect();
    println!("task {me}: the sums: {sums:?}");
    context.gfence()
}
