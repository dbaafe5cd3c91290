//! The C interface of LAPI: one function per call; each checks, converts, calls the core once and returns its code.
//!
//! * [`exports`]: every symbol by name, LAPI_X and PLAPI_X.
//! * `calls`: what they do: conversion from C.
//! * `table`: the handles, the only global of the library.

mod calls;
mod exports;
mod table;

pub use exports::*;
