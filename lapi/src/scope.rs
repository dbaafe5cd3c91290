//! Several operations at a time, with borrowed memory: their end is waited for at the
//! end of a scope.

use crate::counter::TargetCounter;
use crate::message::message_command;
use crate::port::{Counters, Port, Until};
use crate::window::{Window, get_command, put_command};
use bytemuck::Pod;
use openlapi::abi::lapi_cntr_t;
use openlapi::api::{Held, active_message, put_get};
use openlapi::error::Result;
use openlapi_runtime::request;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// What [`Port::scope`] passes to its closure: starts operations that may be under way until
/// the scope ends.
pub struct Scope<'scope, 'env: 'scope> {
    port: &'env Port,
    /// Each operation with its counter, which stays where it is.
    started: RefCell<Vec<(u32, Box<Cell<lapi_cntr_t>>)>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl Port {
    /// Calls `run`, and returns when all operations that it has started have ended: then their
    /// memory may be used again, and that of gets has the data. Puts are in place after a fence.
    ///
    /// The operations borrow their memory for the scope. It ends in no other way than by waiting
    /// for them, even when `run` panics.
    ///
    /// # Errors
    /// That of the first operation that has failed. `LAPI_ERR_UNKNOWN`: called in a header handler.
    pub fn scope<'env, R>(
        &'env self,
        run: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    ) -> Result<R> {
        drop(self.enter_to_wait("a scope")?);
        let scope = Scope { port: self, started: RefCell::default(), scope: PhantomData, env: PhantomData };
        // No `Drop` of the scope instead: its own borrow may last as long as the scope.
        let result = catch_unwind(AssertUnwindSafe(|| run(&scope)));
        let ended = scope.finish();
        match result {
            Ok(result) => ended.map(|()| result),
            Err(panic) => resume_unwind(panic),
        }
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Starts [`Window::put`].
    ///
    /// # Errors
    /// The errors of [`Window::put`]. `LAPI_ERR_HNDL_INVALID`: the window belongs to
    /// another context.
    pub fn put<T: Pod + Send + Sync>(
        &'scope self,
        window: &Window<T>,
        task: u32,
        at: usize,
        data: &'scope [T],
    ) -> Result<()> {
        self.put_with(window, task, at, data, None)
    }

    /// Starts [`Window::put_notify`].
    ///
    /// # Errors
    /// The errors of [`Self::put`].
    pub fn put_notify<T: Pod + Send + Sync>(
        &'scope self,
        window: &Window<T>,
        task: u32,
        at: usize,
        data: &'scope [T],
        counter: &TargetCounter,
    ) -> Result<()> {
        self.put_with(window, task, at, data, Some(counter))
    }

    fn put_with<T: Pod + Send + Sync>(
        &'scope self,
        window: &Window<T>,
        task: u32,
        at: usize,
        data: &'scope [T],
        counter: Option<&TargetCounter>,
    ) -> Result<()> {
        self.port.check_same(window.port(), "the window")?;
        let remote = window.place(task, at, data.len())?;
        let counter = window.counter(task, counter)?;
        // SAFETY: the data is borrowed until the scope has ended, and the place is within the
        // target's window.
        unsafe {
            self.start(task, |held, counters| {
                window.check_life(held, task)?;
                put_get::put(held, &request::put(&put_command(task, remote, data, counters, counter)))
            })
        }
    }

    /// Starts [`Window::get`].
    ///
    /// # Errors
    /// The errors of [`Self::put`].
    pub fn get<T: Pod + Send + Sync>(
        &'scope self,
        window: &Window<T>,
        task: u32,
        at: usize,
        into: &'scope mut [T],
    ) -> Result<()> {
        self.port.check_same(window.port(), "the window")?;
        let remote = window.place(task, at, into.len())?;
        // SAFETY: the memory is borrowed until the scope has ended, any bytes are a `T`, and the
        // place is within the target's window.
        unsafe {
            self.start(task, |held, counters| {
                window.check_life(held, task)?;
                put_get::get(held, &request::get(&get_command(task, remote, into, counters)))
            })
        }
    }

    /// Starts [`Port::send`].
    ///
    /// # Errors
    /// The errors of [`Port::send`].
    pub fn send(
        &'scope self,
        task: u32,
        handler: u16,
        header: &'scope [u8],
        data: &'scope [u8],
    ) -> Result<()> {
        let command = message_command(task, handler, header, data)?;
        // SAFETY: header and data are borrowed until the scope has ended.
        unsafe {
            self.start(task, |held, counters| {
                let command = counters.of_message(command);
                active_message::amsend(held, &request::active_message(&command))
            })
        }
    }

    /// # Safety
    /// The conditions of [`Port::perform`] hold, with memory that is borrowed for the scope.
    unsafe fn start(
        &self,
        task: u32,
        start: impl FnOnce(&mut Held<'_>, Counters) -> Result<()>,
    ) -> Result<()> {
        let cntr = Box::new(Cell::new(lapi_cntr_t::new(0)));
        let at = cntr.as_ptr();
        // SAFETY: the counter's box is kept until `finish` has waited for it; the caller's promise.
        unsafe { self.port.start(task, at, Until::Reusable, start)? };
        self.started.borrow_mut().push((task, cntr));
        Ok(())
    }
}

impl Scope<'_, '_> {
    fn finish(&self) -> Result<()> {
        let mut outcome = Ok(());
        for (task, cntr) in self.started.take() {
            // SAFETY: started by `start`, once.
            let ended = unsafe { self.port.finish(task, cntr.as_ptr()) };
            outcome = outcome.and(ended);
        }
        outcome
    }
}
