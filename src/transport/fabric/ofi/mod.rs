//! libfabric behind safe functions: what there is ([`list`]), and one open endpoint with
//! its address vector and completion queue ([`Device`]). Nothing outside of this folder
//! calls libfabric.

mod info;
mod memory;
#[cfg(test)]
mod unreadable;

pub(super) use info::{Info, list};

use super::workarounds::sets_least_before_enabling;
use crate::base::clock;
use crate::base::poll::await_readable;
use libfabric_sys::bindings as fi;
use libfabric_sys::{Library, calls};
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, RawFd};
use std::ptr;
use std::time::{Duration, Instant};

/// What memory registration may ask of us: we do what the provider says.
const MR_MODE: u32 =
    fi::FI_MR_LOCAL | fi::FI_MR_VIRT_ADDR | fi::FI_MR_ALLOCATED | fi::FI_MR_PROV_KEY | fi::FI_MR_ENDPOINT;

/// The entries that are taken out of the completion queue at a time.
pub(super) const BATCH: usize = 16;

/// The pieces of one message.
pub(super) const PIECES: usize = 3;

/// An error of libfabric: its number, above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Errno(pub(super) c_int);

impl Errno {
    /// No room now.
    pub(super) const AGAIN: Self = Self(fi::FI_EAGAIN as c_int);

    /// libfabric's text for it.
    pub(super) fn text(self) -> String {
        Library::get().map_or_else(|_| format!("error {}", self.0), |library| library.strerror(self.0))
    }

    pub(super) fn is_again(self) -> bool {
        self.0 == fi::FI_EAGAIN as c_int
    }
}

fn checked(code: c_int) -> Result<(), Errno> {
    if code < 0 { Err(Errno(-code)) } else { Ok(()) }
}

/// A peer's address in the address vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address(fi::fi_addr_t);

/// Names an operation: its context.
pub(super) type Slot = usize;

/// Registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Region(usize);

impl Region {
    /// The first in the order of regions.
    pub(super) const FIRST: Self = Self(0);
}

/// An operation that has ended well.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completion {
    /// Which one; `None` for one that was not named.
    pub(super) slot: Option<Slot>,
    /// A message has arrived.
    pub(super) received: bool,
    /// The memory posted for messages is used up.
    pub(super) used_up: bool,
    /// Where the message starts, and its length.
    pub(super) message: (*mut u8, usize),
}

/// An operation that has failed, or the completion queue itself.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) of: Failed,
    pub(super) errno: Errno,
    pub(super) text: String,
}

/// What has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// An operation; `None` for one that was not named.
    Operation(Option<Slot>),
    /// The completion queue, so often in turn, and for so long.
    Queue(u32, Duration),
}

/// One open endpoint.
pub(super) struct Device {
    info: Info,
    fabric: *mut fi::fid_fabric,
    domain: *mut fi::fid_domain,
    cq: *mut fi::fid_cq,
    av: *mut fi::fid_av,
    ep: *mut fi::fid_ep,
    /// Null where a region was closed: these places are in `free`.
    regions: Vec<*mut fi::fid_mr>,
    free: Vec<usize>,
    /// One for each operation: the provider's own while it is under way.
    contexts: Box<[UnsafeCell<fi::fi_context2>]>,
    entries: Box<[fi::fi_cq_data_entry; BATCH]>,
    /// The descriptor of the completion queue, where the provider has one.
    wait: Option<RawFd>,
    next_key: u64,
    /// Since when the completion queue cannot be read, and how often it was tried.
    failing: Option<(Instant, u32)>,
}

// SAFETY: FI_THREAD_DOMAIN: one thread at a time, which the transport's owner ensures.
unsafe impl Send for Device {}

impl Drop for Device {
    fn drop(&mut self) {
        self.close_endpoint();
        for mr in std::mem::take(&mut self.regions) {
            close(mr.cast());
        }
        close(self.av.cast());
        close(self.cq.cast());
        close(self.domain.cast());
        close(self.fabric.cast());
    }
}

