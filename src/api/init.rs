//! LAPI_Init and LAPI_Term.

use crate::abi::*;
use crate::base::asymmetric_barrier;
use crate::base::machine::processors;
use crate::base::thread::ThreadConfig;
use crate::config::{self, Config, ShmAttach, ShmBulk, UseShm};
use crate::engine::context::request::{Policy, Preference};
use crate::engine::context::settings::{Advertised, Options};
use crate::engine::context::waiters::WaitPolicy;
use crate::engine::context::{Context, Core, Held};
use crate::engine::progress::wait::wait_until;
use crate::engine::progress::{completion_threads, dispatcher, interrupt_thread, lost_peers};
use crate::error::{Error, Result};
use crate::job::{self, Identity, Lobby, Member};
use crate::report::{self, thread::ReportConfig};
use crate::transport::Transport;
use crate::transport::mem::{self, MemOptions};
use crate::transport::shm::remote::{self, CrossMemory};
use crate::transport::shm::{Own, PeerParts, ShmTransport};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How long LAPI_Term tries to get rid of what was sent and has found no room.
const FLUSH: Duration = Duration::from_secs(5);

/// What the program says at LAPI_Init, copied out of lapi_info_t.
#[derive(Clone, Copy)]
pub struct Request {
    /// The handle to be.
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

/// How many rounds of the dispatcher LAPI_Term makes at most for what has come in.
const LAST_ROUNDS: u32 = 10_000;

/// Opens a context (man page LAPI_Init): reads the environment, meets the other tasks, starts the threads. The answer
/// is the device in use.
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
    // From now on it can be asked why this takes so long.
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
    let joined = join(config, identity, request.instance)?;
    if config.info_level >= 1 && identity.task == 0 && !joined.same_map {
        crate::error::log(format_args!(
            "attention: the tasks' address maps differ. A program that uses addresses of one task in another \
             without LAPI_Address_init needs them to agree: start it by poe, and link it with -no-pie (mpcc_r does)."
        ));
    }
    if config.info_level >= 2 && identity.task == 0 {
        crate::error::log(format_args!(
            "OpenLAPI {}: {} tasks, transport {}, found by {}",
            config::build::identity(),
            identity.tasks,
            joined.transport.name(),
            identity.source
        ));
    }
    let options = options(config, identity, request);
    let mut core = Core::new(options, joined.transport);
    if joined.came_back {
        core.awaited = (0..identity.tasks).filter(|&task| task != identity.task).collect();
        core.joined_at = Some(0);
        lost_peers::welcome(&mut core);
    }
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
    Ok(joined.device)
}

