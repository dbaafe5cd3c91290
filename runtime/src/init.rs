//! LAPI_Init and LAPI_Term.

use crate::console;
use crate::diagnostics;
use crate::environment::{self, process_env};
use crate::events::LapiEvents;
use crate::link::{self, link};
use crate::report::{self, thread::ReportConfig};
use crate::udp::Extension;
use openlapi::abi::*;
use openlapi::api::Context;
use openlapi::api::session::{self, Interrupts, MOST_COMPLETION_THREADS, Settings};
use openlapi::base::descriptor::take_standard;
use openlapi::base::thread::ThreadConfig;
use openlapi::base::{limits, loader};
use openlapi::config::{self, Config};
use openlapi::error::{Error, Log, Result};
use openlapi::job::{Identity, Listing};
use std::sync::Arc;

/// What the program gives to LAPI_Init, copied out of lapi_info_t.
#[derive(Clone, Copy)]
pub struct Request {
    /// The future handle.
    pub handle: lapi_handle_t,
    /// The instance, from 0: the tasks of one instance find each other.
    pub instance: usize,
    /// lib_vers.
    pub level: lapi_lib_t,
    /// The error handler.
    pub error_handler: LAPI_err_hndlr_p,
    /// How many threads run completion handlers; less than 1 is 1, and more than 128 are 128.
    pub completion_threads: i32,
    /// How threads are made.
    pub thread_config: ThreadConfig,
    /// LAPI_INTERRUPT_OFF was given in `protocol`.
    pub interrupts: bool,
    /// add_info; the program's until LAPI_Init returns.
    extend: *const lapi_extend_t,
}

impl Request {
    /// From lapi_info_t, for a handle and an instance (from 0).
    ///
    /// # Safety
    /// `lapi_thread_attr` and `add_info` must be null or the program's structures, which are used
    /// until LAPI_Init returns.
    pub unsafe fn new(handle: lapi_handle_t, instance: usize, info: &lapi_info_t) -> Self {
        Self {
            handle,
            instance,
            level: info.lib_vers,
            error_handler: info.err_hndlr,
            completion_threads: info.num_compl_hndlr_thr,
            // SAFETY: the caller's promise.
            thread_config: unsafe { info.lapi_thread_attr.as_ref() }
                .map_or(ThreadConfig::PLAIN, ThreadConfig::of),
            interrupts: info.protocol & LAPI_INTERRUPT_OFF == 0,
            extend: info.add_info,
        }
    }
}

/// Opens a context (man page LAPI_Init): reads the environment, joins the job, starts the
/// threads. On one machine it waits for no other task; over a network it is collective. Returns
/// the device in use.
///
/// # Errors
/// As the man page says; the detail names variable, task or limit.
pub fn init(context: &Arc<Context>, request: &Request) -> Result<lapi_dev_t> {
    let opened = begin(context, request);
    if opened.is_err()
        && let Ok(Identity { task, tasks, key, .. }) = Identity::from_env(&process_env)
    {
        // A process that was to come back from a checkpoint may have failed before it joined.
        link().openings(&key, tasks, request.instance as u32).has_failed(task);
    }
    opened
}

fn begin(context: &Arc<Context>, request: &Request) -> Result<lapi_dev_t> {
    // Before anything is made for reports.
    limits::check_address_space()?;
    take_standard().map_err(|reason| {
        let detail = format!("no descriptor from 0 to 2 may stay closed: {}", limits::explained(reason));
        Error::new(LAPI_ERR_MEMORY_EXHAUSTED, detail)
    })?;
    let identity = identify();
    let config = environment::config()?;
    let identity = identity?;
    if config.info_level >= 1 && identity.task == 0 {
        warn_of_misspelt_variables();
    }
    loader::prepare();
    // From now on a report can show why this takes long.
    let report_config = ReportConfig { signal: config.report_signal, stall: config.stall_seconds };
    if config.backtrace {
        report::crash::install();
    }
    let place = (identity.task, identity.tasks);
    report::thread::enlist(context, request.instance, place, report_config, request.thread_config, link());
    let opened = open(context, request, &config, &identity);
    match &opened {
        Ok(_) => {
            report::thread::ready();
            let waits =
                |tasks: &Option<Vec<u32>>| tasks.as_ref().is_none_or(|tasks| tasks.contains(&identity.task));
            if config.attach.as_ref().is_some_and(waits) {
                report::attach::wait_for_debugger();
            }
        }
        Err(_) => report::thread::dismiss(context, true),
    }
    opened
}

fn open(
    context: &Arc<Context>,
    request: &Request,
    config: &Config,
    identity: &Identity,
) -> Result<lapi_dev_t> {
    // SAFETY: the promise to Request::new.
    let mut listing = unsafe { Extension::new(request.extend, request.handle, request.instance) };
    let settings = Settings {
        config: config.clone(),
        instance: request.instance,
        handle: request.handle,
        level: request.level,
        completion_threads: (request.completion_threads.max(1) as usize).min(MOST_COMPLETION_THREADS),
        thread_config: request.thread_config,
        interrupts: if request.interrupts { Interrupts::On } else { Interrupts::Off },
        addresses: listing.as_mut().map(|listing| listing as &mut dyn Listing),
        log: Log::new(console::log),
        ..Settings::default()
    };
    let events = Arc::new(LapiEvents { error_handler: request.error_handler });
    // Another thread may end the process while this one waits for other tasks.
    link::end_at_exit();
    let opened = session::open(context, identity, settings, link(), events);
    if opened.is_ok() {
        diagnostics::opened(context, config);
    }
    opened
}

/// Closes a context (man page LAPI_Term). Calls of other threads that are inside end with
/// LAPI_ERR_HNDL_INVALID.
///
/// # Errors
/// LAPI_ERR_HNDL_INVALID: the context is closed, or opened again, or another thread is closing it.
pub fn term(context: &Context, handle: lapi_handle_t) -> Result<()> {
    diagnostics::closing(context);
    session::close(context, handle)
}

/// The task that this process is, by its environment; messages name it from now on.
///
/// # Errors
/// The errors of [`Identity::from_env`].
pub fn identify() -> Result<Identity> {
    let identity = Identity::from_env(&process_env)?;
    console::set_task(Some(identity.task));
    Ok(identity)
}

fn warn_of_misspelt_variables() {
    for fault in &environment::files().faults {
        console::log(format_args!("attention: {fault}"));
    }
    for (name, known) in config::misspelt_names(environment::names()) {
        console::log(format_args!(
            "attention: the environment variable {name} has no effect; did you mean {known}?"
        ));
    }
}
