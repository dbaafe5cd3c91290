//! Nodes and their names: man page gm_names(3).

use super::{GmPort, StatusCode, place};
use crate::abi::Status;
use crate::job::NoName;
use crate::world::World;
use std::ffi::{CStr, c_char, c_uint};
use std::time::{Duration, Instant};

/// How long a name is waited for by the calls that have no time of their own.
const PATIENCE: Duration = Duration::from_secs(10);
/// The highest number of a node that an event can have.
const HIGHEST: c_uint = 0xffff;
/// What the unique number of a node begins with: one that no hardware has.
const UNIQUE: [u8; 2] = [0x02, 0x67];
/// The longest name of a host, with the 0 at its end.
const NAME: usize = 128;

fn answer(result: Result<(), Status>) -> StatusCode {
    result.err().unwrap_or(Status::Success) as StatusCode
}

fn world(port: *mut GmPort) -> Result<&'static World, Status> {
    place(port).map(|(world, _)| world).ok_or(Status::InvalidParameter)
}

/// # Safety
/// `place` is null, or writable.
unsafe fn give<T>(place: *mut T, value: T) -> Result<(), Status> {
    if place.is_null() {
        return Err(Status::InvalidParameter);
    }
    // SAFETY: the caller's promise.
    unsafe { place.write(value) };
    Ok(())
}

fn name_of(world: &World, node: c_uint, patience: Duration) -> Result<String, Status> {
    let tasks = world.nodes().tasks(node);
    if tasks.is_empty() {
        return Err(Status::InvalidParameter);
    }
    let until = Instant::now() + patience;
    // The next one where a task is gone, which may become known just now.
    for &task in tasks {
        let is_lost = || world.nodes().is_lost(task);
        if is_lost() {
            continue;
        }
        match world.carrier().host_name(task, until, is_lost) {
            Ok(name) => return Ok(name),
            Err(NoName::Late) => return Err(Status::TimedOut),
            Err(NoName::Gone) => {}
        }
    }
    Err(Status::SendTargetNodeUnreachable)
}

fn node_of(world: &World, name: &CStr, patience: Duration) -> Result<c_uint, Status> {
    let wanted = name.to_string_lossy();
    let until = Instant::now() + patience;
    for node in 1..=world.nodes().count() {
        let left = until.saturating_duration_since(Instant::now());
        match name_of(world, node, left) {
            Ok(name) if name == wanted || name.split('.').next() == Some(&*wanted) => return Ok(node),
            Err(Status::TimedOut) => return Err(Status::TimedOut),
            // Another name, or a node that is gone.
            _ => {}
        }
    }
    Err(Status::InvalidParameter)
}

/// This node.
///
/// # Safety
/// `node` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_get_node_id(port: *mut GmPort, node: *mut c_uint) -> StatusCode {
    // SAFETY: the caller's promise.
    answer(
        world(port)
            .and_then(|world| unsafe { give(node, world.nodes().node(world.carrier().task()).into()) }),
    )
}

/// The name of this host.
///
/// # Safety
/// `name` has 128 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_get_host_name(port: *mut GmPort, name: *mut c_char) -> StatusCode {
    answer(world(port).and_then(|world| {
        let node = world.nodes().node(world.carrier().task());
        // SAFETY: the caller's promise.
        unsafe { write(name, &name_of(world, node.into(), PATIENCE)?) }
    }))
}

/// # Safety
/// `place` is null, or has 128 bytes.
unsafe fn write(place: *mut c_char, name: &str) -> Result<(), Status> {
    if place.is_null() {
        return Err(Status::InvalidParameter);
    }
    let length = name.len().min(NAME - 1);
    // SAFETY: the caller's promise.
    unsafe {
        std::ptr::copy_nonoverlapping(name.as_ptr(), place.cast(), length);
        place.add(length).write(0);
    }
    Ok(())
}

/// The name of a node's host, in memory of the calling thread until its next call; null: unknown.
#[unsafe(no_mangle)]
pub extern "C" fn gm_node_id_to_host_name(port: *mut GmPort, node: c_uint) -> *mut c_char {
    thread_local! {
        static LAST: std::cell::UnsafeCell<[c_char; NAME]> = const { std::cell::UnsafeCell::new([0; NAME]) };
    }
    let Ok(name) = world(port).and_then(|world| name_of(world, node, PATIENCE)) else {
        return std::ptr::null_mut();
    };
    LAST.with(|last| {
        let place = last.get().cast();
        // SAFETY: memory of this thread, of that length.
        unsafe { write(place, &name) }.map_or(std::ptr::null_mut(), |()| place)
    })
}

