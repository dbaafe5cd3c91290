//! What libfabric offers on this machine: providers, domains and addresses, with their
//! limits and wishes.

use super::{MR_MODE, PIECES, checked};
use crate::base::undisturbed;
use crate::transport::fabric::LONGEST;
use libfabric_sys::Library;
use libfabric_sys::bindings as fi;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fs;
use std::ptr::{self, NonNull};
use std::sync::Once;

/// One way to reach peers: a provider, a fabric, a domain and an address.
pub(in crate::transport::fabric) struct Info {
    pub(super) raw: NonNull<fi::fi_info>,
    pub(super) library: &'static Library,
}

// SAFETY: the element is this object's alone.
unsafe impl Send for Info {}

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: of fi_dupinfo, freed once.
        unsafe { self.library.free_info(self.raw.as_ptr()) }
    }
}

/// Everything that has reliable-datagram endpoints with messages and remote access, in libfabric's
/// order. With `inject`, what can inject messages of this length. `provider` is the one that was
/// asked for, which decides when libfabric is used first.
pub(in crate::transport::fabric) fn list(
    inject: Option<usize>,
    provider: Option<&str>,
) -> Result<Vec<Info>, String> {
    static OPENED: Once = Once::new();
    let mut found = None;
    // libfabric initialises its providers when it is first asked.
    OPENED.call_once(|| found = Some(undisturbed::open(&buffers(provider), || ask(inject))));
    found.unwrap_or_else(|| ask(inject))
}

fn ask(inject: Option<usize>) -> Result<Vec<Info>, String> {
    let library = Library::get()?;
    let hints = NonNull::new(library.alloc_info()).ok_or("no memory")?;
    let hints = Info { raw: hints, library };
    let mut first = ptr::null_mut();
    // SAFETY: an element of fi_allocinfo has all attributes that are set here. The list
    // is freed below.
    let code = unsafe {
        let raw = hints.raw.as_ptr();
        (*raw).caps = (fi::FI_MSG | fi::FI_RMA | fi::FI_MULTI_RECV).into();
        (*raw).mode = fi::FI_CONTEXT | fi::FI_CONTEXT2;
        (*(*raw).ep_attr).type_ = fi::FI_EP_RDM;
        (*(*raw).tx_attr).inject_size = inject.unwrap_or(0);
        (*(*raw).domain_attr).mr_mode = MR_MODE as c_int;
        (*(*raw).domain_attr).resource_mgmt = fi::FI_RM_ENABLED;
        (*(*raw).domain_attr).threading = fi::FI_THREAD_DOMAIN;
        library.get_info(library.api_version(), ptr::null(), ptr::null(), 0, raw, &raw mut first)
    };
    match checked(code) {
        Err(errno) if errno.0 == fi::FI_ENODATA as c_int => return Ok(Vec::new()),
        Err(errno) => return Err(format!("fi_getinfo: {}", errno.text())),
        Ok(()) => {}
    }
    let mut found = Vec::new();
    let mut at: *mut fi::fi_info = first;
    while !at.is_null() {
        // SAFETY: an element of the list.
        unsafe {
            if let Some(raw) = NonNull::new(library.dup_info(at)) {
                found.push(Info { raw, library });
            }
            at = (*at).next;
        }
    }
    // SAFETY: the list of fi_getinfo, freed once.
    unsafe { library.free_info(first) };
    Ok(found)
}

/// What `ofi_rxm`, which carries messages over a provider of connections such as tcp, is asked
/// for: buffers that hold a whole packet, since a longer message goes in segments, which costs
/// more than twice as much; and 256 of them for arriving messages. It would have 4096, which are
/// 135 MB in each task.
const RXM_BUFFERS: [(&str, usize); 2] =
    [("FI_OFI_RXM_BUFFER_SIZE", LONGEST), ("FI_OFI_RXM_MSG_RX_SIZE", 256)];

/// [`RXM_BUFFERS`] as environment variables, which libfabric reads when it is used first. Where a
/// card for remote access exists the memory would be pinned for each peer, unless tcp was asked
/// for, which hosts with such a card and without one use together.
fn buffers(provider: Option<&str>) -> Vec<(CString, CString)> {
    let has_card = || fs::read_dir("/sys/class/infiniband").is_ok_and(|mut cards| cards.next().is_some());
    if provider != Some("tcp;ofi_rxm") && has_card() {
        return Vec::new();
    }
    let variable = |(name, value): &(&str, usize)| {
        Some((CString::new(*name).ok()?, CString::new(value.to_string()).ok()?))
    };
    RXM_BUFFERS.iter().filter_map(variable).collect()
}

