//! What the core calls when a message arrives.

use super::{Open, Slot, World, current};
use crate::job::is_reply;
use crate::protocol::Verdict;
use crate::wire::Header;
use libc::{c_uint, c_ulong, c_void};
use openlapi::abi::{
    LAPI_BURY_MSG, LAPI_DROP_PKT, LAPI_LOCAL_STATE, compl_hndlr_p, lapi_handle_t, lapi_return_info_t,
};
use std::ptr;

/// A port's number stands in a completion handler's parameter from this bit on.
const PORT: u32 = 58;

/// Where the data of a message goes.
enum Place {
    /// Nowhere: there is none, or it is where it belongs.
    Nowhere,
    /// There, before this thread does anything else: so what follows has been done already. A short
    /// way of the core asks for this.
    At(usize),
    /// There, and then [`completed`] gets the token.
    Until {
        /// The address.
        address: usize,
        /// The token.
        token: u64,
    },
}

/// The header handler of all messages.
///
/// # Safety
/// Called by the core, as a header handler of the session.
pub unsafe extern "C" fn arrived(
    _: *mut lapi_handle_t,
    header: *mut c_void,
    header_len: *mut c_uint,
    info: *mut c_ulong,
    completion: *mut compl_hndlr_p,
    parameter: *mut *mut c_void,
) -> *mut c_void {
    let info = info.cast::<lapi_return_info_t>();
    // SAFETY: the core's pointers, valid during the call: `info` points to a whole
    // lapi_return_info_t, and the header has the length that stands beside it.
    let (bytes, length, from, here) = unsafe {
        let bytes = match header.is_null() {
            true => &[],
            false => std::slice::from_raw_parts(header.cast::<u8>(), header_len.read() as usize),
        };
        let info = &*info;
        (bytes, info.msg_len, info.src as u32, info.udata_one_pkt_ptr.cast::<u8>())
    };
    let finish = |flags| {
        // SAFETY: the core's description, a whole one, which lives during the call.
        unsafe { (*info).ctl_flags = flags };
        ptr::null_mut()
    };
    // A task that is still in gm_init takes messages later.
    let Some(world) = current() else { return finish(LAPI_DROP_PKT) };
    let Some(header) = Header::decode(bytes, length) else { return finish(LAPI_BURY_MSG) };
    if is_reply(&header) {
        world.replied(from, &header);
        return finish(LAPI_BURY_MSG);
    }
    match world.arrived(from, &header, length, here) {
        Place::Nowhere => finish(LAPI_BURY_MSG),
        Place::At(address) => ptr::with_exposed_provenance_mut(address),
        Place::Until { address, token } => {
            let token = u64::from(header.to_port) << PORT | token;
            // SAFETY: as above. The completion handler runs where this one does.
            unsafe {
                (*info).ret_flags = LAPI_LOCAL_STATE;
                completion.write(Some(completed));
                parameter.write(ptr::without_provenance_mut(token as usize));
            }
            ptr::with_exposed_provenance_mut(address)
        }
    }
}

/// A message of a process that was started by hand: header and data.
pub fn arrived_by_hand(from: u32, header: &[u8], data: &[u8]) {
    let Some((world, header)) = current().zip(Header::decode(header, data.len() as u64)) else { return };
    match is_reply(&header) {
        true => world.replied(from, &header),
        // All data is here.
        false => {
            let place = world.arrived(from, &header, data.len() as u64, data.as_ptr());
            debug_assert!(matches!(place, Place::Nowhere), "no thread that takes messages looks for events");
        }
    }
}

/// The completion handler of messages whose data did not come with their headers.
unsafe extern "C" fn completed(_: *mut lapi_handle_t, token: *mut c_void) {
    let token = token.addr() as u64;
    let slot = current().and_then(|world| Some((world, world.slot((token >> PORT) as usize)?)));
    if let Some((world, slot)) = slot {
        world.with(slot, |open| {
            open.port.complete(world.roughly_now(), token & ((1 << PORT) - 1));
            world.tell(slot, open);
        });
    }
}

impl World {
    /// A message with data has come, which begins `here` if that is all of it.
    #[inline]
    fn arrived(&self, from: u32, header: &Header, length: u64, here: *const u8) -> Place {
        let Some(slot) = self.slot(header.to_port.into()) else { return Place::Nowhere };
        let now = self.roughly_now();
        let arrived = self.with(slot, |open| {
            let mut place = Place::Nowhere;
            if let Verdict::Into { address, token } = open.port.arrived(from, header) {
                if length != 0 && here.is_null() {
                    place = Place::Until { address, token };
                } else {
                    if slot.looks_here() && address != 0 {
                        place = Place::At(address);
                    } else if length != 0 {
                        let to = ptr::with_exposed_provenance_mut(address);
                        // SAFETY: all data is here, in one packet. The program has given the
                        // address, by a buffer of this size at least, for a get of this length, or
                        // for others to put.
                        unsafe { ptr::copy(here, to, length as usize) };
                    }
                    open.port.complete(now, token);
                }
            }
            // The program learns first of what has come, which it may wait for.
            open.port.hear(now, header);
            self.tell(slot, open);
            place
        });
        arrived.unwrap_or_else(|| match self.not_open(slot, from, header) {
            true => Place::Nowhere,
            // The program has opened it between the two looks.
            false => self.arrived(from, header, length, here),
        })
    }

    /// Words go by themselves, unless the program is in a call, will find an event, and may then
    /// send something that takes them along, and no sender waits for each.
    #[inline]
    fn tell(&self, slot: &Slot, open: &mut Open) {
        if open.port.must_tell() || !(slot.looks() && open.port.peek().is_some()) {
            open.port.tell();
        }
    }
}
