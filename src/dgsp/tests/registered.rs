//! Handles: what they count, what they outlive, and which threads may use them at once.

use super::assemble::{Op, Source, simple};
use crate::abi::*;
use crate::dgsp::registry::Registry;
use std::ptr::{null, null_mut};
use std::sync::Arc;

fn source(bytes: i64) -> Source {
    simple(&[Op::Copy { bytes, offset: 0 }], bytes, 2 * bytes, (0, bytes))
}

fn register(registry: &Registry, bytes: i64) -> lapi_dg_handle_t {
    let mut source = source(bytes);
    // SAFETY: the descriptor points at the code of the source. Both are gone afterwards: the
    // handle has its own.
    unsafe { registry.register(&source.descriptor(), true) }.unwrap()
}

#[test]
fn a_handle_can_be_read_as_a_descriptor() {
    let registry = Registry::new();
    let handle = register(&registry, 6);
    let mut source = source(6);
    // SAFETY: the handle is registered.
    let (cached, code) = unsafe { (*handle, std::slice::from_raw_parts((*handle).code, source.code.len())) };
    let original = source.descriptor();
    assert_ne!(cached.code, original.code);
    assert_eq!(code, source.code);
    assert_eq!(format!("{:?}", lapi_dgsp_descr_t { code: original.code, ..cached }), format!("{original:?}"));
}

#[test]
fn references_are_counted() {
    let registry = Registry::new();
    let handle = register(&registry, 6);
    registry.reserve(handle).unwrap();
    registry.unreserve(handle).unwrap();
    let program = registry.lookup(handle).unwrap();
    registry.unreserve(handle).unwrap();
    assert_eq!(registry.lookup(handle).unwrap_err().code, LAPI_ERR_DGSP);
    assert_eq!(registry.reserve(handle).unwrap_err().code, LAPI_ERR_DGSP);
    assert_eq!(registry.unreserve(handle).unwrap_err().code, LAPI_ERR_DGSP_FREE);
    // An operation that has begun continues, and the descriptor is there as long as it does.
    assert_eq!((program.size(), program.handle()), (6, handle));
    assert_eq!(Arc::strong_count(&program), 1);
    // SAFETY: the program is still there.
    assert_eq!(unsafe { (*handle).extent }, 12);
}

#[test]
fn what_is_no_handle() {
    let registry = Registry::new();
    // SAFETY: null is refused.
    assert_eq!(unsafe { registry.register(null(), false) }.unwrap_err().code, LAPI_ERR_DGSP);
    let mut source = source(6);
    source.depth = 0;
    // SAFETY: the descriptor points at the code of the source.
    let refused = unsafe { registry.register(&source.descriptor(), true) };
    assert_eq!(refused.unwrap_err().code, LAPI_ERR_DGSP_STACK);
    let mut unregistered = source.descriptor();
    let stranger = &raw mut unregistered;
    for wrong in [null_mut(), stranger] {
        assert_eq!(registry.lookup(wrong).unwrap_err().code, LAPI_ERR_DGSP);
        assert_eq!(registry.reserve(wrong).unwrap_err().code, LAPI_ERR_DGSP);
    }
    assert_eq!(registry.unreserve(null_mut()).unwrap_err().code, LAPI_ERR_DGSP);
    assert_eq!(registry.unreserve(stranger).unwrap_err().code, LAPI_ERR_DGSP_FREE);
}

#[test]
fn the_predefined_handle_never_ends() {
    let registry = Registry::new();
    let handle = BYTE_DGSP.handle();
    registry.reserve(handle).unwrap();
    for _ in 0..3 {
        registry.unreserve(handle).unwrap();
        let program = registry.lookup(handle).unwrap();
        assert_eq!(program.contiguous(i64::MAX as u64), Some(0));
    }
}

#[test]
fn threads_do_not_disturb_each_other() {
    let registry = Registry::new();
    let shared = register(&registry, 77).expose_provenance();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let registry = &registry;
            scope.spawn(move || {
                let shared = std::ptr::with_exposed_provenance_mut(shared);
                for round in 1..=500 {
                    let own = register(registry, round + 1_000 * thread);
                    registry.reserve(shared).unwrap();
                    assert_eq!(registry.lookup(own).unwrap().size(), (round + 1_000 * thread) as u64);
                    assert_eq!(registry.lookup(shared).unwrap().size(), 77);
                    registry.unreserve(own).unwrap();
                    registry.unreserve(shared).unwrap();
                }
            });
        }
    });
    registry.unreserve(std::ptr::with_exposed_provenance_mut(shared)).unwrap();
}