/// # Safety
/// `text` is null or a string of C.
pub(super) unsafe fn owned(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

impl Info {
    pub(super) fn raw(&self) -> &fi::fi_info {
        // SAFETY: valid as long as this object.
        unsafe { self.raw.as_ref() }
    }

    pub(super) fn domain(&self) -> &fi::fi_domain_attr {
        // SAFETY: every element has these attributes.
        unsafe { &*self.raw().domain_attr }
    }

    pub(super) fn sending(&self) -> &fi::fi_tx_attr {
        // SAFETY: every element has these attributes.
        unsafe { &*self.raw().tx_attr }
    }

    pub(super) fn endpoint(&self) -> &fi::fi_ep_attr {
        // SAFETY: every element has these attributes.
        unsafe { &*self.raw().ep_attr }
    }

    /// Such as `tcp;ofi_rxm`.
    pub(in crate::transport::fabric) fn provider(&self) -> String {
        // SAFETY: every element has these attributes; a string or null.
        unsafe { owned((*self.raw().fabric_attr).prov_name) }
    }

    pub(in crate::transport::fabric) fn fabric_name(&self) -> String {
        // SAFETY: every element has these attributes; a string or null.
        unsafe { owned((*self.raw().fabric_attr).name) }
    }

    pub(in crate::transport::fabric) fn domain_name(&self) -> String {
        // SAFETY: a string or null.
        unsafe { owned(self.domain().name) }
    }

    /// The bytes of this task's address, as far as they are known.
    pub(in crate::transport::fabric) fn source(&self) -> &[u8] {
        let raw = self.raw();
        if raw.src_addr.is_null() {
            return &[];
        }
        // SAFETY: libfabric has made the address with its length.
        unsafe { std::slice::from_raw_parts(raw.src_addr.cast(), raw.src_addrlen) }
    }

    /// The family of its addresses: FI_SOCKADDR_IN and its like.
    pub(in crate::transport::fabric) fn address_format(&self) -> u32 {
        self.raw().addr_format
    }

    /// The protocol on the wire: two tasks with different ones do not understand each other.
    pub(in crate::transport::fabric) fn protocol(&self) -> (u32, u32) {
        (self.endpoint().protocol, self.endpoint().protocol_version)
    }

    /// Whether messages to one peer arrive in the order in which they were sent.
    pub(in crate::transport::fabric) fn ordered(&self) -> bool {
        self.sending().msg_order & u64::from(fi::FI_ORDER_SAS) != 0
    }

    /// The longest message that [`super::Device::inject`] takes.
    pub(in crate::transport::fabric) fn inject_size(&self) -> usize {
        self.sending().inject_size
    }

    /// The longest message.
    pub(in crate::transport::fabric) fn max_message(&self) -> usize {
        self.endpoint().max_msg_size
    }

    /// Whether a message may have [`PIECES`] pieces.
    pub(in crate::transport::fabric) fn gathers(&self) -> bool {
        self.sending().iov_limit >= PIECES
    }

    /// Whether accesses name memory of a peer by its address there, and not by its place
    /// in the region.
    pub(in crate::transport::fabric) fn has_virtual_addresses(&self) -> bool {
        self.domain().mr_mode as u32 & fi::FI_MR_VIRT_ADDR != 0
    }

    /// Whether a registration may cover addresses without memory, so that it pins nothing and one
    /// of all addresses is possible; peers name memory by an address or its distance from 0, and a
    /// key that the registering task chooses, of 64 bits.
    pub(in crate::transport::fabric) fn registers_any_address(&self) -> bool {
        let wishes = fi::FI_MR_ALLOCATED | fi::FI_MR_PROV_KEY | fi::FI_MR_ENDPOINT | fi::FI_MR_LOCAL;
        self.domain().mr_mode as u32 & wishes == 0 && self.domain().mr_key_size >= 8
    }

    /// Whether memory must be registered before messages are sent from it.
    pub(in crate::transport::fabric) fn registers(&self) -> bool {
        self.domain().mr_mode as u32 & fi::FI_MR_LOCAL != 0
    }
}
