//! The threads that run completion handlers.

use crate::base::thread::ThreadConfig;
use crate::engine::context::Context;
use crate::engine::context::lock_sharing;
use crate::engine::transfer::deliver;
use crate::error::Result;
use std::sync::Arc;

/// Starts `count` threads that run this context's completion handlers.
pub fn start(context: &Arc<Context>, count: usize, thread_config: ThreadConfig) -> Result<()> {
    let shared = context.clone();
    context.completions.start(count, thread_config, move |generation| run(&shared, generation))
}

fn run(context: &Context, generation: u32) {
    let pool = &context.completions;
    while let Some((generation, completion)) = pool.next(generation) {
        let handle = context.handle_ptr();
        if !pool.present(generation) {
            // Whether the handle is that of this opening or of the next one is not known.
            return;
        }
        completion.run(handle);
        lock_sharing::take_back(context);
        if !pool.present(generation) {
            // The context was ended meanwhile, and may have been opened again: the message was
            // the former one's.
            return;
        }
        if let Some((delivery, incarnation)) = completion.then
            && let Some(mut held) = context.enter_closing()
        {
            deliver::conclude_since(&mut held, delivery, incarnation);
            held.core().waiters.note_news();
            held.wake_waiters();
        }
        pool.finished(generation);
    }
}
