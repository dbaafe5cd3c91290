//! Sockets that a forked child closes: their names and ports would stay taken for as long as it
//! lives, and peers would take the parent for alive.

use super::{FileId, identity};
use crate::base::sync::{Mutex, MutexGuard};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// The sockets that this process has open. Held while one is made, and while a thread forks; one is
/// taken out when it is closed. So a child knows all of those that it has inherited.
static SOCKETS: Mutex<Numbers> = Mutex::new(Numbers::new());

/// What each number was when the socket was made.
pub(super) type Numbers = BTreeMap<RawFd, Option<FileId>>;

pub(super) type Sockets = MutexGuard<'static, Numbers>;

thread_local! {
    /// What a thread that forks holds. The child's only thread is a copy of that thread. It is
    /// taken out before the thread ends: a destructor would be registered under the loader's lock.
    static HELD: RefCell<ManuallyDrop<Option<Sockets>>> = const { RefCell::new(ManuallyDrop::new(None)) };
}

/// What is held while a socket is made.
pub(super) fn lock() -> Sockets {
    SOCKETS.lock()
}

/// A socket with this number is closed. Another one may have it by now.
pub(super) fn forget(number: RawFd, known: Option<FileId>) {
    let mut all = lock();
    if all.get(&number) == Some(&known) {
        all.remove(&number);
    }
}

/// Before this thread forks: no socket is made until one of the next two is called.
pub fn before_fork() {
    let _ = HELD.try_with(|held| {
        // Called twice, it must not wait for itself.
        held.borrow_mut().get_or_insert_with(lock);
    });
}

/// After the fork, in the parent.
pub fn after_fork() {
    let _ = HELD.try_with(|held| held.borrow_mut().take());
}

/// After the fork, in the child: closes the sockets that it has inherited.
pub fn close_in_child() {
    if let Ok(Some(mut sockets)) = HELD.try_with(|held| held.borrow_mut().take()) {
        close(std::mem::take(&mut *sockets));
    }
}

/// Closes those of these sockets that are still open: the program may have closed some, and opened
/// something of its own.
fn close(sockets: Numbers) {
    for (number, known) in sockets {
        // SAFETY: looked at, to see whether it is what it was.
        let found = identity(unsafe { BorrowedFd::borrow_raw(number) });
        if known.is_some() && found == known {
            // SAFETY: a socket's descriptor, whose owner is a context that this
            // process does not use.
            drop(unsafe { OwnedFd::from_raw_fd(number) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::descriptor::Descriptor;
    use std::io::{Read, Write};
    use std::os::fd::{AsFd, AsRawFd};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_socket_is_known_as_long_as_it_is_open() {
        let pair = || UnixStream::pair().map(|(one, _)| OwnedFd::from(one));
        let socket = Descriptor::socket(pair).expect("a socket");
        let (number, known) = (socket.as_fd().as_raw_fd(), identity(&socket));
        assert_eq!(lock().get(&number), Some(&known));
        // Of another socket with its number this one's end takes out nothing.
        forget(number, Some([0, 0]));
        assert_eq!(lock().get(&number), Some(&known));
        drop(socket);
        assert_ne!(lock().get(&number), Some(&known));
    }

    #[test]
    fn a_child_closes_what_it_has_inherited_and_nothing_else() {
        let pair = || UnixStream::pair().expect("sockets");
        let ((inherited, mut there), (own, mut kept)) = (pair(), pair());
        let inherited = OwnedFd::from(inherited);
        // The program has closed the library's socket, and opened this one.
        let numbers = [(inherited.as_raw_fd(), identity(&inherited)), (own.as_raw_fd(), Some([0, 0]))];
        std::mem::forget(inherited);
        close(numbers.into_iter().collect());
        assert_eq!(there.read(&mut [0]).expect("an end"), 0);
        (&own).write_all(b"x").expect("it is open");
        kept.read_exact(&mut [0]).expect("it is open");
    }
}
