//! What a port keeps of tasks and operations, which no program sees.

use super::*;
use crate::{Context, Window};

/// One task, as without a launcher. What is purged and lost here stands for others.
#[test]
fn lives_and_operations_of_a_task() {
    let context = Context::builder().on_error(|_, _| ()).open().expect("a context");
    let listed = |port: &Port| {
        let list = port.awaited.as_ref().expect("there is an error handler");
        list.lock().unwrap_or_else(PoisonError::into_inner).len()
    };
    // A refused operation leaves nothing behind that a loss would write to.
    assert_eq!(context.send(7, 1, &[], &[]).map_err(|error| error.code), Err(LAPI_ERR_TGT));
    assert_eq!(listed(&context), 0);
    // Nor does a scope, which waits for all of its operations.
    let window = Window::<u8>::new(&context, 100).expect("a window");
    let scope = context.scope(|scope| {
        (0..100).for_each(|at| scope.put(&window, 0, at, &[1]).expect("a put"));
        listed(&context)
    });
    assert_eq!((scope, listed(&context)), (Ok(100), 0));
    // Those of an earlier life end with it, those of a later one do not.
    let counters = [const { AtomicI32::new(0) }; 3];
    let awaited = |life: u32, at: usize| (counters[at].as_ptr() as usize, Awaited { task: 0, life });
    context.list(|list| list.extend([awaited(4, 0), awaited(5, 1), awaited(6, 2)]));
    context.end_awaited(0, 5);
    context.list(HashMap::clear);
    assert_eq!(counters.map(AtomicI32::into_inner), [LOST, LOST, 0]);
    // A window that a purge has met in the middle of its making is refused.
    let purged_meanwhile = context.collectively(CollectiveKind::Exchange, 0, |step| {
        let lives = context.lives();
        context.end_life(0);
        step.exchange(0)?;
        Ok(context.check_life(&context.enter()?, 0, lives[0]).map_err(|error| error.code))
    });
    assert_eq!(purged_meanwhile, Ok(Err(LAPI_ERR_TGT_PURGED)));
    let window = Window::<u8>::new(&context, 1).expect("a window");
    window.put(0, 0, &[1]).expect("a put");
    context.end_life(0);
    assert_eq!(window.put(0, 0, &[1]).map_err(|error| error.code), Err(LAPI_ERR_TGT_PURGED));
    assert_eq!(context.purge(0).map_err(|error| error.code), Err(LAPI_ERR_TGT));
}
