//! Wrappers of completion and send completion handlers: a loan keeps the handler and its parameter until it has run.
//!
//! The free loans are a stack whose top is one word: the number of a loan and a mark that changes each time (Treiber's stack,
//! with a tag against a loan that goes and comes back between two looks). There is a fixed number of loans; a handler that
//! finds none is handed over as it is, and counted. So is one that never runs, since its message never came: its loan is
//! not given back.

use super::not_timed;
use crate::calls::Call;
use crate::record::{NO_PEER, Seen, Traffic, record};
use libc::c_void;
use openlapi::abi::{compl_hndlr_t, lapi_handle_t, lapi_sh_info_t, scompl_hndlr_t};
use openlapi::base::clock::ticks;
use std::mem::transmute;
use std::ptr::{self, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// How many handlers can be under way.
const LOANS: usize = 4096;

/// A handler that has not run yet.
struct Loan {
    /// The number of the loan below it on the stack, from 1; 0 for none.
    below: AtomicU32,
    handler: AtomicUsize,
    parameter: AtomicPtr<c_void>,
}

static ALL: [Loan; LOANS] = [const {
    Loan { below: AtomicU32::new(0), handler: AtomicUsize::new(0), parameter: AtomicPtr::new(null_mut()) }
}; LOANS];
/// In the lower half the number of the free loan on top, from 1; in the upper half how many times it has changed.
static FREE: AtomicU64 = AtomicU64::new(0);
/// How many loans were ever made: those above have never been on the stack.
static MADE: AtomicU32 = AtomicU32::new(0);

/// A wrapper and its parameter in place of a completion handler and its own.
pub fn completion(handler: compl_hndlr_t, parameter: *mut c_void) -> Option<(compl_hndlr_t, *mut c_void)> {
    Some((run_completion, lend(handler as usize, parameter)?))
}

/// A wrapper and its parameter in place of a send completion handler and its own.
pub fn send_completion(
    handler: scompl_hndlr_t,
    parameter: *mut c_void,
) -> Option<(scompl_hndlr_t, *mut c_void)> {
    Some((run_send_completion, lend(handler as usize, parameter)?))
}

/// Gives a loan back whose handler will not run.
pub fn give_up(loan: *mut c_void) {
    take_back(loan);
}

unsafe extern "C" fn run_completion(hndl: *mut lapi_handle_t, loan: *mut c_void) {
    let (handler, parameter) = take_back(loan);
    // SAFETY: lent as a completion handler.
    let real: compl_hndlr_t = unsafe { transmute(handler) };
    let start = ticks();
    // SAFETY: the library's handle, and the parameter that goes with the handler.
    unsafe { real(hndl, parameter) };
    record(Seen {
        call: Call::CompletionHandler,
        site: handler,
        start,
        end: ticks(),
        good: true,
        traffic: None,
    });
}

unsafe extern "C" fn run_send_completion(
    hndl: *mut lapi_handle_t,
    loan: *mut c_void,
    info: *mut lapi_sh_info_t,
) {
    let (handler, parameter) = take_back(loan);
    // SAFETY: lent as a send completion handler.
    let real: scompl_hndlr_t = unsafe { transmute(handler) };
    // SAFETY: the library's own structure, or null.
    let peer = unsafe { info.as_ref() }.map_or(NO_PEER, |info| info.src);
    let start = ticks();
    // SAFETY: the library's handle and structure, and the parameter that goes with the handler.
    unsafe { real(hndl, parameter, info) };
    let traffic = Some(Traffic { peer, bytes: 0 });
    record(Seen { call: Call::SendHandler, site: handler, start, end: ticks(), good: true, traffic });
}

fn lend(handler: usize, parameter: *mut c_void) -> Option<*mut c_void> {
    let Some(loan) = pop().or_else(make) else {
        not_timed();
        return None;
    };
    loan.handler.store(handler, Ordering::Relaxed);
    loan.parameter.store(parameter, Ordering::Relaxed);
    Some(ptr::from_ref(loan).cast_mut().cast())
}

/// What a loan was for; it is free again.
fn take_back(loan: *mut c_void) -> (usize, *mut c_void) {
    // SAFETY: comes from `lend`, by way of the library.
    let loan = unsafe { &*loan.cast::<Loan>() };
    // The library hands the parameter from thread to thread under its lock, which orders these.
    let held = (loan.handler.load(Ordering::Relaxed), loan.parameter.load(Ordering::Relaxed));
    push(loan);
    held
}

fn make() -> Option<&'static Loan> {
    if MADE.load(Ordering::Relaxed) as usize >= LOANS {
        return None;
    }
    ALL.get(MADE.fetch_add(1, Ordering::Relaxed) as usize)
}

fn pop() -> Option<&'static Loan> {
    let mut top = FREE.load(Ordering::Acquire);
    loop {
        let loan = ALL.get((top as u32 as usize).checked_sub(1)?)?;
        let next = changed(top, loan.below.load(Ordering::Relaxed));
        // Acquire: what the loan was for has been read before it was put here. The tag in `top` proves that `below` is still right.
        match FREE.compare_exchange_weak(top, next, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => return Some(loan),
            Err(other) => top = other,
        }
    }
}

fn push(loan: &'static Loan) {
    let number = (ptr::from_ref(loan).addr() - ALL.as_ptr().addr()) / size_of::<Loan>() + 1;
    let mut top = FREE.load(Ordering::Relaxed);
    loop {
        loan.below.store(top as u32, Ordering::Relaxed);
        // Release: whoever takes it sees `below`, and writes to it only after what was read of it here.
        match FREE.compare_exchange_weak(
            top,
            changed(top, number as u32),
            Ordering::Release,
            Ordering::Relaxed,
        ) {
            Ok(_) => return,
            Err(other) => top = other,
        }
    }
}

/// The word with another number on top.
fn changed(top: u64, number: u32) -> u64 {
    ((top >> 32).wrapping_add(1) << 32) | u64::from(number)
}

#[cfg(test)]
mod tests {
    use super::{LOANS, lend, take_back};
    use std::ptr::without_provenance_mut;
    use std::thread;

    #[test]
    fn loans_come_back_with_what_was_lent() {
        thread::scope(|scope| {
            for thread in 0..4usize {
                scope.spawn(move || {
                    for round in 0..2000 {
                        let mine: Vec<_> = (0..=round % 9)
                            .map(|at| {
                                (at, lend(thread * 1000 + at + 1, without_provenance_mut(round + 1)).unwrap())
                            })
                            .collect();
                        for (at, loan) in mine {
                            let (handler, parameter) = take_back(loan);
                            assert_eq!((handler, parameter.addr()), (thread * 1000 + at + 1, round + 1));
                        }
                    }
                });
            }
        });
        let all: Vec<_> = std::iter::from_fn(|| lend(1, without_provenance_mut(1))).collect();
        assert_eq!(all.len(), LOANS);
        all.into_iter().for_each(|loan| drop(take_back(loan)));
        assert!(lend(1, without_provenance_mut(1)).is_some());
    }
}
