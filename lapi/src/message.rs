//! Active messages: closures of the target run when a message arrives.

use crate::context::with_port;
use crate::dgsp::Dgsp;
use crate::owned::{drop_owned, into_raw, kept_if_started};
use crate::port::{Counters, HANDLERS, Port, Until};
use bytemuck::Pod;
use libc::{c_uint, c_ulong, c_void};
use openlapi::abi::*;
use openlapi::api::{MAX_UHDR, active_message, dgsp};
use openlapi::error::{Error, Result};
use openlapi_runtime::request;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;

/// A message whose first packet has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The task that has sent it.
    pub source: u32,
    /// The user header.
    pub header: &'a [u8],
    /// The number of bytes of data.
    pub len: usize,
    /// The data, if all of it has arrived with the header.
    pub data: Option<&'a [u8]>,
}

type Completion = Box<dyn FnOnce(&Arc<Port>, Vec<u8>) + Send>;

impl Arrival<'_> {
    /// The data is received into `into`, scattered by a program, and passed to `then`, as
    /// [`Accept::then`] does.
    ///
    /// # Errors
    /// `LAPI_ERR_OFFSET_LEN`: the items of the message are not within `into`.
    pub fn scatter<T: Pod + Send>(
        &self,
        layout: &Dgsp,
        mut into: Vec<T>,
        then: impl FnOnce(&Arc<Port>, Vec<T>) + Send + 'static,
    ) -> Result<Accept> {
        let room = size_of_val(&into[..]);
        layout.check_bytes(self.len, room)?;
        let at = into.as_mut_ptr().cast();
        let kept = Parts::from(into);
        let then = Box::new(move |port: &Arc<Port>| then(port, kept.into()));
        Ok(Accept(Decision::Scatter(Scatter { layout: layout.clone(), at, room, then })))
    }
}

/// What a header handler decides about its message.
pub struct Accept(Decision);

enum Decision {
    Done,
    Again,
    Receive(Completion),
    Scatter(Scatter),
}

/// Memory that a message is scattered to.
struct Scatter {
    layout: Dgsp,
    at: *mut u8,
    /// In bytes.
    room: usize,
    /// Owns the memory.
    then: Continuation,
}

type Continuation = Box<dyn FnOnce(&Arc<Port>) + Send>;

// SAFETY: the memory is that of a `Vec` that may be sent, which `then` owns.
unsafe impl Send for Scatter {}

/// A `Vec` while the core writes to its elements.
struct Parts<T> {
    at: *mut T,
    len: usize,
    capacity: usize,
}

// SAFETY: as a `Vec`.
unsafe impl<T: Send> Send for Parts<T> {}

impl<T> From<Vec<T>> for Parts<T> {
    fn from(owned: Vec<T>) -> Self {
        let mut owned = ManuallyDrop::new(owned);
        Self { at: owned.as_mut_ptr(), len: owned.len(), capacity: owned.capacity() }
    }
}

impl<T> From<Parts<T>> for Vec<T> {
    fn from(parts: Parts<T>) -> Self {
        let parts = ManuallyDrop::new(parts);
        // SAFETY: the parts of a `Vec`, which is made again once.
        unsafe { Self::from_raw_parts(parts.at, parts.len, parts.capacity) }
    }
}

impl<T> Drop for Parts<T> {
    fn drop(&mut self) {
        // SAFETY: the same; `into` does not get here.
        drop(unsafe { Vec::from_raw_parts(self.at, self.len, self.capacity) });
    }
}

impl Accept {
    /// The message is handled: data that is still to arrive is discarded.
    pub fn done() -> Self {
        Self(Decision::Done)
    }

    /// The message is offered again later.
    pub fn again() -> Self {
        Self(Decision::Again)
    }

    /// The data is received, and passed to `then`, on a thread of the library. This is the
    /// completion handler: it may wait, and call everything.
    pub fn then(then: impl FnOnce(&Arc<Port>, Vec<u8>) + Send + 'static) -> Self {
        Self(Decision::Receive(Box::new(then)))
    }
}

