//! How long a put takes in a session, from the call until the data is in place: the median over
//! batches of a put and a fence. `benches/doors/run.sh` sets it beside a job's.

use openlapi_session::{Error, Result, Session, Settings, accept, connect};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::Instant;

/// What is put, in bytes, and how many puts make a batch.
const SIZES: [(usize, u32); 3] = [(8, 2000), (4096, 1000), (1 << 20, 40)];
const BATCHES: usize = 31;

/// A line of the cache. An allocator's memory begins 16 bytes behind one, so that each that is
/// copied is a part of two: the memory of both ends begins with one, as that of the job does.
#[derive(Clone, Copy)]
#[repr(align(64))]
#[expect(dead_code, reason = "only its address is used")]
struct Line([u8; 64]);

/// As many lines as have this many bytes, all of this value.
fn lines(length: usize, byte: u8) -> Vec<Line> {
    vec![Line([byte; 64]); length.div_ceil(64)]
}

fn main() -> Result<()> {
    if std::env::var_os("SESSION_BENCH_PEER").is_some() { lend() } else { measure() }
}

/// The other process: lends memory until the session is closed.
fn lend() -> Result<()> {
    let descriptor = |of: &dyn AsFd| of.as_fd().try_clone_to_owned();
    let (Ok(read), Ok(write)) = (descriptor(&std::io::stdin()), descriptor(&std::io::stdout())) else {
        return Ok(());
    };
    let session = accept(read, write, &Settings::default())?;
    let mut memory = lines(1 << 20, 0);
    let address = memory.as_mut_ptr().expose_provenance() as u64;
    session.send(b"memory", &address.to_le_bytes())?;
    match session.receive(None) {
        Err(Error::Closed) => session.close(),
        other => other.map(drop),
    }
}

#[expect(clippy::zombie_processes, reason = "a measurement that fails ends this program, too")]
fn measure() -> Result<()> {
    let own = std::env::current_exe().expect("this program");
    let mut peer = Command::new(own);
    peer.env("SESSION_BENCH_PEER", "yes").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut peer = peer.spawn().expect("the other process");
    let (read, write) = (peer.stdout.take().expect("a pipe"), peer.stdin.take().expect("a pipe"));
    let session = connect(read.into(), write.into(), &Settings::default())?;
    let message = session.receive(None)?.expect("there is no deadline");
    let to = u64::from_le_bytes(message.data.try_into().expect("an address"));
    for (length, count) in SIZES {
        let from = lines(length, 7);
        let mut batches: Vec<f64> =
            (0..BATCHES).map(|_| batch(&session, (from.as_ptr().cast(), length), to, count)).collect();
        batches.sort_by(f64::total_cmp);
        println!("session put {length}: {:.3} us (best {:.3})", batches[BATCHES / 2], batches[0]);
    }
    session.close()?;
    peer.wait().expect("the other process's end");
    Ok(())
}

/// The microseconds of a put and its fence.
fn batch(session: &Session, (from, length): (*const u8, usize), to: u64, count: u32) -> f64 {
    let begun = Instant::now();
    for _ in 0..count {
        // SAFETY: the caller's lines have as many bytes, and the other process lends as many; the
        // fence has returned before either ends.
        unsafe { session.put(from, length, to) }.expect("a put");
        session.fence().expect("a fence");
    }
    begun.elapsed().as_secs_f64() * 1e6 / f64::from(count)
}
