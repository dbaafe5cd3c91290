//! Reading and writing by descriptors that another program may have made non-blocking: the flag
//! belongs to the open file, and everybody who has inherited it shares it.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};

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
}