fn close(object: *mut fi::fid) {
    if !object.is_null() {
        // SAFETY: an open object, closed once: what uses it was closed before. Every object
        // begins with its fid.
        unsafe { calls::close(object) };
    }
}

impl Device {
    /// Opens an endpoint that can have `slots` operations under way, and receives messages of up to
    /// `longest` bytes. With `sleeps` it has a descriptor, where the provider allows it.
    pub(super) fn open(
        mut info: Info,
        slots: usize,
        longest: usize,
        sleeps: bool,
    ) -> Result<Self, (&'static str, Errno)> {
        // SAFETY: the element is ours; only what is granted is asked for.
        unsafe {
            let order = info.sending().msg_order & u64::from(fi::FI_ORDER_SAS);
            let raw = info.raw.as_mut();
            (*raw.tx_attr).msg_order = order;
            (*raw.rx_attr).msg_order = order;
        }
        // SAFETY: plain numbers and null pointers.
        let entries =
            unsafe { Box::new(MaybeUninit::<[fi::fi_cq_data_entry; BATCH]>::zeroed().assume_init()) };
        // SAFETY: null pointers.
        let context = || UnsafeCell::new(unsafe { MaybeUninit::<fi::fi_context2>::zeroed().assume_init() });
        let mut device = Self {
            info,
            fabric: ptr::null_mut(),
            domain: ptr::null_mut(),
            cq: ptr::null_mut(),
            av: ptr::null_mut(),
            ep: ptr::null_mut(),
            regions: Vec::new(),
            free: Vec::new(),
            contexts: std::iter::repeat_with(context).take(slots).collect(),
            entries,
            wait: None,
            next_key: 0,
            failing: None,
        };
        device.open_all(longest, sleeps)?;
        Ok(device)
    }

    fn open_all(&mut self, longest: usize, sleeps: bool) -> Result<(), (&'static str, Errno)> {
        let named = |name: &'static str| move |errno: Errno| (name, errno);
        let raw = self.info.raw.as_ptr();
        // SAFETY: all objects are opened in the order that the man pages ask for, from one element
        // of fi_getinfo.
        unsafe {
            checked(self.info.library.open_fabric((*raw).fabric_attr, &raw mut self.fabric))
                .map_err(named("fi_fabric"))?;
            checked(calls::domain(self.fabric, raw, &raw mut self.domain)).map_err(named("fi_domain"))?;

            let mut av: fi::fi_av_attr = MaybeUninit::zeroed().assume_init();
            av.type_ = fi::FI_AV_UNSPEC;
            av.count = 64;
            checked(calls::av_open(self.domain, &raw mut av, &raw mut self.av))
                .map_err(named("fi_av_open"))?;

            let descriptor =
                if sleeps { self.open_queue(fi::FI_WAIT_FD) } else { Err(Errno(fi::FI_ENOSYS as c_int)) };
            descriptor.or_else(|_| self.open_queue(fi::FI_WAIT_NONE)).map_err(named("fi_cq_open"))?;

            checked(calls::endpoint(self.domain, raw, &raw mut self.ep)).map_err(named("fi_endpoint"))?;
            let ep = self.ep.cast::<fi::fid>();
            checked(calls::bind(ep, self.av.cast(), 0)).map_err(named("fi_ep_bind"))?;
            let both = u64::from(fi::FI_TRANSMIT) | u64::from(fi::FI_RECV);
            checked(calls::bind(ep, self.cq.cast(), both)).map_err(named("fi_ep_bind"))?;
            let before = sets_least_before_enabling(self.info.library.version());
            let set_before = before && self.set_least(longest).is_ok();
            checked(calls::control(ep, fi::FI_ENABLE as c_int, ptr::null_mut()))
                .map_err(named("fi_enable"))?;
            let is_less = |device: &Self| device.least().is_some_and(|least| least < longest);
            // A provider may also begin with its own number here, or have refused it before.
            if !set_before || is_less(self) {
                self.set_least(longest).map_err(named("fi_setopt"))?;
            }
            if is_less(self) {
                return Err(("fi_setopt has no effect", Errno(fi::FI_EOPNOTSUPP as c_int)));
            }
        }
        Ok(())
    }

