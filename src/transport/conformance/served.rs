//! Ends that a thread serves from time to time, as the library's own thread does in each process: a task that computes, or a test that
//! looks at another task, keeps no peer waiting.

use crate::transport::forward::forward;
use crate::transport::{
    Access, AccessId, Copy, EndedWrite, Endpoint, Key, Outgoing, Peers, Piece, Reach, RemoteAccess,
    SendOutcome, Started, Task, Transport, Wakeup,
};
use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the thread serves.
const INTERVAL: Duration = Duration::from_micros(300);

/// One task's end, which a thread serves, too. ThreadSanitizer sees what this lock orders; it does not see into std's.
pub(crate) struct Served<T: Transport> {
    end: Arc<Mutex<T>>,
    all: Arc<[Arc<Mutex<T>>]>,
    descriptor: OwnedFd,
    _server: Arc<Server>,
}

struct Server {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the thread that serves");
        }
    }
}

/// The same ends, served by one thread.
pub(crate) fn served<T: Transport + 'static>(ends: Vec<T>) -> Vec<Served<T>> {
    let ends: Arc<[_]> = ends.into_iter().map(|end| Arc::new(Mutex::new(end))).collect();
    let ended = Arc::new(AtomicBool::new(false));
    let (all, over) = (ends.clone(), ended.clone());
    let serve = move || {
        while !over.load(Ordering::Relaxed) {
            serve_all(&all);
            std::thread::sleep(INTERVAL);
        }
    };
    let server = Arc::new(Server { ended, thread: Some(std::thread::spawn(serve)) });
    ends.iter()
        .map(|end| {
            let descriptor = end.lock().event_fd().try_clone_to_owned();
            let descriptor = descriptor.expect("a descriptor");
            Served { end: end.clone(), all: ends.clone(), descriptor, _server: server.clone() }
        })
        .collect()
}

fn serve_all<T: Transport>(ends: &[Arc<Mutex<T>>]) {
    for end in ends {
        // The owner of the lock makes progress itself.
        if let Some(mut end) = end.try_lock() {
            end.serve();
        }
    }
}

impl<T: Transport> Served<T> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.end.lock()
    }

    fn inner(&self) -> MutexGuard<'_, T> {
        self.lock()
    }

    fn inner_mut(&mut self) -> MutexGuard<'_, T> {
        self.lock()
    }
}

impl<T: Transport> Drop for Served<T> {
    fn drop(&mut self) {
        self.lock().close();
    }
}

impl<T: Transport> Endpoint for Served<T> {
    forward!(name, limits, completed, recall, recv, hold, release, keeps_time, flush, due, settled, close);

    /// A test that waits for acknowledgements does not wait for the thread.
    fn serve(&mut self) {
        self.lock().serve();
        serve_all(&self.all);
    }

    unsafe fn try_send(&mut self, peer: Task, packet: &Outgoing<'_>) -> SendOutcome {
        // SAFETY: the caller's promise.
        unsafe { self.lock().try_send(peer, packet) }
    }

    fn remote(&mut self) -> Option<&mut dyn RemoteAccess> {
        if self.lock().remote().is_some() { Some(self) } else { None }
    }
}

impl<T: Transport> RemoteAccess for Served<T> {
    fn reach(&mut self, peer: Task) -> Reach {
        self.lock().remote().map_or(Reach::None, |remote| remote.reach(peer))
    }

    unsafe fn register(&mut self, peer: Task, memory: Piece, access: Access) -> io::Result<Key> {
        let mut end = self.lock();
        let remote = end.remote().ok_or_else(|| io::Error::from(Errno::OPNOTSUPP))?;
        // SAFETY: the caller's promise.
        unsafe { remote.register(peer, memory, access) }
    }

    fn has_standing_keys(&mut self) -> bool {
        self.lock().remote().is_some_and(|remote| remote.has_standing_keys())
    }

    fn standing_key(&mut self, peer: Task) -> Option<Key> {
        self.lock().remote()?.standing_key(peer)
    }

    fn deregister(&mut self, peer: Task, key: Key) {
        if let Some(remote) = self.lock().remote() {
            remote.deregister(peer, key);
        }
    }

    unsafe fn start(
        &mut self,
        access: Access,
        peer: Task,
        key: Option<Key>,
        copies: &[Copy],
    ) -> io::Result<Started> {
        let mut end = self.lock();
        let remote = end.remote().ok_or_else(|| io::Error::from(Errno::OPNOTSUPP))?;
        // SAFETY: the caller's promise.
        unsafe { remote.start(access, peer, key, copies) }
    }

    unsafe fn start_write(&mut self, peer: Task, copy: Copy, cookie: u64) -> bool {
        // SAFETY: the caller's promise.
        self.lock().remote().is_some_and(|remote| unsafe { remote.start_write(peer, copy, cookie) })
    }

    unsafe fn write_copied(&mut self, peer: Task, copy: Copy, cookie: u64) -> bool {
        // SAFETY: the caller's promise.
        self.lock().remote().is_some_and(|remote| unsafe { remote.write_copied(peer, copy, cookie) })
    }

    fn ended_write(&mut self) -> Option<EndedWrite> {
        self.lock().remote()?.ended_write()
    }

    fn unreported_writes(&mut self) -> usize {
        self.lock().remote().map_or(0, |remote| remote.unreported_writes())
    }

    fn poll(&mut self) -> Option<(AccessId, io::Result<()>)> {
        self.lock().remote()?.poll()
    }
}

impl<T: Transport> Wakeup for Served<T> {
    forward!(arm, disarm, wake);

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl<T: Transport> Peers for Served<T> {
    forward!(standing, want, is_open, view, set_polling, polls, part, rejoin, rejoined);
}
