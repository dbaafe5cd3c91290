//! Active messages of the peer: their data lands in memory that the program has given, and they
//! wait in an inbox until it takes them.

use libc::{c_uint, c_ulong, c_void};
use openlapi::abi::{LAPI_BURY_MSG, LAPI_LOCAL_STATE, compl_hndlr_p, lapi_handle_t, lapi_return_info_t};
use openlapi::wire::user_header::{self, PREFIX};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

/// The index of the header handler in every session.
pub const HANDLER: u64 = 1;
/// The longest header of a message, in bytes: the core's header also carries its length.
pub const LONGEST_HEADER: usize = openlapi::api::MAX_UHDR - PREFIX;

/// A message of the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The header that it was sent with.
    pub header: Vec<u8>,
    /// The data.
    pub data: Vec<u8>,
}

/// Gives the memory in which the data of a message lands, by its header and its length in bytes. It
/// grows when it has no room for them; what it contains is replaced. Called while a call of the
/// session runs: it must call no session.
pub type Landing = Arc<dyn Fn(&[u8], usize) -> Vec<u8> + Send + Sync>;

/// Where the data of a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// To the inbox, as without a [`Receiver`].
    Inbox,
    /// To this address. [`Receiver::end`] gets the number beside it when all of it is there.
    At(*mut u8, usize),
    /// Nowhere: the receiver knows all that it wants to know.
    Nowhere,
}

/// Takes messages of the peer as they arrive: it reads the header and says where the data goes,
/// without a copy in between.
///
/// Its functions run while a call of the session runs, one at a time of each session, and must call
/// no session.
///
/// # Safety
/// A place that [`Self::begin`] gives has memory for as many bytes as the message has, which
/// nothing else accesses until [`Self::end`] was called with its number, or a call has said that
/// the session is over, or the session was dropped.
pub unsafe trait Receiver: Send + Sync {
    /// Says where the data of a message goes, by its header and its length in bytes. `here` has the
    /// data already, where it has come with the header and is not longer than a packet.
    fn begin(&self, header: &[u8], length: usize, here: Option<&[u8]>) -> Place;

    /// All data of the message with this number of [`Place::At`] is in its place.
    fn end(&self, number: usize);
}

/// The messages of one session.
pub struct Inbox {
    landing: Option<Landing>,
    receiver: Option<Arc<dyn Receiver>>,
    /// Bytes of data of the longest message that is taken.
    longest: usize,
    parts: Mutex<Parts>,
    /// The length of the first message that is too long, or for which there was no memory.
    refused: OnceLock<usize>,
}

#[derive(Default)]
struct Parts {
    arrived: VecDeque<Message>,
    /// Messages whose data is on the way, by number: the core writes into their memory.
    receiving: HashMap<usize, Message>,
    last: usize,
}

/// The inboxes of the open sessions, by the numbers that the core passes to handlers.
static INBOXES: RwLock<BTreeMap<lapi_handle_t, Arc<Inbox>>> = RwLock::new(BTreeMap::new());

impl Inbox {
    /// An inbox under the number of its session.
    pub fn open(
        handle: lapi_handle_t,
        landing: Option<Landing>,
        receiver: Option<Arc<dyn Receiver>>,
        longest: usize,
    ) -> Arc<Self> {
        let (parts, refused) = (Mutex::default(), OnceLock::new());
        let inbox = Arc::new(Self { landing, receiver, longest, parts, refused });
        INBOXES.write().unwrap_or_else(PoisonError::into_inner).insert(handle, inbox.clone());
        inbox
    }

    /// No message arrives under this number any more.
    pub fn close(handle: lapi_handle_t) {
        INBOXES.write().unwrap_or_else(PoisonError::into_inner).remove(&handle);
    }

    /// Takes the message that has arrived first.
    pub fn take(&self) -> Option<Message> {
        self.parts().arrived.pop_front()
    }

    /// How many messages wait to be taken.
    pub fn arrived(&self) -> usize {
        self.parts().arrived.len()
    }

    /// The length of the first message that is too long, or for which there was no memory.
    pub fn refused(&self) -> Option<usize> {
        self.refused.get().copied()
    }

