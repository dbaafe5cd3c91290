//! The C interface of LAPI: one function for each call; each checks, converts, calls the core once
//! and returns its code.
//!
//! * [`exports`]: every symbol by name, LAPI_X and PLAPI_X.
//! * `calls`: what they do: conversion from C.
//! * `boundary`: the way into the core and back: context, lock, return code, message.
//! * `handles`: the handles, the only global of this crate.

mod boundary;
mod calls;
mod exports;
mod handles;

pub use exports::*;
