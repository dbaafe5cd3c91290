//! What a thread of a simulation calls instead of the system.

use super::world::{AHEAD, DEAD, Nanos, On, SEAT};
use crate::base::process::Process;
use std::any::Any;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Whether the calling thread is one of a simulation.
pub(crate) fn active() -> bool {
    SEAT.with_borrow(Option::is_some)
}

/// What [`super::World::keep`] was given, in a thread of a simulation.
pub(crate) fn here<T: Any + Send + Sync>() -> Option<Arc<T>> {
    let model = SEAT.with_borrow(|seat| seat.as_ref().and_then(|(world, ..)| world.model.get().cloned()));
    model.and_then(|model| model.downcast().ok())
}

fn clock() -> Option<Nanos> {
    SEAT.with_borrow(|seat| seat.as_ref().map(|(world, ..)| world.look() + AHEAD.get()))
}

/// The virtual time.
pub(crate) fn now() -> Option<Instant> {
    let at = clock()?;
    SEAT.with_borrow(|seat| seat.as_ref().map(|(world, ..)| world.instant(at)))
}

/// The time in ticks: two for a nanosecond.
pub(crate) fn ticks() -> Option<u64> {
    clock().map(|now| 2 * now)
}

/// Random bits from the seed.
pub(crate) fn random() -> Option<u64> {
    SEAT.with_borrow(|seat| seat.as_ref().map(|(world, ..)| world.secret()))
}

/// Whether the system has no memory for something now.
pub(crate) fn is_short() -> bool {
    SEAT.with_borrow(|seat| seat.as_ref().is_some_and(|(world, ..)| world.is_short()))
}

/// Whether a process of the simulation runs. `None`: the calling thread is not one of a simulation.
pub(crate) fn runs(process: Process) -> Option<bool> {
    SEAT.with_borrow(|seat| seat.as_ref().map(|(world, ..)| world.runs_process(process)))
}

/// Lets the calling thread wait. `None`: it is not one of a simulation. Otherwise whether it was
/// woken before the time was over.
pub(crate) fn block(on: On, at_most: Option<Duration>) -> Option<bool> {
    wait(on, at_most, true)
}

fn wait(on: On, at_most: Option<Duration>, step: bool) -> Option<bool> {
    let (world, number, group) = SEAT.with_borrow(Clone::clone)?;
    let time = at_most.map(|time| time.as_nanos().min(u64::MAX.into()) as Nanos);
    if DEAD.get() || std::thread::panicking() {
        DEAD.set(true);
        AHEAD.set(AHEAD.get() + time.unwrap_or(1_000_000_000).max(1));
        return Some(false);
    }
    let until = time.map(|time| world.now().saturating_add(time.max(1)));
    Some(world.wait(number, group, on, until, step))
}

/// Sleeps. Whether the calling thread is one of a simulation.
pub(crate) fn pause(time: Duration) -> bool {
    block(On::Time, Some(time)).is_some()
}

/// Waits for a word or condition at this address. As [`block`].
pub(crate) fn wait_on(address: usize, at_most: Option<Duration>) -> Option<bool> {
    block(On::Address(address), at_most)
}

/// Wakes threads that wait at this address. `None`: the calling thread is not one of a simulation.
pub(crate) fn wake(address: usize, count: u32) -> Option<bool> {
    SEAT.with_borrow(|seat| seat.as_ref().map(|(world, ..)| world.wake(address, count)))
}

/// Waits until `look` finds a descriptor readable, or the time is over. `None`: the calling thread
/// is not one of a simulation.
pub(crate) fn readable<T>(at_most: Option<Duration>, mut look: impl FnMut() -> (bool, T)) -> Option<T> {
    let (world, ..) = SEAT.with_borrow(Clone::clone)?;
    let until = at_most.map(|time| world.now() + time.as_nanos() as Nanos);
    let mut step = true;
    loop {
        let (found, which) = look();
        let left = until.map(|until| Duration::from_nanos(until.saturating_sub(world.now())));
        if found || left.is_some_and(|left| left.is_zero()) || DEAD.get() {
            return Some(which);
        }
        wait(On::Descriptors, left, std::mem::take(&mut step))?;
    }
}

/// A further thread of the calling thread's group. Only in a thread of a simulation.
pub(crate) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) {
    if let Some((world, _, group)) = SEAT.with_borrow(Clone::clone) {
        world.spawn(group, name, run);
    }
}

/// Lets the timer with this descriptor be readable after a time. Whether the calling thread is one
/// of a simulation.
pub(crate) fn set_timer(timer: RawFd, after: Duration) -> bool {
    let Some((world, _, group)) = SEAT.with_borrow(Clone::clone) else { return false };
    world.set_timer(timer, group, after.as_nanos() as Nanos);
    true
}

/// Whether the time of a timer of the simulation has come. It is not set any more then.
pub(crate) fn timer_is_due(timer: RawFd) -> bool {
    SEAT.with_borrow(|seat| seat.as_ref().is_some_and(|(world, ..)| world.timer_is_due(timer)))
}

/// A timer that may be one of the simulation's. When this is dropped its descriptor is about to be
/// closed: another one gets the number.
pub(crate) struct Timer(pub(crate) RawFd);

impl Drop for Timer {
    fn drop(&mut self) {
        SEAT.with_borrow(|seat| {
            if let Some((world, ..)) = seat {
                world.forget_timer(self.0);
            }
        });
    }
}
