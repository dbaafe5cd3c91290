//! LAPI for Rust: one-sided communication between the tasks of a job.
//!
//! A [`Context`] makes this process a task. [`Window`]s are memory that every task puts into and
//! gets from, with remote atomics for numbers; [`TargetCounter`]s tell a task that data has
//! arrived; active messages run closures of their target ([`Port::on_message`]).
//!
//! ```
//! use lapi::{Context, Window};
//!
//! fn main() -> lapi::Result<()> {
//!     let context = Context::open()?;
//!     let (me, tasks) = (context.task(), context.tasks());
//!     let window = Window::<u32>::new(&context, 4)?;
//!     // Each task writes into the window of the next one.
//!     window.put((me + 1) % tasks, 0, &[me, me + 1, me + 2, me + 3])?;
//!     context.gfence()?;
//!     let before = (me + tasks - 1) % tasks;
//!     assert_eq!(window.to_vec(0..4), [before, before + 1, before + 2, before + 3]);
//!     window.free()
//! }
//! ```
//!
//! Two processes that no launcher starts have [`session`]s.
//!
//! A program is started by `poe ./program -procs 4` or another launcher; without one it is a job of
//! one task. Nothing in this interface depends on the addresses of functions or variables, so that
//! it needs no `-no-pie`.
//!
//! # Safety
//!
//! What other tasks write is plain data ([`bytemuck::Pod`]) and is copied out of a window. Memory
//! that an operation uses is borrowed until the operation has ended ([`Window::put`],
//! [`Port::scope`]), or given away ([`Window::put_owned`]). The compiler refuses the rest:
//!
//! ```compile_fail,E0277
//! // Any bytes are not a `bool`: another task could write a 2.
//! let window = lapi::Window::<bool>::new(&lapi::Context::open().unwrap(), 1);
//! ```
//!
//! ```compile_fail,E0597
//! # let context = lapi::Context::open().unwrap();
//! # let window = lapi::Window::<u8>::new(&context, 8).unwrap();
//! context.scope(|scope| {
//!     let mut inner = [0u8; 8];
//!     scope.get(&window, 0, 0, &mut inner) // `inner` ends before the get does
//! });
//! ```
//!
//! ```compile_fail,E0506
//! # let context = lapi::Context::open().unwrap();
//! # let window = lapi::Window::<u8>::new(&context, 8).unwrap();
//! let mut data = [1u8; 8];
//! context.scope(|scope| {
//!     scope.put(&window, 0, 0, &data).unwrap();
//!     data[0] = 2; // the put may not have read it yet
//! });
//! ```
//!
//! ```compile_fail,E0521
//! # let context = lapi::Context::open().unwrap();
//! # let mut window = lapi::Window::<u8>::new(&context, 8).unwrap();
//! let mut kept: Option<&mut [u8]> = None;
//! // The slice ends with the access: then other tasks write there again.
//! window.exclusive(|slice| kept = Some(slice)).unwrap();
//! ```
//!
//! ```compile_fail,E0373
//! # use std::sync::atomic::{AtomicU32, Ordering};
//! # let context = lapi::Context::open().unwrap();
//! let received = AtomicU32::new(0);
//! context.on_message(1, |_, _| {
//!     received.fetch_add(1, Ordering::Relaxed); // may run after this function has returned
//!     lapi::Accept::done()
//! }).unwrap();
//! ```

mod atomic;
mod cells;
mod collectives;
mod context;
mod counter;
mod dgsp;
mod instances;
mod message;
mod owned;
mod port;
mod raw;
mod scope;
pub mod session;
mod vector;
mod window;

pub use atomic::{Atomic, Operation};
pub use collectives::Collectives;
pub use context::{Builder, Context, Failure};
pub use counter::TargetCounter;
pub use dgsp::{Dgsp, DgspBuilder};
pub use message::{Accept, Arrival};
pub use openlapi::abi::lapi_statistics_t as Statistics;
pub use openlapi::error::{Error, Result};
pub use port::{Attribute, HANDLERS, Port};
pub use scope::Scope;
pub use window::Window;

/// LAPI's error numbers by name, for comparisons with [`Error::code`].
pub mod codes {
    pub use openlapi::abi::{
        LAPI_ERR_ADDR_HNDL_RANGE, LAPI_ERR_ALL_HNDL_IN_USE, LAPI_ERR_CKPT, LAPI_ERR_CNTR_VAL,
        LAPI_ERR_DATA_LEN, LAPI_ERR_DGSP_OTHER, LAPI_ERR_DGSP_STACK, LAPI_ERR_HDR_LEN, LAPI_ERR_HNDL_INVALID,
        LAPI_ERR_MEMORY_EXHAUSTED, LAPI_ERR_NO_CONNECTIVITY, LAPI_ERR_OFFSET_LEN, LAPI_ERR_QUERY_TYPE,
        LAPI_ERR_SET_VAL, LAPI_ERR_SHM_SETUP, LAPI_ERR_TGT, LAPI_ERR_TGT_PURGED, LAPI_ERR_TIMEOUT,
        LAPI_ERR_UHDR_LEN, LAPI_ERR_UNKNOWN,
    };
}
