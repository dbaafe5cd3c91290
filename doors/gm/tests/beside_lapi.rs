//! GM and LAPI in one process.

use gm as _;
use std::ffi::{c_char, c_uint, c_ulong, c_void};
use std::ptr;

type Callback = extern "C" fn(*mut c_void, *mut c_void, c_uint);

unsafe extern "C" {
    fn gm_init() -> c_uint;
    fn gm_finalize();
    fn gm_open(
        port: *mut *mut c_void,
        unit: c_uint,
        number: c_uint,
        name: *const c_char,
        v: c_uint,
    ) -> c_uint;
    fn gm_close(port: *mut c_void);
    fn gm_provide_receive_buffer(port: *mut c_void, buffer: *mut c_void, size: c_uint, priority: c_uint);
    fn gm_send_with_callback(
        port: *mut c_void,
        message: *mut c_void,
        size: c_uint,
        length: c_ulong,
        priority: c_uint,
        node: c_uint,
        target: c_uint,
        callback: Callback,
        context: *mut c_void,
    );
    fn gm_blocking_receive(port: *mut c_void) -> *mut c_void;
    fn gm_unknown(port: *mut c_void, event: *mut c_void);
}

extern "C" fn sent(_: *mut c_void, context: *mut c_void, status: c_uint) {
    assert_eq!(status, 0);
    // SAFETY: the count below, which outlives the send.
    unsafe { *context.cast::<u32>() += 1 };
}

#[test]
fn a_program_has_both() {
    let context = lapi::Context::open().expect("a job of one task");
    let lapi = context.port();
    // SAFETY: GM's calls, with memory that lives until gm_finalize.
    unsafe {
        assert_eq!(gm_init(), 0);
        let mut port = ptr::null_mut();
        assert_eq!(gm_open(&raw mut port, 0, 2, ptr::null(), 0x200), 0);
        let (mut ends, mut message, mut buffer) = (0_u32, 0_u64, [0_u64; 2]);
        for turn in 1..=100_u64 {
            message = turn;
            gm_provide_receive_buffer(port, buffer.as_mut_ptr().cast(), 4, 0);
            let (from, count) = ((&raw mut message).cast(), (&raw mut ends).cast());
            gm_send_with_callback(port, from, 4, 8, 0, 1, 2, sent, count);
            // LAPI goes on beside it.
            let mut at = 0_u64;
            let address = (&raw mut at).expose_provenance() as u64;
            lapi.put_at(0, address, &[turn]).expect("a put");
            lapi.fence().expect("a fence");
            assert_eq!((&raw const at).read_volatile(), turn);
            while (&raw const ends).read_volatile() < turn as u32 {
                let event = gm_blocking_receive(port);
                gm_unknown(port, event);
            }
            assert_eq!(buffer.as_ptr().read_volatile(), turn);
        }
        gm_close(port);
        gm_finalize();
        assert_eq!((&raw const message).read_volatile(), 100);
    }
    lapi.fence().expect("LAPI goes on");
}