    fn of(handle: lapi_handle_t) -> Option<Arc<Self>> {
        INBOXES.read().unwrap_or_else(PoisonError::into_inner).get(&handle).cloned()
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place of a message's data, with whom to tell when it is there. `None`: there is none, or
    /// the message is in the inbox already, since its data was `here`.
    fn place(&self, header: &[u8], length: usize, here: Option<&[u8]>) -> Option<(*mut u8, Tell)> {
        let place = match &self.receiver {
            Some(receiver) if length <= self.longest => receiver.begin(header, length, here),
            _ => Place::Inbox,
        };
        match (place, here) {
            (Place::At(at, number), _) => Some((at, Tell::Receiver(number))),
            (Place::Inbox, None) => self.land(header, length).map(|(at, number)| (at, Tell::Inbox(number))),
            (Place::Inbox, Some(data)) => {
                self.keep(header, data);
                None
            }
            (Place::Nowhere, _) => None,
        }
    }

    /// All data of a message is there.
    fn tell(&self, whom: Tell) {
        match (whom, &self.receiver) {
            (Tell::Inbox(number), _) => self.complete(number),
            (Tell::Receiver(number), Some(receiver)) => receiver.end(number),
            (Tell::Receiver(_), None) => {}
        }
    }

    /// A message that has arrived whole.
    fn keep(&self, header: &[u8], data: &[u8]) {
        if let Some(mut memory) = self.memory(header, data.len()) {
            memory.extend_from_slice(data);
            self.parts().arrived.push_back(Message { header: header.to_vec(), data: memory });
        }
    }

    /// Memory for the data of a message, which stays where it is until [`Self::complete`]; the
    /// message's number beside it. `None`: there is none, and the session cannot go on.
    fn land(&self, header: &[u8], length: usize) -> Option<(*mut u8, usize)> {
        let mut data = self.memory(header, length)?;
        // Any bytes will do: the data replaces them before the program sees it.
        data.resize(length, 0);
        let mut parts = self.parts();
        parts.last += 1;
        let number = parts.last;
        let message = parts.receiving.entry(number).or_insert(Message { header: header.to_vec(), data });
        Some((message.data.as_mut_ptr(), number))
    }

    /// Memory for this many bytes of data, empty. `None`: there is none, and the session cannot go
    /// on.
    fn memory(&self, header: &[u8], length: usize) -> Option<Vec<u8>> {
        if length <= self.longest {
            let mut data = self.landing.as_ref().map_or_else(Vec::new, |landing| landing(header, length));
            data.clear();
            if data.try_reserve_exact(length).is_ok() {
                return Some(data);
            }
        }
        let _ = self.refused.set(length);
        None
    }

    fn complete(&self, number: usize) {
        let mut parts = self.parts();
        if let Some(message) = parts.receiving.remove(&number) {
            parts.arrived.push_back(message);
        }
    }
}

/// Who has given the place of a message, and its number there.
#[derive(Clone, Copy)]
enum Tell {
    Inbox(usize),
    Receiver(usize),
}

/// The header handler of all sessions, for the core.
///
/// # Safety
/// Called by the core, as a header handler of a session.
pub unsafe extern "C" fn arrived(
    handle: *mut lapi_handle_t,
    header: *mut c_void,
    header_len: *mut c_uint,
    info: *mut c_ulong,
    completion: *mut compl_hndlr_p,
    parameter: *mut *mut c_void,
) -> *mut c_void {
    let info = info.cast::<lapi_return_info_t>();
    // SAFETY: the core's pointers, valid during the call: `info` points to a whole
    // lapi_return_info_t, and the header has the length that stands beside it.
    let (handle, packed, length, here) = unsafe {
        let packed = if header.is_null() {
            &[]
        } else {
            std::slice::from_raw_parts(header.cast::<u8>(), header_len.read() as usize)
        };
        (handle.read(), packed, (*info).msg_len as usize, (*info).udata_one_pkt_ptr.cast::<u8>())
    };
    let inbox = Inbox::of(handle).zip(user_header::unpack(packed));
    // SAFETY: where this is not null, all data is there.
    let data = (!here.is_null()).then(|| unsafe { std::slice::from_raw_parts(here.cast_const(), length) });
    let data = if length == 0 { Some(&[][..]) } else { data };
    let landed = inbox.and_then(|(inbox, header)| Some((inbox.place(header, length, data)?, inbox)));
    let Some(((at, whom), inbox)) = landed else {
        // SAFETY: the core's lapi_return_info_t, valid during the call.
        unsafe { (*info).ctl_flags = LAPI_BURY_MSG };
        return ptr::null_mut();
    };
    if let Some(data) = data {
        // SAFETY: the memory has room for the data, and is kept until `tell`.
        unsafe {
            ptr::copy_nonoverlapping(data.as_ptr(), at, length);
            (*info).ctl_flags = LAPI_BURY_MSG;
        }
        inbox.tell(whom);
        return ptr::null_mut();
    }
    let (completed, number): (unsafe extern "C" fn(_, _), _) = match whom {
        Tell::Inbox(number) => (completed, number),
        Tell::Receiver(number) => (placed, number),
    };
    // SAFETY: the core's pointers. The completion handler runs where this one does, without a
    // thread.
    unsafe {
        (*info).ret_flags = LAPI_LOCAL_STATE;
        completion.write(Some(completed));
        parameter.write(ptr::without_provenance_mut(number));
    }
    at.cast()
}

/// The completion handler, for the core.
unsafe extern "C" fn completed(handle: *mut lapi_handle_t, number: *mut c_void) {
    // SAFETY: the core's handle, valid during the call.
    if let Some(inbox) = Inbox::of(unsafe { handle.read() }) {
        inbox.complete(number.addr());
    }
}

/// The completion handler of a message that a receiver has given a place, for the core.
unsafe extern "C" fn placed(handle: *mut lapi_handle_t, number: *mut c_void) {
    // SAFETY: the core's handle, valid during the call.
    if let Some(inbox) = Inbox::of(unsafe { handle.read() }) {
        inbox.tell(Tell::Receiver(number.addr()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_without_memory_is_noted_and_the_others_arrive() {
        let inbox = Inbox::open(77, Some(Arc::new(|_, _| Vec::with_capacity(16))), None, usize::MAX);
        assert!(inbox.land(b"long", usize::MAX).is_none());
        assert_eq!((inbox.refused(), inbox.take()), (Some(usize::MAX), None));
        let (at, number) = inbox.land(b"short", 3).expect("memory");
        assert_eq!(inbox.take(), None);
        // SAFETY: the three bytes that `land` has made.
        unsafe { ptr::copy_nonoverlapping(b"abc".as_ptr(), at, 3) };
        inbox.complete(number);
        inbox.complete(number);
        assert_eq!(inbox.take(), Some(Message { header: b"short".to_vec(), data: b"abc".to_vec() }));
        assert_eq!(inbox.take(), None);
        Inbox::close(77);
        assert!(Inbox::of(77).is_none());
        let inbox = Inbox::open(78, Some(Arc::new(|_, _| panic!("no memory is asked for"))), None, 99);
        assert!(inbox.land(b"", 100).is_none());
        assert_eq!((inbox.refused(), inbox.take()), (Some(100), None));
        Inbox::close(78);
    }
}
