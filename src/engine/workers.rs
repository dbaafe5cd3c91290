//! The threads that run completion handlers.

use super::context::Context;
use super::landing;
use super::shared;
use super::threads::Recipe;
use crate::error::Result;
use std::sync::Arc;

/// Starts `count` threads that run this context's completion handlers.
pub fn start(context: &Arc<Context>, count: usize, recipe: Recipe) -> Result<()> {
    let shared = context.clone();
    context.completions.start(count, recipe, move |generation| run(&shared, generation))
}

fn run(context: &Context, generation: u64) {
    let pool = &context.completions;
    while let Some(completion) = pool.next(generation) {
        completion.run(context.handle_ptr());
        shared::take_back(context);
        if !pool.present(generation) {
            // The context was ended meanwhile, and may have been opened again: the message was the former one's.
            return;
        }
        if let Some((landing, incarnation)) = completion.then {
            if let Some(mut held) = context.enter_closing() {
                landing::conclude_since(&mut held, landing, incarnation);
                held.core().news = true;
                held.hand_over();
            }
        }
        pool.finished(generation);
    }
}
