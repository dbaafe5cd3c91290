//! The module `openlapi._core`: LAPI for Python.
//!
//! It calls the C interface of the library that is installed, which [`library`] opens at run time,
//! so that a process has one library whatever else in it uses LAPI, and a profiler that is
//! preloaded sees the calls. Every call into the library releases Python's lock: header handlers
//! take it while they hold the lock of the context ([`message`]).

mod buffer;
mod cell;
mod context;
mod counter;
mod error;
mod fork;
mod interrupt;
mod library;
mod message;
mod open;
mod place;
mod port;
mod report;
mod session;
mod threads;
mod transfer;
mod window;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    threads::prepare(module.py());
    fork::prepare();
    let error = module.py().get_type::<error::Error>();
    // Where programs have it from.
    error.setattr("__module__", "openlapi")?;
    module.add("Error", error)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<context::Context>()?;
    module.add_class::<window::Window>()?;
    module.add_class::<counter::Counter>()?;
    module.add_class::<message::Handler>()?;
    module.add_class::<session::Session>()?;
    module.add_class::<session::Listener>()?;
    module.add_function(wrap_pyfunction!(session::connect, module)?)?;
    module.add_function(wrap_pyfunction!(session::listen, module)?)?;
    module.add_function(wrap_pyfunction!(context::init, module)?)?;
    module.add_function(wrap_pyfunction!(context::close_all, module)?)?;
    module.add_function(wrap_pyfunction!(context::library_path, module)?)?;
    module.add_function(wrap_pyfunction!(context::in_job, module)?)
}