    /// A buffer for messages ends when it has less room than this.
    ///
    /// # Safety
    /// The endpoint is open, and not in use.
    unsafe fn set_least(&self, bytes: usize) -> Result<(), Errno> {
        let (level, option) = (fi::FI_OPT_ENDPOINT as c_int, fi::FI_OPT_MIN_MULTI_RECV as c_int);
        // SAFETY: the caller's promise; reads the number.
        checked(unsafe {
            calls::setopt(self.ep, level, option, (&raw const bytes).cast(), size_of::<usize>())
        })
    }

    /// The room in a buffer, if the provider reports it. With `shm` this is the room that counts;
    /// others may report what was set, whatever counts.
    ///
    /// # Safety
    /// The endpoint is open.
    unsafe fn least(&self) -> Option<usize> {
        let (level, option) = (fi::FI_OPT_ENDPOINT as c_int, fi::FI_OPT_MIN_MULTI_RECV as c_int);
        let (mut bytes, mut len) = (0_usize, size_of::<usize>());
        // SAFETY: the caller's promise; writes the number, and its length.
        let code = unsafe { calls::getopt(self.ep, level, option, (&raw mut bytes).cast(), &raw mut len) };
        (code == 0 && len == size_of::<usize>()).then_some(bytes)
    }

    /// # Safety
    /// The domain is open, the queue is not.
    unsafe fn open_queue(&mut self, wait: fi::fi_wait_obj) -> Result<(), Errno> {
        // SAFETY: the attributes are plain numbers; FI_GETWAIT writes a descriptor for a queue
        // with FI_WAIT_FD.
        unsafe {
            let mut attributes: fi::fi_cq_attr = MaybeUninit::zeroed().assume_init();
            attributes.size = 2 * self.contexts.len();
            attributes.format = fi::FI_CQ_FORMAT_DATA;
            attributes.wait_obj = wait;
            checked(calls::cq_open(self.domain, &raw mut attributes, &raw mut self.cq))?;
            if wait == fi::FI_WAIT_FD {
                let mut descriptor: c_int = -1;
                let argument = (&raw mut descriptor).cast::<c_void>();
                let found = checked(calls::control(self.cq.cast(), fi::FI_GETWAIT as c_int, argument));
                if found.is_err() || descriptor < 0 {
                    close(std::mem::replace(&mut self.cq, ptr::null_mut()).cast());
                    return Err(Errno(fi::FI_ENOSYS as c_int));
                }
                self.wait = Some(descriptor);
            }
        }
        Ok(())
    }

    pub(super) fn info(&self) -> &Info {
        &self.info
    }

