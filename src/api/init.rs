//! LAPI_Init and LAPI_Term.

use crate::abi::*;
use crate::base::asymmetric_barrier;
use crate::base::machine::processors;
use crate::base::sync::{Condvar, Mutex};
use crate::base::thread::{self, ThreadConfig};
use crate::config::{self, Config, ShmAttach, ShmBulk, UseShm};
use crate::engine::context::request::{Policy, Preference};
use crate::engine::context::settings::{Advertised, Options};
use crate::engine::context::waiters::WaitPolicy;
use crate::engine::context::{Context, Core, Held};
use crate::engine::progress::wait::wait_until;
use crate::engine::progress::{completion_threads, dispatcher, interrupt_thread, lost_peers};
use crate::engine::transfer::flow;
use crate::error::{Error, Result};
use crate::job::{Connections, Identity, Openings, connect};
use crate::report::{self, thread::ReportConfig};
use crate::transport::mem::{self, MemOptions};
use crate::transport::shm::remote::{self, CrossMemory};
use crate::transport::shm::{Own, ShmTransport};
use crate::transport::{PeerState, Transport};
use crate::wire::hello::Hello;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
/// With more bytes than this waiting for one target, beside the buffers that the environment gives (MP_REXMIT_BUF_CNT and
/// MP_REXMIT_BUF_SIZE), calls that send to it pause.
const LANE_BYTES: usize = 1 << 20;

/// How long LAPI_Term tries to send what has found no room.
const FLUSH: Duration = Duration::from_secs(5);

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
    pub recipe: ThreadConfig,
    /// LAPI_INTERRUPT_OFF was given in `protocol`.
    pub interrupts: bool,
}

impl Request {
    /// From lapi_info_t, for a handle and an instance (from 0).
    ///
    /// # Safety
    /// `lapi_thread_attr` must be null or the program's structure, which is used until LAPI_Init returns.
    pub unsafe fn new(handle: lapi_handle_t, instance: usize, info: &lapi_info_t) -> Self {
        Self {
            handle,
            instance,
            level: info.lib_vers,
            error_handler: info.err_hndlr,
            completion_threads: info.num_compl_hndlr_thr,
            // SAFETY: the caller's promise.
            recipe: unsafe { info.lapi_thread_attr.as_ref() }.map_or(ThreadConfig::PLAIN, ThreadConfig::of),
            interrupts: info.protocol & LAPI_INTERRUPT_OFF == 0,
        }
    }
}

/// A larger number is a mistake, or was never set; it would take the memory for its stacks.
const MOST_COMPLETION_THREADS: i32 = 128;

/// How many rounds of the dispatcher LAPI_Term makes at most for what has arrived.
const LAST_ROUNDS: u32 = 10_000;

