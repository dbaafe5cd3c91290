//! Ends that a thread serves from time to time, as the library's own thread does in each process: a
//! task that computes, or a test that looks at another task, keeps no peer waiting.

use crate::transport::testing::forward::forward;
use crate::transport::{Door, Endpoint, Look, Peers, RemoteAccess, Seen, Task, Transport, Wakeup, Want};
use parking_lot::{Mutex, MutexGuard};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the thread serves.
const INTERVAL: Duration = Duration::from_micros(300);

/// One task's end, which a thread serves, too. ThreadSanitizer sees what this lock orders; it does
/// not see into std's.
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

/// Ends that are served by one thread.
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
            end.want(Want::Serve);
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
    forward!(limits, try_send, recv, release, report, due, tally, close);

    fn door(&mut self, _peer: Task) -> Option<&mut Door> {
        None
    }

    fn look(&mut self, look: Look) -> Seen<'_> {
        if self.lock().look(look).is_nothing() { Seen::Nothing } else { Seen::Something }
    }

    /// A test that waits for acknowledgements does not wait for the thread.
    fn want(&mut self, what: Want) {
        self.lock().want(what);
        if what == Want::Serve {
            serve_all(&self.all);
        }
    }
}

impl<T: Transport> RemoteAccess for Served<T> {
    forward!(RemoteAccess);
}

impl<T: Transport> Wakeup for Served<T> {
    forward!(arm, disarm);

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl<T: Transport> Peers for Served<T> {
    forward!(Peers);
}
