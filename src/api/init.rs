//! LAPI_Init and LAPI_Term.

use super::diagnostics;
use super::events::LapiEvents;
use super::udp::Extension;
use crate::abi::*;
use crate::base::machine::processors;
use crate::base::thread::ThreadConfig;
use crate::config::{self, Config, ShmBulk};
use crate::engine::context::Context;
use crate::engine::context::request::{Policy, Preference};
use crate::engine::context::settings::{Advertised, Options};
use crate::engine::context::waiters::WaitPolicy;
use crate::engine::progress::{closing, completion_threads, interrupt_thread};
use crate::error::{Log, Result};
use crate::job::{self, Hosts, Identity, Joined};
use crate::proto::pieces;
use crate::report::{self, console, thread::ReportConfig};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// With more bytes than this waiting for one target, beside the buffers that the environment gives
/// (MP_REXMIT_BUF_CNT and MP_REXMIT_BUF_SIZE), calls that send to it pause.
const LANE_BYTES: usize = 1 << 20;

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

/// A larger number is a mistake, or was never set; it would take the memory for its stacks.
const MOST_COMPLETION_THREADS: i32 = 128;

/// Opens a context (man page LAPI_Init): reads the environment, joins the job, starts the
/// threads. On one machine it waits for no other task; over a network it is collective. Returns
/// the device in use.
///
/// # Errors
/// As the man page says; the detail names variable, task or limit.
pub fn init(context: &Arc<Context>, request: &Request) -> Result<lapi_dev_t> {
    let identity = identify();
    let config = Config::of_process()?;
    let identity = identity?;
    if config.info_level >= 1 && identity.task == 0 {
        warn_of_misspelt_variables();
    }
    // From now on a report can show why this takes long.
    let report_config = ReportConfig { signal: config.report_signal, stall: config.stall_seconds };
    if config.backtrace {
        report::crash::install();
    }
    let place = (identity.task, identity.tasks);
    report::thread::enlist(
        context,
        request.instance,
        place,
        report_config,
        request.thread_config,
        &config::process_env,
    );
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
    let listing = listing.as_mut().map(|listing| listing as &mut dyn job::Listing);
    let log = Log::new(console::log);
    let joined = job::join(config, identity, request.instance, request.thread_config, listing, &log)?;
    let Joined { transport, device, hosts, notes, networks, replaces, addresses } = joined;
    if config.info_level >= 2 && identity.task == 0 {
        console::log(format_args!(
            "OpenLAPI {}: {} tasks, transport {}, found by {}",
            config::build::identity(),
            identity.tasks,
            transport.properties().name,
            identity.source
        ));
        notes.iter().for_each(|note| console::log(format_args!("{note}")));
        networks.iter().for_each(|line| console::log(format_args!("network: {line}")));
    }
    let settings = &context.settings;
    settings.error_check.store(false, Relaxed);
    settings.interrupts.store(request.interrupts, Relaxed);
    settings.timeout.store(900, Relaxed);
    settings.ack_threshold.store(config.ack_thresh as i32, Relaxed);
    settings.info_level.store(config.info_level as i32, Relaxed);
    let networks = if identity.task == 0 { networks } else { Vec::new() };
    let options = Options { addresses, networks, log, ..options(config, identity, hosts, replaces, request) };
    context.open(request.handle, options, transport)?;
    let threads = request.completion_threads.clamp(1, MOST_COMPLETION_THREADS) as usize;
    let started = completion_threads::start(context, threads, request.thread_config)
        .and_then(|()| interrupt_thread::start(context, request.thread_config));
    if let Err(error) = started {
        closing::stop(context);
        return Err(error);
    }
    diagnostics::opened(context, config);
    Ok(device)
}

/// Closes a context (man page LAPI_Term). Calls of other threads that are inside end with
/// LAPI_ERR_HNDL_INVALID.
///
/// # Errors
/// LAPI_ERR_HNDL_INVALID: the context is closed, or another thread is closing it.
pub fn term(context: &Context) -> Result<()> {
    diagnostics::closing(context);
    closing::close(context)
}

fn options(config: &Config, identity: &Identity, hosts: Hosts, replaces: bool, request: &Request) -> Options {
    let processors = processors();
    let here = hosts.here().len() as u32;
    let crowded = here > processors;
    Options {
        me: identity.task,
        tasks: identity.tasks,
        hosts,
        copy_limit: config.buf_cp_size as usize,
        buffers: config.rexmit_limit.map_or(usize::MAX, |limit| limit as usize),
        lane_bytes: LANE_BYTES.saturating_add(
            config
                .rexmit_limit
                .map_or(0, |count| (count as usize).saturating_mul(config.buf_cp_size as usize)),
        ),
        bulk: Policy {
            by_key: config.use_bulk_xfer,
            minimum: usize::try_from(config.bulk_min_msg_size).unwrap_or(usize::MAX),
            preference: match config.shm_bulk {
                ShmBulk::Auto => Preference::Auto,
                ShmBulk::Pipeline => Preference::Packets,
                ShmBulk::Attach => Preference::Attach,
            },
            crowded,
            batch: pieces::MOST,
        },
        level: request.level,
        replaces,
        addresses: None,
        networks: Vec::new(),
        give_up: !config.no_timeout,
        wait_policy: WaitPolicy::new(here, processors, config.spin),
        stall: Duration::from_secs(config.stall_seconds.into()),
        log: Log::none(),
        events: Arc::new(LapiEvents { error_handler: request.error_handler }),
        advertised: Advertised {
            rexmit_buffers: config.rexmit_buf_cnt as i32,
            rexmit_size: config.rexmit_buf_size as i32,
            bulk_minimum: config.bulk_min_msg_size.min(i32::MAX as u64) as i32,
        },
    }
}

/// The task that this process is, by its environment; messages name it from now on.
pub fn identify() -> Result<Identity> {
    let identity = Identity::from_env(&config::process_env)?;
    console::set_task(Some(identity.task));
    Ok(identity)
}

fn warn_of_misspelt_variables() {
    for fault in &config::files::files().faults {
        console::log(format_args!("attention: {fault}"));
    }
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for (name, known) in config::misspelt_names(names) {
        console::log(format_args!(
            "attention: the environment variable {name} has no effect; did you mean {known}?"
        ));
    }
}
