//! The targets of puts that this task has made alone hear of them: of several together, in time.

use crate::base::clock::ticks;
use crate::engine::context::Core;
use crate::engine::context::one_sided::Access;
use crate::engine::transfer::send::send_control;
use crate::transport::Task;
use crate::wire::packet::Head;

/// So many bytes of the target's memory were written.
#[inline]
pub fn note(core: &mut Core, target: Task, written: u64) {
    core.one_sided.note(Access { target, written }, ticks());
}

/// Informs targets of what was written to their memory: their programs may look for receptions by
/// LAPI_Msgpoll, and for statistics. They need not reply.
pub fn announce(core: &mut Core) {
    for access in core.one_sided.take() {
        announce_to(core, access);
    }
}

/// Announces accesses to the targets to which there is room; those to which packets wait for room
/// are informed later, of more puts together.
pub fn announce_where_room(core: &mut Core) {
    for Access { target, written } in core.one_sided.take() {
        if core.outbox.bytes(target) != 0 {
            note(core, target, written);
        } else {
            announce_to(core, Access { target, written });
        }
    }
}

fn announce_to(core: &mut Core, Access { target, written }: Access) {
    if core.transport.is_open(target) && !core.membership.is_down(target) {
        let id = core.outbox.number(target);
        send_control(core, target, &Head::Accessed { id, written });
    }
}