/// The name of a node's host, within that many microseconds.
///
/// # Safety
/// `name` has 129 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_node_id_to_host_name_ex(
    port: *mut GmPort,
    usec: c_uint,
    node: c_uint,
    name: *mut [c_char; 129],
) -> StatusCode {
    let patience = Duration::from_micros(usec.into());
    // SAFETY: the caller's promise.
    answer(world(port).and_then(|world| unsafe { write(name.cast(), &name_of(world, node, patience)?) }))
}

/// The node of a host by its name; 0: unknown.
///
/// # Safety
/// A string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_host_name_to_node_id(port: *mut GmPort, name: *mut c_char) -> c_uint {
    if name.is_null() {
        return 0;
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    world(port).and_then(|world| node_of(world, name, PATIENCE)).unwrap_or(0)
}

/// The node of a host by its name, within that many microseconds.
///
/// # Safety
/// A string, and a number that is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_host_name_to_node_id_ex(
    port: *mut GmPort,
    usec: c_uint,
    name: *const c_char,
    node: *mut c_uint,
) -> StatusCode {
    if name.is_null() {
        return Status::InvalidParameter as StatusCode;
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    let found = world(port).and_then(|world| node_of(world, name, Duration::from_micros(usec.into())));
    // SAFETY: the caller's promise.
    answer(found.and_then(|found| unsafe { give(node, found) }))
}

/// A number of six bytes that the node alone has.
///
/// # Safety
/// `unique` has 6 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_node_id_to_unique_id(
    port: *mut GmPort,
    node: c_uint,
    unique: *mut [u8; 6],
) -> StatusCode {
    answer(world(port).and_then(|world| {
        if world.nodes().tasks(node).is_empty() {
            return Err(Status::InvalidParameter);
        }
        let [a, b, c, d] = node.to_be_bytes();
        // SAFETY: the caller's promise.
        unsafe { give(unique, [UNIQUE[0], UNIQUE[1], a, b, c, d]) }
    }))
}

/// The node that has such a number.
///
/// # Safety
/// `unique` has 6 bytes; `node` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_unique_id_to_node_id(
    port: *mut GmPort,
    unique: *const [u8; 6],
    node: *mut c_uint,
) -> StatusCode {
    answer(world(port).and_then(|world| {
        if unique.is_null() {
            return Err(Status::InvalidParameter);
        }
        // SAFETY: the caller's promise.
        let [first, second, a, b, c, d] = unsafe { unique.read() };
        let found = u32::from_be_bytes([a, b, c, d]);
        if [first, second] != UNIQUE || world.nodes().tasks(found).is_empty() {
            return Err(Status::InvalidParameter);
        }
        // SAFETY: the caller's promise.
        unsafe { give(node, found) }
    }))
}

/// The highest number that a node can have.
///
/// # Safety
/// `node` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_max_node_id(port: *mut GmPort, node: *mut c_uint) -> StatusCode {
    // SAFETY: the caller's promise.
    answer(world(port).and_then(|_| unsafe { give(node, HIGHEST) }))
}

/// The highest number of a node.
///
/// # Safety
/// `node` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_max_node_id_in_use(port: *mut GmPort, node: *mut c_uint) -> StatusCode {
    // SAFETY: the caller's promise.
    answer(world(port).and_then(|world| unsafe { give(node, world.nodes().count()) }))
}

/// # Safety
/// `to` is null, or writable.
unsafe fn known(port: *mut GmPort, from: c_uint, to: *mut c_uint) -> StatusCode {
    answer(world(port).and_then(|world| match world.nodes().tasks(from) {
        [] => Err(Status::InvalidParameter),
        // SAFETY: the caller's promise.
        _ => unsafe { give(to, from) },
    }))
}

/// The node by its number in all jobs, which is the same number.
///
/// # Safety
/// `node` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_global_id_to_node_id(
    port: *mut GmPort,
    global: c_uint,
    node: *mut c_uint,
) -> StatusCode {
    // SAFETY: the caller's promise.
    unsafe { known(port, global, node) }
}

/// A node's number in all jobs, which is the same number.
///
/// # Safety
/// `global` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gm_node_id_to_global_id(
    port: *mut GmPort,
    node: c_uint,
    global: *mut c_uint,
) -> StatusCode {
    // SAFETY: the caller's promise.
    unsafe { known(port, node, global) }
}
