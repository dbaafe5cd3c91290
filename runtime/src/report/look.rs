//! Handlers that do not return, found without any lock.

use openlapi::base::clock::{moment, since};
use openlapi::engine::context::Context;
use openlapi::engine::context::active_handler::Run;
use std::sync::Weak;
use std::time::Duration;

/// An open context.
#[derive(Clone)]
pub(super) struct OpenContext {
    pub(super) instance: usize,
    pub(super) context: Weak<Context>,
}

/// A handler that was running when the thread last looked.
pub(super) struct Watched {
    pub(super) instance: usize,
    pub(super) run: Option<Run>,
    pub(super) owner: usize,
    pub(super) since: u32,
    pub(super) reported: bool,
}

/// Checks, without any lock, which threads hold the locks and which handlers run. Returns whether a
/// handler has run for so long that it is to be reported.
pub(super) fn look(places: &[OpenContext], watched: &mut Vec<Watched>, stall: Duration) -> bool {
    let mut due = false;
    watched.retain(|watched| places.iter().any(|place| place.instance == watched.instance));
    for place in places {
        let Some(context) = place.context.upgrade() else { continue };
        let (run, owner, instance) = (context.activity.now(), context.lock_owner(), place.instance);
        let new = Watched { instance, run, owner, since: moment(), reported: false };
        let Some(old) = watched.iter_mut().find(|watched| watched.instance == instance) else {
            watched.push(new);
            continue;
        };
        if old.run != run || old.owner != owner {
            *old = new;
        } else if run.is_some() && !old.reported && !stall.is_zero() && since(old.since) >= stall {
            old.reported = true;
            due = true;
        }
    }
    due
}
