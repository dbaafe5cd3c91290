//! Reading and writing by descriptors that another program may have made non-blocking: the flag
//! belongs to the open file, and everybody who has inherited it shares it.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{mem, ptr};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::clock;

/// A file whose reads and writes wait, also where it is non-blocking.
#[derive(Debug)]
pub struct Patient<T>(pub T);

impl<T: AsFd> Patient<T> {
    /// Repeats the action until it needs not wait.
    fn until_done<R>(
        &mut self,
        flags: PollFlags,
        mut action: impl FnMut(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        loop {
            match action(&mut self.0) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let _ = poll(&mut [PollFd::new(&self.0, flags)], None);
                }
                done => return done,
            }
        }
    }
}

impl<T: Read + AsFd> Read for Patient<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.until_done(PollFlags::IN, |file| file.read(buffer))
    }
}

impl<T: Write + AsFd> Write for Patient<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.until_done(PollFlags::OUT, |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.until_done(PollFlags::OUT, |file| file.flush())
    }
}

/// Writes to standard output, whole. A reader that has gone is no failure.
///
/// # Errors
/// The system's.
pub fn print(text: &str) -> io::Result<()> {
    let mut output = Patient(io::stdout());
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes a message to standard error, without the standard library's stream: another thread may
/// have held its lock when this process was forked. A standard error that is closed, or whose
/// reader has gone, is no failure, and does not raise SIGPIPE. One that is non-blocking and full is
/// waited for, up to [`LIMIT`] without a byte: a reader who never reads holds up no task, and
/// the messages that follow are not waited for until one is written. Async-signal-safe.
pub fn say(message: &[u8]) {
    static UNREAD: AtomicBool = AtomicBool::new(false);
    let limit = if UNREAD.load(Ordering::Relaxed) { Duration::ZERO } else { LIMIT };
    let unread = !say_to(rustix::stdio::stderr(), message, limit).is_empty();
    UNREAD.store(unread, Ordering::Relaxed);
}

/// How long a message waits for room where nobody reads.
pub const LIMIT: Duration = Duration::from_secs(5);

/// Writes a message to a descriptor, as [`say`] does to standard error, with another limit. Returns
/// what there was no room for in time.
pub fn say_to<'a>(to: BorrowedFd<'_>, mut message: &'a [u8], limit: Duration) -> &'a [u8] {
    let _blocked = WithoutSigpipe::new();
    let mut until = clock::now() + limit;
    while !message.is_empty() {
        match rustix::io::write(to, message) {
            Ok(written) => {
                message = &message[written..];
                until = clock::now() + limit;
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let left = until.saturating_duration_since(clock::now());
                if left.is_zero() {
                    return message;
                }
                let left = left.try_into().ok();
                let _ = poll(&mut [PollFd::new(&to, PollFlags::OUT)], left.as_ref());
            }
            Err(_) => return &[],
        }
    }
    message
}

/// While it lives, a write of the calling thread to a pipe without a reader is an error alone. What
/// the program does with SIGPIPE stays as it is: the thread blocks the signal, and takes the one
/// that its write has raised, which is the thread's own.
struct WithoutSigpipe {
    before: libc::sigset_t,
    /// One came earlier, which the thread has blocked: it is not ours.
    pending: bool,
}

impl WithoutSigpipe {
    fn new() -> Self {
        // SAFETY: the sets live during the calls, which fill them in.
        unsafe {
            let mut before = mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, &sigpipe(), &mut before);
            let mut pending = mem::zeroed();
            libc::sigpending(&mut pending);
            Self { before, pending: libc::sigismember(&pending, libc::SIGPIPE) == 1 }
        }
    }
}

impl Drop for WithoutSigpipe {
    fn drop(&mut self) {
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: whole sets, and a time, that live during the calls.
        unsafe {
            if !self.pending {
                while libc::sigtimedwait(&sigpipe(), ptr::null_mut(), &at_once) == -1
                    && *libc::__errno_location() == libc::EINTR
                {}
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, ptr::null_mut());
        }
    }
}

/// The set of this signal alone.
fn sigpipe() -> libc::sigset_t {
    // SAFETY: the set lives during the calls, of which the first one fills it in.
    unsafe {
        let mut set = mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGPIPE);
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_non_blocking_file_is_waited_for() {
        let (here, there) = UnixStream::pair().expect("sockets can be made");
        here.set_nonblocking(true).and_then(|()| there.set_nonblocking(true)).expect("it is a socket");
        let bytes: Vec<u8> = (0..4_000_000_u32).map(|at| (at * 7 % 256) as u8).collect();
        let written = bytes.clone();
        let writer = std::thread::spawn(move || Patient(there).write_all(&written));
        let mut read = Vec::new();
        Patient(here).read_to_end(&mut read).expect("it is read to its end");
        writer.join().expect("no panic").expect("all is written");
        assert!(read == bytes, "{} of {} bytes", read.len(), bytes.len());
    }

    fn is_pending() -> bool {
        // SAFETY: the set lives during the calls, of which the first one fills it in.
        unsafe {
            let mut pending = mem::zeroed();
            libc::sigpending(&mut pending);
            libc::sigismember(&pending, libc::SIGPIPE) == 1
        }
    }

    /// A blocked signal is pending even where it would be ignored.
    #[test]
    fn a_message_without_a_reader_raises_no_signal_and_takes_none_of_the_program() {
        let blocked = WithoutSigpipe::new();
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        drop(reader);
        say_to(writer.as_fd(), b"nobody reads this\n", LIMIT);
        assert!(!is_pending(), "the message has raised it");
        // SAFETY: a signal that this thread has blocked.
        unsafe { libc::raise(libc::SIGPIPE) };
        say_to(writer.as_fd(), b"nor this\n", LIMIT);
        assert!(is_pending(), "it was there before the message");
        drop(blocked);
        assert!(!is_pending(), "the first block takes it");
    }

    #[test]
    fn a_message_waits_for_room_but_not_for_ever() {
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).expect("a pipe");
        let fill = vec![b'.'; 1 << 20];
        assert!(!say_to(writer.as_fd(), &fill, Duration::from_millis(10)).is_empty(), "a pipe holds less");
        let said = b"a report\n";
        let speaker = std::thread::spawn(move || say_to(writer.as_fd(), said, LIMIT * 100));
        let mut read = Vec::new();
        Patient(std::fs::File::from(reader)).read_to_end(&mut read).expect("it is read to its end");
        assert!(speaker.join().expect("no panic").is_empty(), "it was read");
        let begins = read.iter().position(|byte| *byte != b'.').expect("the message came");
        assert_eq!(read[begins..], *said);
    }
}
