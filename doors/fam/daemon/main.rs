//! `openfamd`: has memory that outlives programs, and keeps its names and rights. See openfamd(8).

mod backup;
mod control;
mod data;
mod guest;
mod keeper;
mod listen;
mod log;
mod marks;
mod memory;
mod opened;
mod options;
mod parts;
mod rights;
mod servers;
mod space;
mod store;
mod work;

use backup::{MOVERS, Mover};
use control::Control;
use data::{Bell, Data, Newcomers};
use fam::{FamError, Result};
use keeper::Keeper;
use listen::Opening;
use memory::Memory;
use options::{Options, Plan, USAGE};
use servers::Servers;
use std::io::Write;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use store::Store;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let options = match options::parse(&words) {
        Ok(options) => options,
        Err(failure) => {
            eprintln!("openfamd: {failure}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    if options.help || options.version {
        let text = if options.help { USAGE } else { concat!("openfamd ", env!("CARGO_PKG_VERSION"), "\n") };
        let _ = std::io::stdout().write_all(text.as_bytes());
        return ExitCode::SUCCESS;
    }
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            log::line(&failure.text);
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let plan = options::plan(options, &|name| std::env::var(name).ok())?;
    plan.ignored.iter().for_each(|key| log::line(&format!("{key} has no meaning here")));
    if options.torn {
        return list_torn(&plan);
    }
    let signals = Signals::block()?;
    // Names and rights in the metadata's file are not for others.
    rustix::process::umask(rustix::fs::Mode::from_bits_truncate(0o077));
    // Each session and each region has descriptors.
    openlapi::base::open_files::allow(1 << 16);
    let (memory, bell, data) = begin(plan)?;
    // The one that has started the daemon may wait for this line.
    let _ = writeln!(std::io::stdout(), "ready");
    signals.wait();
    // What a program was told to be done is on the disk then.
    bell.end();
    let _ = data.join();
    memory.sync();
    Ok(())
}

fn list_torn(plan: &Plan) -> Result<()> {
    let Some(folder) = &plan.folder else { return Ok(()) };
    for (path, ranges) in parts::torn(folder)? {
        for range in ranges {
            println!("{}: item {}: {} bytes at {}", path.display(), range.item, range.length, range.offset);
        }
    }
    Ok(())
}

/// Starts the daemon's threads.
fn begin(plan: Plan) -> Result<(Arc<Memory>, Bell, JoinHandle<()>)> {
    let failed = |error: std::io::Error| FamError::Resource.because(error.to_string());
    let (bell, newcomers) = (Bell::new().map_err(failed)?, Newcomers::default());
    let (work, to_do) = mpsc::channel();
    let (orders, to_move) = mpsc::channel();
    let data = Data::new(bell.clone(), newcomers.clone(), work.clone()).map_err(failed)?;
    let listeners = listen::listen(&plan.listens)?;
    let ring = bell.clone();
    let memory = Arc::new(Memory::new(plan.server, plan.folder, Box::new(move || ring.ring()))?);
    let data = start("data", move || data.run())?;
    let mut keeper = None;
    if let Some(plan) = plan.keeper {
        let store = Store::open(plan.metadata.as_deref())?;
        let servers = Servers::new(memory.clone(), plan.others.clone(), store.pool, work.clone());
        let new = Keeper::new(store, servers, (plan.block, plan.is_spanning))?;
        backup::forget_others(plan.backups.as_deref(), new.pool(), &new.backup_files());
        keeper = Some(new);
        let to_move = Arc::new(Mutex::new(to_move));
        for _ in 0..MOVERS {
            let mover = Mover::new(memory.clone(), &plan.others, plan.backups.clone(), work.clone());
            let to_move = to_move.clone();
            start("mover", move || mover.run(&to_move))?;
        }
    }
    let control = Control::new(memory.clone(), keeper, orders);
    start("control", move || control.run(&to_do))?;
    let synced = memory.clone();
    start("sync", move || {
        loop {
            std::thread::sleep(plan.sync);
            synced.sync();
        }
    })?;
    let opening = Opening::default();
    for listener in listeners {
        let (newcomers, bell, opening) = (newcomers.clone(), bell.clone(), opening.clone());
        start("listen", move || listen::accept(listener, &newcomers, &bell, &opening))?;
    }
    Ok((memory, bell, data))
}

fn start(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let ends = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        // A daemon with a thread less would serve no program and never end.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        if outcome.is_err() {
            std::process::abort();
        }
    });
    ends.map_err(|error| FamError::Resource.because(format!("a thread: {error}")))
}

/// The signals that end the daemon in order.
struct Signals(libc::sigset_t);

impl Signals {
    /// Blocks them in this thread and those that it starts.
    fn block() -> Result<Self> {
        // SAFETY: a set that is emptied before it is used, and constant arguments.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGTERM);
            libc::sigaddset(&raw mut set, libc::SIGINT);
            match libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) {
                0 => Ok(Self(set)),
                code => Err(FamError::Resource.because(format!("signals: error {code}"))),
            }
        }
    }

    /// Waits for one of them.
    fn wait(&self) {
        let mut signal = 0;
        // SAFETY: a set that `block` has made.
        while unsafe { libc::sigwait(&raw const self.0, &raw mut signal) } != 0 {}
    }
}
