//! Threads that run one at a time, on a virtual clock, in an order that a seed decides.
//!
//! A [`World`] has threads, each of which belongs to a group (a process of the simulated job), and
//! events at moments to come. Exactly one thread runs at a time. It runs until it would wait: for a
//! moment, a descriptor, a word, a condition. Then another one that can run is chosen; where there
//! is none, time jumps to the next event or to the end of a wait. So the same seed gives the same
//! run, and a second in which nothing happens costs nothing.
//!
//! What the library calls to read a clock or to wait ([`super::clock`], [`super::poll`],
//! [`super::sync`], [`super::random`]), and by which it looks at other processes
//! ([`super::process`]), comes here when the calling thread is one of a world. In builds that are
//! not tests none of this exists.
//!
//! A group may be [held up](World::pause), or [ended](World::kill): its threads then leave from
//! where they wait, by a panic that says nothing, and neither read a clock that stands still nor
//! wait for anything while they unwind.

mod baton;
mod hooks;
mod world;

pub(crate) use hooks::{
    Timer, active, here, is_short, now, pause, random, readable, runs, set_timer, spawn, ticks, timer_is_due,
    wait_on, wake,
};
pub(crate) use world::{Nanos, World};

mod tests;
