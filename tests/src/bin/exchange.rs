//! A task that opens the start-up exchange: `exchange STEP...`, run under a launcher by
//! `tests/tests/launchers/exchange.rs`. Each step prints one line about this task.
//!
//! | step | |
//! |---|---|
//! | `round` | opens an exchange, publishes, fences, and reads the values of all tasks |
//! | `two` | the same with two exchanges that are open at a time |
//! | `refused` | opening or using it must fail: prints the error |
//! | `fork`, `child` | a forked child that must not use the exchange; a child that inherits the descriptors and ends |
//! | `mpi=LIBRARY`, `mpi-ends` | MPI_Init of this library, MPI_Finalize |
//! | `abort` | ends without any handler of exit(3) |

use openlapi::error::Error;
use openlapi::job::Link;
use openlapi::job::exchange::{Exchange, Turn};
use openlapi::job::host::Host;
use openlapi::job::identity::Identity;
use openlapi::job::secret::Offer;
use openlapi_runtime::environment::process_env;
use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Once, OnceLock};
use std::time::{Duration, Instant};

/// How many exchanges this process has opened.
static OPENINGS: AtomicU32 = AtomicU32::new(0);
static LINK: OnceLock<Link> = OnceLock::new();
static ENDS: Once = Once::new();

fn main() {
    let identity = Identity::from_env(&process_env).expect("a task of a job");
    let (task, tasks) = (identity.task, identity.tasks);
    let mut rounds = 0;
    for step in std::env::args().skip(1) {
        let line = match step.as_str() {
            "round" => {
                rounds += 1;
                round(&identity, rounds)
                    .unwrap_or_else(|error| panic!("round {rounds} of task {task}: {error}"))
            }
            "two" => two(&identity).unwrap_or_else(|error| panic!("two exchanges of task {task}: {error}")),
            "refused" => {
                let error = round(&identity, 99).expect_err("the exchange must fail");
                assert!(error.detail.len() < 100, "{} bytes: {}", error.detail.len(), error.detail);
                format!("refused with {}: {}", error.code, error.detail)
            }
            "fork" => fork(&identity),
            "child" => {
                let status =
                    std::process::Command::new("sleep").arg("0.1").status().expect("a command can be run");
                format!("child: {status}")
            }
            "mpi-ends" => {
                mpi(c"MPI_Finalize", |function| {
                    // SAFETY: MPI_Finalize has no arguments.
                    unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(function)() }
                });
                "mpi ends".to_owned()
            }
            "abort" => {
                println!("task {task} of {tasks}: aborts");
                // SAFETY: it ends the process.
                unsafe { libc::_exit(0) }
            }
            other => match other.strip_prefix("mpi=") {
                Some(library) => mpi_init(library),
                None => panic!("no such step: {other}"),
            },
        };
        println!("task {task} of {tasks}: {line}");
    }
}

