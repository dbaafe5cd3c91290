//! What must be done when the process exits and has not called LAPI_Term.

use crate::base::at_exit::{Registered, run};
use crate::engine::context::Context;
use crate::engine::progress::closing;

static SENDS: Registered = Registered::by_none();

/// Runs `function` when the process exits. It calls [`leave`] for every context.
pub fn prepare(function: extern "C" fn()) {
    run(&SENDS, function);
}

/// Sends what waits in a context of this process.
pub fn leave(context: &Context) {
    if SENDS.is_this_process() {
        closing::leave(context);
    }
}
