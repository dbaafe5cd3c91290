//! What must be done when the process exits and has not called LAPI_Term.

use crate::at_exit::{Registered, run};
use openlapi::api::{Context, session};

static SENDS: Registered = Registered::by_none();

/// Runs `function` when the process exits. It calls [`leave`] for every context.
pub fn prepare(function: extern "C" fn()) {
    run(&SENDS, function);
}

/// Sends what waits in a context of this process.
pub fn leave(context: &Context) {
    if SENDS.is_this_process() {
        session::leave(context);
    }
}