fn deadline() -> Instant {
    let seconds = std::env::var("EXCHANGE_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(30);
    Instant::now() + Duration::from_secs(seconds)
}

fn open(identity: &Identity) -> Result<Option<Box<dyn Exchange>>, Error> {
    let turn = Turn { instance: 0, opening: OPENINGS.fetch_add(1, Ordering::Relaxed) + 1 };
    let link = LINK.get_or_init(|| Link::new(process_env));
    let opened = link.exchange(identity, turn, deadline());
    // As LAPI does once the conversation with the launcher may have begun.
    ENDS.call_once(|| {
        // SAFETY: the function stays as long as the program.
        unsafe { libc::atexit(end) };
    });
    opened
}

extern "C" fn end() {
    LINK.get().into_iter().for_each(Link::leave);
}

fn configured() -> Option<[u8; 16]> {
    let text = process_env("LAPI_JOB_SECRET")?;
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal digits");
    Some(std::array::from_fn(|byte| digit(2 * byte)))
}

/// What a task publishes: 4 KiB, and less in some tasks, with every byte.
fn blob(task: u32, round: u32) -> Vec<u8> {
    (0..4096 - task * 3).map(|at| (at * 31 + task * 7 + round * 131) as u8).collect()
}

fn read(exchange: &mut dyn Exchange, identity: &Identity, round: u32) -> Result<u32, Error> {
    let host = Host::of_this_task();
    let mut here = 0;
    for task in 0..identity.tasks {
        let found = exchange.lookup_published(task, "addresses")?;
        assert!(
            found == blob(task, round),
            "round {round}: the {} bytes of task {task} are wrong",
            found.len()
        );
        here += u32::from(exchange.lookup_published(task, "host")? == host.id.to_le_bytes());
    }
    let error = exchange.lookup(identity.tasks - 1, "nothing").expect_err("a value that was not published");
    assert!(error.detail.contains("\"nothing\""), "{error}");
    Ok(here)
}

fn round(identity: &Identity, round: u32) -> Result<String, Error> {
    let mut exchange = open(identity)?.expect("the launcher offers an exchange");
    let exchange = &mut *exchange;
    let offer = Offer::publish(exchange, identity, configured(), false)?;
    exchange.publish("addresses", &blob(identity.task, round))?;
    exchange.publish("host", &Host::of_this_task().id.to_le_bytes())?;
    exchange.fence(deadline())?;
    let secret = u128::from_be_bytes(offer.agree(exchange, identity)?);
    let here = read(exchange, identity, round)?;
    exchange.publish("later", b"")?;
    exchange.fence(deadline())?;
    assert_eq!(exchange.lookup_published(0, "later")?, b"");
    Ok(format!("{} {round}, {here} here, secret {secret:032x}", exchange.name()))
}

fn two(identity: &Identity) -> Result<String, Error> {
    let mut pair = Vec::new();
    for _ in 0..2 {
        pair.push(open(identity)?.expect("the launcher offers an exchange"));
    }
    for (exchange, round) in pair.iter_mut().zip(7..) {
        exchange.publish("addresses", &blob(identity.task, round))?;
        exchange.publish("host", &Host::of_this_task().id.to_le_bytes())?;
    }
    for exchange in pair.iter_mut().rev() {
        exchange.fence(deadline())?;
    }
    for (exchange, round) in pair.iter_mut().zip(7..) {
        read(&mut **exchange, identity, round)?;
    }
    Ok("two".to_owned())
}

/// The child of a fork leaves the exchange alone when it is used there, and when it exits.
fn fork(identity: &Identity) -> String {
    // SAFETY: this process has one thread of its own; the child uses no lock of another one.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = open(identity).and_then(|exchange| exchange.expect("an exchange").fence(deadline()));
        std::process::exit(i32::from(!refused.is_err_and(|error| error.detail.contains("forked child"))));
    }
    let mut status = -1;
    // SAFETY: the status is writable.
    let waited = unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!((waited, status), (child, 0), "the child was refused");
    "fork".to_owned()
}

fn mpi_init(library: &str) -> String {
    let name = CString::new(library).expect("a name");
    // SAFETY: the library is an MPI library of this system.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    assert!(!handle.is_null(), "{library} cannot be opened");
    mpi(c"MPI_Init", |function| {
        type Init = extern "C" fn(*mut c_int, *mut c_void) -> c_int;
        // SAFETY: MPI_Init takes two addresses, which may be null.
        unsafe {
            std::mem::transmute::<*mut c_void, Init>(function)(std::ptr::null_mut(), std::ptr::null_mut())
        }
    });
    "mpi".to_owned()
}

fn mpi(name: &CStr, call: impl Fn(*mut c_void) -> c_int) {
    // SAFETY: the name ends with a zero byte.
    let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    assert!(!function.is_null(), "{name:?} is in no library");
    assert_eq!(call(function), 0, "{name:?}");
}