    /// This endpoint's address.
    pub(super) fn name(&self) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0_u8; 256];
        let mut len = bytes.len();
        // SAFETY: writes at most `len` bytes, and the length.
        checked(unsafe { calls::getname(self.ep, bytes.as_mut_ptr().cast(), &raw mut len) })?;
        bytes.truncate(len);
        Ok(bytes)
    }

    /// Enters a peer's address.
    pub(super) fn insert(&mut self, address: &[u8]) -> Result<Address, Errno> {
        let mut aligned = [0_u64; 32];
        if address.is_empty() || address.len() > size_of_val(&aligned) {
            return Err(Errno(fi::FI_EINVAL as c_int));
        }
        let mut entered: fi::fi_addr_t = 0;
        // SAFETY: one address of this provider's format, which is at most as long as the array.
        let count = unsafe {
            let to = aligned.as_mut_ptr();
            ptr::copy_nonoverlapping(address.as_ptr(), to.cast(), address.len());
            calls::av_insert(self.av, to.cast(), 1, &raw mut entered)
        };
        checked(count)?;
        if count == 1 { Ok(Address(entered)) } else { Err(Errno(fi::FI_EINVAL as c_int)) }
    }

    /// Removes a peer's address, and closes the provider's connection with it, if there is one.
    pub(super) fn remove(&mut self, address: Address) {
        let mut address = address.0;
        // SAFETY: one address that was entered.
        unsafe { calls::av_remove(self.av, &raw mut address, 1) };
    }

    /// Posts memory for any number of messages.
    ///
    /// # Safety
    /// The memory is not used for anything else until it is used up ([`Completion::used_up`]) or
    /// the endpoint closed.
    pub(super) unsafe fn post(
        &self,
        at: *mut u8,
        len: usize,
        region: Option<Region>,
        slot: Slot,
    ) -> Result<(), Errno> {
        let piece = fi::iovec { iov_base: at.cast(), iov_len: len };
        let mut description = self.description(region);
        let message = fi::fi_msg {
            msg_iov: &raw const piece,
            desc: &raw mut description,
            iov_count: 1,
            addr: u64::MAX,
            context: self.contexts[slot].get().cast(),
            data: 0,
        };
        // SAFETY: the caller's promise.
        let code = unsafe { calls::recvmsg(self.ep, &raw const message, fi::FI_MULTI_RECV.into()) };
        checked(code as c_int)
    }

    /// Sends one message.
    ///
    /// # Safety
    /// The pieces stay readable and unchanged until the operation has ended, or the endpoint is
    /// closed. No other operation has this slot.
    pub(super) unsafe fn send(
        &self,
        pieces: &[(*const u8, usize)],
        region: Option<Region>,
        to: Address,
        slot: Slot,
    ) -> Result<(), Errno> {
        debug_assert!(pieces.len() <= PIECES);
        let none = || fi::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        let mut list: [fi::iovec; PIECES] = std::array::from_fn(|_| none());
        for (place, (at, len)) in list.iter_mut().zip(pieces) {
            *place = fi::iovec { iov_base: at.cast_mut().cast(), iov_len: *len };
        }
        let mut descriptions = [self.description(region); PIECES];
        let message = fi::fi_msg {
            msg_iov: list.as_ptr(),
            desc: descriptions.as_mut_ptr(),
            iov_count: pieces.len(),
            addr: to.0,
            context: self.contexts[slot].get().cast(),
            data: 0,
        };
        // SAFETY: the caller's promise.
        checked(unsafe { calls::sendmsg(self.ep, &raw const message, 0) } as c_int)
    }

    /// Sends a short message ([`Info::inject_size`]), which is not reported.
    #[inline]
    pub(super) fn inject(&self, message: &[u8], to: Address) -> Result<(), Errno> {
        if self.ep.is_null() {
            return Err(Errno(fi::FI_EOPBADSTATE as c_int));
        }
        // SAFETY: the bytes are copied by the call.
        checked(unsafe { calls::inject(self.ep, message.as_ptr().cast(), message.len(), to.0) } as c_int)
    }

    /// Asks the provider to give an operation up, which it may do or not.
    pub(super) fn cancel(&self, slot: Slot) {
        if !self.ep.is_null() {
            // SAFETY: an open endpoint; an operation that has ended is not found.
            unsafe { calls::cancel(self.ep, self.contexts[slot].get().cast()) };
        }
    }

    /// Makes progress, and takes some operations that have ended: their number, for
    /// [`Self::completion`].
    #[inline]
    pub(super) fn poll(&mut self) -> Result<usize, Failure> {
        // SAFETY: the entries are of the format that the queue was opened with.
        let count = unsafe { calls::cq_read(self.cq, self.entries.as_mut_ptr().cast(), BATCH) };
        if count == -(fi::FI_EAVAIL as isize) { self.failure() } else { self.read(count, clock::now) }
    }

    /// What reading the completion queue has returned: a number of entries, or why there are none.
    #[inline]
    pub(super) fn read(&mut self, count: isize, now: impl FnOnce() -> Instant) -> Result<usize, Failure> {
        if count < 0 && count != -(fi::FI_EAGAIN as isize) {
            return Err(self.unread(Errno(-count as c_int), now()));
        }
        // Most polls write nothing here.
        if self.failing.is_some() {
            self.failing = None;
        }
        Ok(count.max(0) as usize)
    }

    #[cold]
    fn unread(&mut self, errno: Errno, now: Instant) -> Failure {
        let (since, times) = self.failing.unwrap_or((now, 0));
        let times = times.saturating_add(1);
        self.failing = Some((since, times));
        let lasts = now.saturating_duration_since(since);
        Failure { of: Failed::Queue(times, lasts), errno, text: errno.text() }
    }

    /// An operation that [`Self::poll`] has found.
    pub(super) fn completion(&self, at: usize) -> Completion {
        let entry = &self.entries[at];
        Completion {
            slot: self.slot(entry.op_context),
            received: entry.flags & u64::from(fi::FI_RECV) != 0,
            used_up: entry.flags & u64::from(fi::FI_MULTI_RECV) != 0,
            message: (entry.buf.cast(), entry.len),
        }
    }

    fn slot(&self, context: *mut c_void) -> Option<Slot> {
        let offset = context.addr().checked_sub(self.contexts.as_ptr().addr())?;
        Some(offset / size_of::<fi::fi_context2>()).filter(|slot| *slot < self.contexts.len())
    }

    /// The operation that has failed, as a poll has found.
    #[cold]
    fn failure(&mut self) -> Result<usize, Failure> {
        // SAFETY: the entry is plain numbers and pointers; the provider's text is a string or null.
        unsafe {
            let mut entry: fi::fi_cq_err_entry = MaybeUninit::zeroed().assume_init();
            let count = calls::cq_readerr(self.cq, &raw mut entry, 0);
            if self.read(count, clock::now)? == 0 {
                return Ok(0);
            }
            let own = info::owned(calls::cq_strerror(self.cq, entry.prov_errno, entry.err_data));
            let errno = Errno(entry.err);
            let mut text = errno.text();
            if !own.is_empty() && own != text {
                text = format!("{text} ({own})");
            }
            Err(Failure { of: Failed::Operation(self.slot(entry.op_context)), errno, text })
        }
    }

    /// The descriptor that becomes readable when [`Self::poll`] should be called, after
    /// [`Self::may_sleep`] returned `true`.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: open as long as the queue, which is as old as this object.
        self.wait.map(|descriptor| unsafe { BorrowedFd::borrow_raw(descriptor) })
    }

    /// Whether nothing is left to do, so that the descriptor will become readable when that
    /// changes. To be asked again after each call in which an awaited operation may have ended
    /// while another thread sleeps: nothing else need show that.
    pub(super) fn may_sleep(&self) -> bool {
        let mut object = self.cq.cast::<fi::fid>();
        // SAFETY: one open queue with a descriptor.
        self.wait.is_none() || unsafe { calls::trywait(self.fabric, &raw mut object, 1) } == 0
    }

    /// Whether [`Self::poll`] may have something to do at once, such as to store what a peer
    /// writes. Always, where there is no descriptor.
    pub(super) fn has_more(&self) -> bool {
        let is_readable = |descriptor| await_readable(&[descriptor], Some(Duration::ZERO))[0];
        !self.may_sleep() || self.descriptor().is_none_or(is_readable)
    }

    /// Ends all operations: no memory is read or written for them after this call.
    pub(super) fn close_endpoint(&mut self) {
        close(std::mem::replace(&mut self.ep, ptr::null_mut()).cast());
    }

    /// Whether [`Self::close_endpoint`] was called.
    pub(super) fn is_closed(&self) -> bool {
        self.ep.is_null()
    }
}