/// Opens a context (man page LAPI_Init): reads the environment, begins to listen for other tasks, starts the threads. It waits
/// for no other task. Returns the device in use.
///
/// # Errors
/// As the man page says; the detail names variable, task or limit.
pub fn init(context: &Arc<Context>, request: &Request) -> Result<lapi_dev_t> {
    let identity = identify();
    let config = Config::from_env(&config::process_env)?;
    let identity = identity?;
    if config.info_level >= 1 && identity.task == 0 {
        warn_of_misspelt_variables();
    }
    // From now on a report can show why this takes long.
    let wishes = ReportConfig { signal: config.report_signal, stall: config.stall_seconds };
    let place = (identity.task, identity.tasks);
    report::thread::enlist(context, request.instance, place, wishes, request.recipe, &config::process_env);
    let opened = open(context, request, &config, &identity);
    match &opened {
        Ok(_) => report::thread::ready(),
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
    let (transport, device) = join(config, identity, request.instance, request.recipe)?;
    if config.info_level >= 2 && identity.task == 0 {
        crate::error::log(format_args!(
            "OpenLAPI {}: {} tasks, transport {}, found by {}",
            config::build::identity(),
            identity.tasks,
            transport.name(),
            identity.source
        ));
    }
    let core = Core::new(options(config, identity, request), transport);
    let settings = &context.settings;
    settings.error_check.store(false, Relaxed);
    settings.interrupts.store(request.interrupts, Relaxed);
    settings.timeout.store(900, Relaxed);
    settings.ack_threshold.store(config.ack_thresh as i32, Relaxed);
    settings.info_level.store(config.info_level as i32, Relaxed);
    context.open(request.handle, core)?;
    let threads = request.completion_threads.clamp(1, MOST_COMPLETION_THREADS) as usize;
    let started = completion_threads::start(context, threads, request.recipe)
        .and_then(|()| interrupt_thread::start(context, request.recipe));
    if let Err(error) = started {
        end(context);
        return Err(error);
    }
    Ok(device)
}

/// Closes a context (man page LAPI_Term). Calls of other threads that are inside end with LAPI_ERR_HNDL_INVALID.
///
/// # Errors
/// LAPI_ERR_HNDL_INVALID: the context is closed, or another thread is closing it.
pub fn term(context: &Context) -> Result<()> {
    let mut held = context.enter()?;
    let nested = held.nested();
    held.core().ending = true;
    if !nested {
        give_up_the_awaited(held.core());
        let until = Instant::now() + FLUSH;
        // What finds no room in all this time never will: the peer has stopped polling.
        let _ = wait_until(&mut held, "LAPI_Term", |core| {
            let idle = !core.is_sending();
            let late = || Instant::now() >= until && !awaits_a_late_task(core);
            (idle || late()).then_some(())
        });
        held.unlocked(|| context.completions.settle(FLUSH));
        flow::release_all(held.core());
        serve_last(&mut held);
    }
    if held.core().closing {
        return Err(Error::new(LAPI_ERR_HNDL_INVALID, "another thread is ending the handle"));
    }
    held.core().closing = true;
    held.core().news = true;
    context.end_conditions(&mut held);
    if nested {
        // A handler ends its own context: nothing can be waited for, since this thread itself is in the middle of a call.
        context.notifier.dismiss();
        context.completions.dismiss();
        report::thread::dismiss(context, false);
        held.core().transport.close();
        context.retire();
        return Ok(());
    }
    while !held.core().inside.is_empty() {
        held.core().news = true;
        held.unlocked(|| std::thread::sleep(Duration::from_micros(50)));
    }
    drop(held);
    end(context);
    Ok(())
}

/// Whether something is to be sent to a task that has not called LAPI_Init yet: as long as it may come, nothing of it is lost.
fn awaits_a_late_task(core: &Core) -> bool {
    core.outbox.waiting_for().any(|peer| core.transport.state(peer) == PeerState::Connecting)
}

/// Data for tasks that have not connected is not waited for.
fn give_up_the_awaited(core: &mut Core) {
    for task in core.peers.give_up_rejoining() {
        lost_peers::abandon(core, task, LAPI_ERR_TGT_PURGED);
    }
}

/// Serves what has arrived until now: a peer's fence may wait for it.
fn serve_last(held: &mut Held<'_>) {
    for _ in 0..LAST_ROUNDS {
        if !dispatcher::turn(held) {
            return;
        }
    }
}

/// Stops the threads, notifies the peers, and takes the core out.
fn end(context: &Context) {
    report::thread::dismiss(context, true);
    context.notifier.stop();
    context.completions.stop();
    let core = context.enter_closing().and_then(|mut held| {
        held.core().closing = true;
        context.end_conditions(&mut held);
        held.core().transport.close();
        context.close(held)
    });
    drop(core);
}

/// The transport to the other tasks, and the device in use.
fn join(
    config: &Config,
    identity: &Identity,
    instance: usize,
    recipe: ThreadConfig,
) -> Result<(Box<dyn Transport>, lapi_dev_t)> {
    if identity.tasks == 1 {
        let alone = mem::network(1, MemOptions::default()).pop();
        let transport =
            alone.ok_or_else(|| Error::new(LAPI_ERR_UNKNOWN, "a job of one task without a task"))?;
        return Ok((Box::new(transport), LAPI_SELF_DEV));
    }
    if config.use_shm == UseShm::No {
        let detail = "LAPI_USE_SHM=no with more than one task: no network transport is built yet";
        return Err(Error::new(LAPI_ERR_CSS_LOAD_FAILED, detail));
    }
    if !identity.is_on_one_machine() {
        let here = identity.common_count();
        let detail = format!("only {here} of {} tasks are on this machine", identity.tasks);
        return Err(match config.use_shm {
            UseShm::Only => Error::new(LAPI_ERR_SHM_SETUP, format!("{detail}, and LAPI_USE_SHM=only")),
            _ => Error::new(
                LAPI_ERR_CSS_LOAD_FAILED,
                format!("{detail}, and no network transport is built yet"),
            ),
        });
    }
    allow_open_files(identity.tasks);
    let hello = hello(identity.tasks);
    let asymmetric = hello.asymmetric;
    let denied = config.shm_attach == ShmAttach::Deny;
    let wanted = config.shm_attach != ShmAttach::No;
    let memory = wanted.then(|| CrossMemory::new(identity.tasks, denied, config.info_level >= 2));
    let (own, site) = Own::create(identity.task, identity.tasks)?;
    let settings = connect::Settings {
        identity,
        instance: instance as u32,
        secret: config.job_secret.as_ref().map(|secret| secret.as_bytes()),
        openings: Openings::from_env(&config::process_env, &identity.key, identity.tasks, instance as u32),
        hello,
        patience: config.init_timeout,
        info_level: config.info_level as u8,
        hint: hint(identity),
    };
    let connections = Connections::open(settings, site, |service| listen(service, recipe))?;
    let transport = ShmTransport::new(own, asymmetric, memory, Box::new(connections));
    Ok((Box::new(transport), LAPI_SHM_DEV))
}

/// Starts the listener's thread, and returns what waits for its end.
fn listen(service: connect::Service, recipe: ThreadConfig) -> Result<Box<dyn FnOnce() + Send>> {
    let ready = Arc::new((Mutex::new(false), Condvar::new()));
    let known = ready.clone();
    let thread = thread::spawn("lapi-conn", recipe, move || {
        // The C library makes an arena for the thread now, and not later, when the program's own memory would be moved by it.
        drop(std::hint::black_box(Box::new([0_u8; 64])));
        *known.0.lock() = true;
        known.1.notify_all();
        service.run();
    })?;
    let mut is_ready = ready.0.lock();
    while !*is_ready {
        ready.1.wait(&mut is_ready);
    }
    drop(is_ready);
    Ok(Box::new(move || thread.join()))
}

/// Each task that this one connects with takes two descriptors, and more for a moment. A program that uses select(2) is left
/// the limit that it knows as long as that is enough.
fn allow_open_files(tasks: u32) {
    let needed = 4 * u64::from(tasks) + 64;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|soft| soft < needed) {
        limit.current = limit.maximum;
        // If it fails, connecting reports that.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

/// The possible mistake when another task is not found.
fn hint(identity: &Identity) -> Option<String> {
    let by_hand = config::process_env("MP_CHILD").is_some() && config::process_env("MP_PARTITION").is_none();
    by_hand.then(|| {
        format!(
            "MP_PARTITION is not set; tasks that are started by hand from several shells need the same value of it in \
             all of them ({} tasks)",
            identity.tasks
        )
    })
}

/// What this task sends about itself when it connects.
fn hello(tasks: u32) -> Hello {
    let landmark = remote::landmark();
    Hello {
        incarnation: remote::random(),
        landmark: landmark.address,
        mark: landmark.mark,
        asymmetric: asymmetric_barrier::pays_off(tasks),
        // SAFETY: getauxval only returns a number: where the program's headers are.
        maps: [unsafe { libc::getauxval(libc::AT_PHDR) } as u64, hello as *const () as u64],
        ..Hello::default()
    }
}

fn options(config: &Config, identity: &Identity, request: &Request) -> Options {
    let processors = processors();
    let crowded = identity.tasks > processors;
    Options {
        me: identity.task,
        tasks: identity.tasks,
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
        },
        level: request.level,
        give_up: !config.no_timeout,
        patience: WaitPolicy::new(identity.tasks, processors, config.spin),
        error_handler: request.error_handler,
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
    crate::error::set_task(Some(identity.task));
    Ok(identity)
}

fn warn_of_misspelt_variables() {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for (name, known) in config::misspelt_names(names) {
        crate::error::log(format_args!(
            "attention: the environment variable {name} has no effect; did you mean {known}?"
        ));
    }
}