type Handler = Box<dyn Fn(&Arc<Port>, &Arrival<'_>) -> Accept + Send + Sync>;

impl Port {
    /// Sets the header handler of an index, 1 to 63 (LAPI_Addr_set). It runs in the
    /// dispatcher, so that it must be short: calls that wait return an error in it. A panic in
    /// it, or in a completion handler, ends the process. Messages that have arrived before
    /// wait for it for a second.
    ///
    /// A handler that keeps a clone of its port keeps the context's memory; it gets a
    /// reference instead.
    ///
    /// # Errors
    /// `LAPI_ERR_ADDR_HNDL_RANGE`: there is no such index, or it has a handler.
    pub fn on_message(
        &self,
        index: u16,
        handler: impl Fn(&Arc<Port>, &Arrival<'_>) -> Accept + Send + Sync + 'static,
    ) -> Result<()> {
        let handler: Handler = Box::new(handler);
        let trampoline = TRAMPOLINES[usize::from(index).min(HANDLERS - 1)];
        self.set_handler(index, Box::new(handler), trampoline)
    }

    /// Sends a message to the handler that `task` has set for this index (LAPI_Amsend). Returns
    /// when header and data may be changed. The length of the header is a multiple of 4, at
    /// most 1024 bytes.
    ///
    /// # Errors
    /// `LAPI_ERR_TGT`, `LAPI_ERR_HDR_LEN`, `LAPI_ERR_UHDR_LEN`, `LAPI_ERR_ADDR_HNDL_RANGE`.
    /// `LAPI_ERR_NO_CONNECTIVITY`: the task is lost. `LAPI_ERR_UNKNOWN`: called in a header
    /// handler, which may use [`Self::send_owned`].
    #[inline]
    pub fn send(&self, task: u32, handler: u16, header: &[u8], data: &[u8]) -> Result<()> {
        self.send_until(task, handler, header, data, Until::Reusable)
    }

    /// Sends as [`Self::send`] does, and returns when the completion handler at the
    /// target has returned.
    ///
    /// # Errors
    /// The errors of [`Self::send`].
    pub fn send_complete(&self, task: u32, handler: u16, header: &[u8], data: &[u8]) -> Result<()> {
        self.send_until(task, handler, header, data, Until::Complete)
    }

    fn send_until(&self, task: u32, handler: u16, header: &[u8], data: &[u8], until: Until) -> Result<()> {
        let command = message_command(task, handler, header, data)?;
        // SAFETY: header and data are borrowed until `perform` returns.
        unsafe {
            self.perform(task, until, |held, counters| {
                let command = counters.of_message(command);
                active_message::amsend(held, &request::active_message(&command))
            })
        }
    }

    /// Sends as [`Self::send`] does a header and data that are given away, so that the call does
    /// not wait: header handlers may use it.
    ///
    /// # Errors
    /// The errors of [`Self::send`].
    pub fn send_owned(&self, task: u32, handler: u16, header: Vec<u8>, data: Vec<u8>) -> Result<()> {
        let mut command = message_command(task, handler, &header, &data)?;
        let mut held = self.enter()?;
        command.shdlr = Some(drop_owned);
        command.sinfo = into_raw((header, data));
        // SAFETY: header and data live until the send completion handler has run, or for ever if it
        // never does. A message that was refused is not under way.
        unsafe {
            let sent = active_message::amsend(&mut held, &request::active_message(&command));
            kept_if_started(sent, command.sinfo)
        }
    }

    /// Sends a message whose data is gathered from `items` items in `from` (LAPI_DGSP_XFER).
    /// Otherwise as [`Self::send`].
    ///
    /// # Errors
    /// The errors of [`Self::send`]. `LAPI_ERR_OFFSET_LEN`: the items are not within `from`.
    pub fn send_gathered<T: Pod>(
        &self,
        task: u32,
        handler: u16,
        header: &[u8],
        layout: &Dgsp,
        items: usize,
        from: &[T],
    ) -> Result<()> {
        check_header(handler, header)?;
        layout.check_items(items, size_of_val(from))?;
        let bytes = layout.message_bytes(items)?;
        // SAFETY: header and items are borrowed until `perform` returns; the items are within
        // `from`, and the program lives as long as `layout`.
        unsafe {
            self.perform(task, Until::Reusable, |held, counters| {
                let command = lapi_amdgsp_t {
                    Xfer_type: LAPI_DGSP_XFER,
                    flags: 0,
                    tgt: task,
                    pad: 0,
                    hdr_hdl: handler.into(),
                    uhdr_len: header.len() as _,
                    pad2: 0,
                    uhdr: header.as_ptr().cast_mut().cast(),
                    udata: from.as_ptr().cast_mut().cast(),
                    udata_len: bytes as c_ulong,
                    shdlr: None,
                    sinfo: ptr::null_mut(),
                    tgt_cntr: 0,
                    org_cntr: counters.origin,
                    cmpl_cntr: counters.completion,
                    dgsp: layout.handle(),
                    status: 0,
                };
                dgsp::amsend(held, request::dgsp_message(&command))
            })
        }
    }
}

impl Counters {
    /// The message with these counters.
    pub(crate) fn of_message(self, command: lapi_am_t) -> lapi_am_t {
        lapi_am_t { org_cntr: self.origin, cmpl_cntr: self.completion, ..command }
    }
}

/// A message without counters, checked.
pub(crate) fn message_command(task: u32, handler: u16, header: &[u8], data: &[u8]) -> Result<lapi_am_t> {
    check_header(handler, header)?;
    Ok(lapi_am_t {
        Xfer_type: LAPI_AM_XFER,
        flags: 0,
        tgt: task,
        pad: 0,
        hdr_hdl: handler.into(),
        uhdr_len: header.len() as c_uint,
        pad2: 0,
        uhdr: header.as_ptr().cast_mut().cast(),
        udata: data.as_ptr().cast_mut().cast(),
        udata_len: data.len() as c_ulong,
        shdlr: None,
        sinfo: ptr::null_mut(),
        tgt_cntr: 0,
        org_cntr: ptr::null_mut(),
        cmpl_cntr: ptr::null_mut(),
    })
}

/// The index of a handler, and the length of a header.
pub(crate) fn check_header(handler: u16, header: &[u8]) -> Result<()> {
    if !(1..HANDLERS).contains(&usize::from(handler)) {
        let detail = format!("handler {handler}; indices are 1 to {}", HANDLERS - 1);
        return Err(Error::new(LAPI_ERR_ADDR_HNDL_RANGE, detail));
    }
    if !header.len().is_multiple_of(4) {
        let detail = format!("a header of {} bytes, not a multiple of 4", header.len());
        return Err(Error::new(LAPI_ERR_HDR_LEN, detail));
    }
    if header.len() > MAX_UHDR {
        let detail = format!("a header of {} bytes; at most {MAX_UHDR}", header.len());
        return Err(Error::new(LAPI_ERR_UHDR_LEN, detail));
    }
    Ok(())
}

/// A message that is being received: the core writes its data, and passes this to [`completed`].
struct Receiving {
    then: Completion,
    data: Vec<u8>,
}

/// The header handler of index `INDEX` for the core, which does not pass the index. A panic cannot
/// leave it: it ends the process.
unsafe extern "C" fn arrived<const INDEX: usize>(
    handle: *mut lapi_handle_t,
    header: *mut c_void,
    header_len: *mut c_uint,
    info: *mut c_ulong,
    completion: *mut compl_hndlr_p,
    parameter: *mut *mut c_void,
) -> *mut c_void {
    let info = info.cast::<lapi_return_info_t>();
    // SAFETY: the core's pointers, which live during the call; `info` points to a whole
    // lapi_return_info_t.
    let (arrival, data) = unsafe {
        let len = (*info).msg_len as usize;
        let here = (*info).udata_one_pkt_ptr.cast::<u8>();
        let data = if len == 0 { Some(&[][..]) } else { slice(here, len) };
        let header = slice(header.cast(), header_len.read() as usize).unwrap_or_default();
        (Arrival { source: (*info).src as u32, header, len, data }, len)
    };
    // SAFETY: the core's handle.
    let accepted = unsafe {
        with_port(handle, |port| {
            let handler = port.handler(INDEX)?.downcast_ref::<Handler>()?;
            Some(handler(port, &arrival).0)
        })
    };
    // SAFETY: the core's description, which it reads after this call.
    unsafe {
        match accepted.flatten().unwrap_or(Decision::Done) {
            Decision::Done => (*info).ctl_flags = LAPI_BURY_MSG,
            Decision::Again => (*info).ctl_flags = LAPI_DROP_PKT,
            Decision::Receive(then) => {
                let Ok(data) = bytemuck::allocation::try_zeroed_vec(data) else {
                    panic!("there is no memory for the {data} bytes of a message of task {}", arrival.source)
                };
                let receiving = Box::into_raw(Box::new(Receiving { then, data }));
                completion.write(Some(completed));
                parameter.write(receiving.cast());
                return (*receiving).data.as_mut_ptr().cast();
            }
            Decision::Scatter(scatter) => {
                // It may have been made for another message.
                if let Err(error) = scatter.layout.check_bytes(data, scatter.room) {
                    panic!("a handler has returned what another message was to be scattered to: {error}");
                }
                (*info).dgsp_handle = scatter.layout.handle();
                (*info).bytes = data as c_ulong;
                let at = scatter.at;
                completion.write(Some(scattered));
                parameter.write(Box::into_raw(Box::new(scatter)).cast());
                return at.cast();
            }
        }
    }
    ptr::null_mut()
}

/// The completion handler for the core.
unsafe extern "C" fn completed(handle: *mut lapi_handle_t, parameter: *mut c_void) {
    // SAFETY: from `arrived`, and the core calls this once for each message.
    let Receiving { then, data } = *unsafe { Box::from_raw(parameter.cast::<Receiving>()) };
    // SAFETY: the core's handle.
    unsafe { with_port(handle, |port| then(port, data)) };
}

/// The completion handler of a message that was scattered.
unsafe extern "C" fn scattered(handle: *mut lapi_handle_t, parameter: *mut c_void) {
    // SAFETY: from `arrived`, and the core calls this once for each message.
    let Scatter { then, .. } = *unsafe { Box::from_raw(parameter.cast::<Scatter>()) };
    // SAFETY: the core's handle.
    unsafe { with_port(handle, then) };
}

/// The bytes at an address; none for null.
///
/// # Safety
/// `at` must be null or readable for `len` bytes.
unsafe fn slice<'a>(at: *const u8, len: usize) -> Option<&'a [u8]> {
    // SAFETY: the caller's promise.
    (!at.is_null()).then(|| unsafe { std::slice::from_raw_parts(at, len) })
}

macro_rules! trampolines {
    ($($index:literal)*) => { [$(arrived::<$index>),*] };
}

/// One function for each index.
static TRAMPOLINES: [hdr_hndlr_t; HANDLERS] = trampolines!(
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
    32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
);
