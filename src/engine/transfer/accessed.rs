//! The targets of puts and gets that this task has made alone hear of them: several together, in time.

use crate::base::clock::ticks;
use crate::engine::context::Core;
use crate::engine::context::accessed::Access;
use crate::engine::transfer::send::send_control;
use crate::transport::Task;
use crate::wire::packet::Head;

/// So many bytes (written, read) of the target's memory were accessed.
#[inline]
pub fn note(core: &mut Core, target: Task, (written, read): (u64, u64)) {
    core.accessed.note(Access { target, written, read }, ticks());
}

/// Informs targets of what was done in their memory: their programs may look for receptions by LAPI_Msgpoll, and for statistics. They need not
/// reply.
pub fn announce(core: &mut Core) {
    while let Some(Access { target, written, read }) = core.accessed.take() {
        if core.transport.is_open(target) && !core.peers.is_down(target) {
            let id = core.outbox.number(target);
            send_control(core, target, &Head::Accessed { id, written, read });
        }
    }
}
