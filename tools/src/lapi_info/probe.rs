//! Copies across address spaces, tried out between this process and one that it starts, both ways:
//! the child copies from and to this process as tasks of a job do, neither of which has started the
//! other, and this process from and to the child. (Some systems allow only the second.)
//!
//! The child is this program again, with [`ARGUMENT`]. Each side writes the addresses of its
//! landmark and its buffer in one line, and in a second line whether its copies succeeded.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use openlapi::transport::shm::remote::{self, CrossMemory, Landmark};
use openlapi::transport::{Access, Copy};

/// The argument of the child.
pub(super) const ARGUMENT: &str = "--probe-child";

/// Words in each buffer: more than a page of them, so that a copy spans pages.
const WORDS: usize = 1024;

/// What the two sides write into each other's buffers.
const FROM_PARENT: u64 = 0x1d5a_0e57_93c1_66b1;
const FROM_CHILD: u64 = 0x74e2_b380_0cf9_a52d;

/// What the attempt showed.
pub(super) enum Outcome {
    /// All copies have worked, and the bytes are right.
    Works,
    /// The kernel has refused one.
    Refused {
        /// Which.
        copy: &'static str,
        /// The kernel's error.
        error: io::Error,
    },
    /// The copy could not be tried.
    Untried(io::Error),
}

/// Tries it.
pub(super) fn run() -> Outcome {
    // SIGPIPE is ignored in Rust programs: a child that has died early shows by an error.
    match start().and_then(|mut child| {
        let outcome = converse(&mut child);
        // Its input is closed by now, so it ends.
        child.wait()?;
        outcome
    }) {
        Ok(outcome) => outcome,
        Err(error) => Outcome::Untried(error),
    }
}

fn start() -> io::Result<Child> {
    let program = std::env::current_exe()?;
    Command::new(program).arg(ARGUMENT).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
}

fn converse(child: &mut Child) -> io::Result<Outcome> {
    let (Some(mut to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("no pipes to the child"));
    };
    let (buffer, own) = (Buffer::new(), remote::landmark());
    writeln!(to, "{} {} {} {}", std::process::id(), own.address, own.mark, buffer.address())?;
    let mut lines = BufReader::new(from).lines();
    let mut line = || lines.next().unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()));
    let there = CopyTarget::read(&line()?)?;
    let theirs = line()?;
    let ours = copy_to(&there, FROM_PARENT);
    writeln!(to, "copied")?;
    let found = line()?;
    drop(to);

    if let Some(error) = theirs.strip_prefix("refused ") {
        let error = error.parse().map(io::Error::from_raw_os_error).map_err(io::Error::other)?;
        return Ok(Outcome::Refused { copy: "a copy as between two tasks", error });
    }
    if let Err(error) = ours {
        return Ok(Outcome::Refused { copy: "a copy from and to a child process", error });
    }
    if theirs != "copied" || found != "right" || !buffer.holds(FROM_CHILD) {
        return Err(io::Error::other(format!(
            "the bytes are not those that were copied ({theirs}, {found})"
        )));
    }
    Ok(Outcome::Works)
}

/// The child's part.
pub(super) fn child() -> ExitCode {
    match reply() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            super::say(format_args!("the child of the probe: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn reply() -> io::Result<()> {
    let buffer = Buffer::new();
    let mut lines = io::stdin().lock().lines();
    let mut line = || lines.next().unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()));
    let there = CopyTarget::read(&line()?)?;
    let (mut out, own) = (io::stdout(), remote::landmark());
    writeln!(out, "{} {} {} {}", std::process::id(), own.address, own.mark, buffer.address())?;
    match copy_to(&there, FROM_CHILD) {
        Ok(()) => writeln!(out, "copied")?,
        Err(error) => writeln!(out, "refused {}", error.raw_os_error().unwrap_or(0))?,
    }
    line()?;
    writeln!(out, "{}", if buffer.holds(FROM_PARENT) { "right" } else { "wrong" })
}

/// Where to copy: in which process, and at which addresses.
struct CopyTarget {
    pid: i32,
    landmark: Landmark,
    buffer: u64,
}

impl CopyTarget {
    fn read(line: &str) -> io::Result<Self> {
        let mut words = line.split(' ').map(str::parse::<u64>);
        let mut next = || words.next();
        match (next(), next(), next(), next(), next()) {
            (Some(Ok(pid)), Some(Ok(address)), Some(Ok(mark)), Some(Ok(buffer)), None) => {
                Ok(Self { pid: pid as i32, landmark: Landmark { address, mark }, buffer })
            }
            _ => Err(io::Error::other(format!("not understood: {line}"))),
        }
    }
}

/// Reads the other process's landmark, and fills its buffer.
fn copy_to(there: &CopyTarget, seed: u64) -> io::Result<()> {
    there.landmark.look_up(there.pid)?;
    let mut memory = CrossMemory::new(1, false, None);
    memory.moved(0, Some((there.pid, there.landmark)));
    let words: Vec<u64> = pattern(seed).collect();
    let local = words.as_ptr().cast_mut().cast();
    let copy = Copy { local, remote: there.buffer, len: size_of_val(words.as_slice()) };
    // SAFETY: `words` is readable for its own length and is only read. The other side's
    // buffer is as long.
    unsafe { memory.copy(Access::Write, 0, &[copy]) }
}

fn pattern(seed: u64) -> impl Iterator<Item = u64> {
    (1..=WORDS as u64).map(move |at| seed.wrapping_mul(2 * at + 1))
}

/// Where the other side writes to: atomics, since this side's program does not do it.
struct Buffer(Box<[AtomicU64]>);

impl Buffer {
    fn new() -> Self {
        Self((0..WORDS).map(|_| AtomicU64::new(0)).collect())
    }

    fn address(&self) -> u64 {
        self.0.as_ptr() as u64
    }

    fn holds(&self, seed: u64) -> bool {
        self.0.iter().zip(pattern(seed)).all(|(word, wanted)| word.load(Ordering::Relaxed) == wanted)
    }
}
