//! LAPI for Fortran: every call of `capi` with its arguments by reference and `ierror` at the end.
//!
//! * `calls`: the table of calls, each with its arguments and by all its names.
//! * `spelling`: how a line of the table becomes eight functions; `by_name`: how they
//!   find each other.
//! * `argument`: the kinds of arguments, and what C gets for each.
//! * `handler`: whether an argument is a function or an integer that holds an address.
//! * `common`: the variables of `lapif.h`; `elsewhere`: those of objects that are opened apart.
//! * `text`, `ddm`: what Fortran and C do differently besides.

mod argument;
mod by_name;
mod common;
mod ddm;
mod elsewhere;
mod handler;
mod text;
mod trampoline;
#[macro_use]
mod spelling;
mod calls;
