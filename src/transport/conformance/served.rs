//! Ends that a thread serves from time to time, as the library's own thread does in each process: a task that computes, or a test that
//! looks at another task, keeps no peer waiting.

use crate::error::Result;
use crate::transport::{
    Access, AccessId, ConnectionView, Copy, Endpoint, Inbound, Key, Limits, Outgoing, PeerState, Peers,
    Piece, Reach, RemoteAccess, SendOutcome, Started, Task, Ticket, Transport, Wakeup,
};
use parking_lot::{Mutex, MutexGuard};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the thread serves.
const INTERVAL: Duration = Duration::from_micros(300);

/// One task's end, which a thread serves, too. ThreadSanitizer sees what this lock orders; it does not see into std's.
pub(crate) struct Served<T: Transport> {
    end: Arc<Mutex<T>>,
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
    let ends: Vec<_> = ends.into_iter().map(|end| Arc::new(Mutex::new(end))).collect();
    let ended = Arc::new(AtomicBool::new(false));
    let (all, over) = (ends.clone(), ended.clone());
    let serve = move || {
        while !over.load(Ordering::Relaxed) {
            for end in &all {
                // The owner of the lock makes progress itself.
                if let Some(mut end) = end.try_lock() {
                    end.serve();
                }
            }
            std::thread::sleep(INTERVAL);
        }
    };
    let server = Arc::new(Server { ended, thread: Some(std::thread::spawn(serve)) });
    ends.into_iter()
        .map(|end| {
            let descriptor = end.lock().event_fd().try_clone_to_owned();
            Served { end, descriptor: descriptor.expect("a descriptor"), _server: server.clone() }
        })
        .collect()
}

impl<T: Transport> Served<T> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.end.lock()
    }
}

impl<T: Transport> Drop for Served<T> {
    fn drop(&mut self) {
        self.lock().close();
    }
}

impl<T: Transport> Endpoint for Served<T> {
    fn name(&self) -> &'static str {
        self.lock().name()
    }

    fn limits(&self, peer: Task) -> Limits {
        self.lock().limits(peer)
    }

    unsafe fn try_send(&mut self, peer: Task, packet: &Outgoing<'_>) -> SendOutcome {
        // SAFETY: the caller's promise.
        unsafe { self.lock().try_send(peer, packet) }
    }

    fn completed(&mut self) -> Option<Ticket> {
        self.lock().completed()
    }

    fn recall(&mut self, peer: Task) {
        self.lock().recall(peer);
    }

    fn recv(&mut self) -> Option<Inbound> {
        self.lock().recv()
    }

    fn hold(&mut self, peer: Task, held: bool) {
        self.lock().hold(peer, held);
    }

    fn release(&mut self, packet: Inbound) {
        self.lock().release(packet);
    }

    fn keeps_time(&self) -> bool {
        self.lock().keeps_time()
    }

    fn due(&self) -> Option<Instant> {
        self.lock().due()
    }

    fn serve(&mut self) {
        self.lock().serve();
    }

    fn settled(&self) -> bool {
        self.lock().settled()
    }

    fn remote(&mut self) -> Option<&mut dyn RemoteAccess> {
        if self.lock().remote().is_some() { Some(self) } else { None }
    }

    fn close(&mut self) {
        self.lock().close();
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

    fn poll(&mut self) -> Option<(AccessId, io::Result<()>)> {
        self.lock().remote()?.poll()
    }
}

impl<T: Transport> Wakeup for Served<T> {
    fn arm(&mut self) -> bool {
        self.lock().arm()
    }

    fn disarm(&mut self) {
        self.lock().disarm();
    }

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    fn wake(&self) {
        self.lock().wake();
    }
}

impl<T: Transport> Peers for Served<T> {
    fn state(&self, peer: Task) -> PeerState {
        self.lock().state(peer)
    }

    fn absence(&self, peer: Task) -> Option<String> {
        self.lock().absence(peer)
    }

    fn connect(&mut self, peer: Task) {
        self.lock().connect(peer);
    }

    fn progress(&self, peer: Task) -> u64 {
        self.lock().progress(peer)
    }

    fn kick(&self, peer: Task) {
        self.lock().kick(peer);
    }

    fn set_polling(&mut self, polling: bool, now: u64) {
        self.lock().set_polling(polling, now);
    }

    fn polls(&self, peer: Task) -> bool {
        self.lock().polls(peer)
    }

    fn view(&self, peer: Task) -> Option<ConnectionView> {
        self.lock().view(peer)
    }

    fn part(&mut self, peer: Task) {
        self.lock().part(peer);
    }

    fn rejoin(&mut self, peer: Task, epoch: u64) -> Result<()> {
        self.lock().rejoin(peer, epoch)
    }

    fn rejoined(&mut self) -> Option<(Task, u64)> {
        self.lock().rejoined()
    }
}