/// Closes a context (man page LAPI_Term). Calls of other threads that are inside end with LAPI_ERR_HNDL_INVALID.
///
/// # Errors
/// LAPI_ERR_HNDL_INVALID: the context is closed, or another thread is closing it.
pub fn term(context: &Context) -> Result<()> {
    let mut held = context.enter()?;
    let nested = held.nested();
    if !nested {
        give_up_the_awaited(held.core());
        let until = Instant::now() + FLUSH;
        // What finds no room in all this time never will: the peer does not look any more.
        let _ = wait_until(&mut held, "LAPI_Term", |core| {
            let idle = !core.is_sending();
            (idle || Instant::now() >= until).then_some(())
        });
        held.unlocked(|| context.completions.settle(FLUSH));
        serve_last(&mut held);
    }
    if held.core().closing {
        return Err(Error::new(LAPI_ERR_HNDL_INVALID, "another thread is ending the handle"));
    }
    held.core().closing = true;
    held.core().news = true;
    context.end_conditions(&mut held);
    if nested {
        // A handler ends its own context: nothing can be waited for, since this very thread is in the middle of a call.
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

/// What waits for tasks that are not there is not waited for.
fn give_up_the_awaited(core: &mut Core) {
    for task in std::mem::take(&mut core.awaited) {
        lost_peers::abandon(core, task, LAPI_ERR_TGT_PURGED);
    }
}

/// Answers what has come in until now: a peer's fence may wait for it.
fn serve_last(held: &mut Held<'_>) {
    for _ in 0..LAST_ROUNDS {
        if !dispatcher::turn(held) {
            return;
        }
    }
}

/// Stops the threads, tells the peers, and takes the core out.
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

/// How the tasks came together.
struct Joined {
    transport: Box<dyn Transport>,
    device: lapi_dev_t,
    /// The same code and data stand at the same addresses in all tasks.
    same_map: bool,
    /// The job runs already, and has let this task come back to it.
    came_back: bool,
}

fn join(config: &Config, identity: &Identity, instance: usize) -> Result<Joined> {
    if identity.tasks == 1 {
        let alone = mem::network(1, MemOptions::default()).pop();
        let transport =
            alone.ok_or_else(|| Error::new(LAPI_ERR_UNKNOWN, "a job of one task without a task"))?;
        let transport = Box::new(transport);
        return Ok(Joined { transport, device: LAPI_SELF_DEV, same_map: true, came_back: false });
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
    let secret = config.job_secret.as_ref().map(|secret| secret.as_bytes());
    let hello = Hello::of_this_task(identity.tasks);
    let lobby = Box::new(Lobby::new(identity, instance as u32, secret));
    let own = Own::create(identity.tasks)?;
    let mut transport = ShmTransport::new(identity.task, identity.tasks, own, hello.asymmetric, Some(lobby));
    let own = transport.own().map(|fd| fd.try_clone_to_owned());
    let own = own.into_iter().collect::<io::Result<Vec<_>>>().map_err(|reason| {
        Error::new(LAPI_ERR_SHM_SETUP, format!("a descriptor cannot be copied: {reason}"))
    })?;
    let own: Vec<_> = own.iter().map(AsFd::as_fd).collect();
    let met = job::meet(
        identity,
        instance as u32,
        secret,
        &hello.encode(),
        &own,
        config.init_timeout,
        &mut || transport.come_back(|| attach_later(config, identity)),
    )?;
    let Some(members) = met else {
        // Who has let this task come back is to look after addresses itself.
        let transport = Box::new(transport);
        return Ok(Joined { transport, device: LAPI_SHM_DEV, same_map: true, came_back: true });
    };
    let hellos =
        members.iter().map(|member| Hello::decode(&member.blob, member.task)).collect::<Result<Vec<_>>>()?;
    let attach = attach_to(config, identity, &members, &hellos);
    let asymmetric = hellos.iter().all(|hello| hello.asymmetric);
    let same_map =
        hellos.iter().all(|other| other.program == hello.program && other.library == hello.library);
    let parts = members.into_iter().map(|member| parts(member, identity.task)).collect::<Result<Vec<_>>>()?;
    transport.join(parts, asymmetric, attach)?;
    Ok(Joined { transport: Box::new(transport), device: LAPI_SHM_DEV, same_map, came_back: false })
}

/// Copies across address spaces for a task that comes back, which learns its peers' processes one by one.
fn attach_later(config: &Config, identity: &Identity) -> Option<CrossMemory> {
    let denied = config.shm_attach == ShmAttach::Deny;
    let wanted = config.shm_attach != ShmAttach::No;
    wanted.then(|| CrossMemory::new(vec![0; identity.tasks as usize], denied))
}

fn parts(member: Member, me: u32) -> Result<Option<PeerParts>> {
    if member.task == me {
        return Ok(None);
    }
    let mut fds = member.fds.into_iter();
    match (fds.next(), fds.next()) {
        (Some(file), Some(event)) => Ok(Some(PeerParts { pid: member.pid, file, event })),
        _ => {
            let detail = format!("task {} has not passed its shared memory", member.task);
            Err(Error::new(LAPI_ERR_SHM_SETUP, detail))
        }
    }
}

/// Copies across address spaces, if they are wanted and a first one shows that they work.
fn attach_to(
    config: &Config,
    identity: &Identity,
    members: &[Member],
    hellos: &[Hello],
) -> Option<CrossMemory> {
    if config.shm_attach == ShmAttach::No {
        return None;
    }
    let pids = members.iter().map(|member| member.pid).collect();
    let denied = config.shm_attach == ShmAttach::Deny;
    let attach = CrossMemory::new(pids, denied);
    let peer = (identity.task + 1) % identity.tasks;
    match attach.probe(peer, hellos[peer as usize].landmark) {
        Ok(()) => Some(attach),
        Err(reason) => {
            if config.info_level >= 2 {
                crate::error::log(format_args!(
                    "copies across address spaces are not possible here ({reason}); packets are used"
                ));
            }
            None
        }
    }
}

fn options(config: &Config, identity: &Identity, request: &Request) -> Options {
    let processors = processors();
    let crowded = identity.tasks > processors;
    Options {
        me: identity.task,
        tasks: identity.tasks,
        copy_limit: config.buf_cp_size as usize,
        bulk: Policy {
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

/// What a task says of itself when the tasks meet.
struct Hello {
    asymmetric: bool,
    landmark: u64,
    program: u64,
    library: u64,
}

impl Hello {
    const VERSION: u64 = 1;

    fn of_this_task(tasks: u32) -> Self {
        Self {
            asymmetric: asymmetric_barrier::pays_off(tasks),
            landmark: remote::landmark(),
            // SAFETY: getauxval only answers a number: where the program's headers are.
            program: unsafe { libc::getauxval(libc::AT_PHDR) } as u64,
            library: Self::of_this_task as *const () as u64,
        }
    }

    fn encode(&self) -> Vec<u8> {
        [Self::VERSION, self.asymmetric.into(), self.landmark, self.program, self.library]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect()
    }

    fn decode(blob: &[u8], task: u32) -> Result<Self> {
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        let words: Vec<u64> = blob.chunks(8).map(word).collect();
        match *words {
            [Self::VERSION, asymmetric, landmark, program, library] => {
                Ok(Self { asymmetric: asymmetric != 0, landmark, program, library })
            }
            _ => Err(Error::new(
                LAPI_ERR_SHM_SETUP,
                format!("task {task} uses another version of the library; all tasks must use the same"),
            )),
        }
    }
}
