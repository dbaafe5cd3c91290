//! Tasks of one process, each with an endpoint of its own. A thread serves all of them from time to time, as the library's own thread
//! does in each process: a task that computes, or a test that looks at another task, keeps no peer waiting.

use crate::error::Result;
use crate::transport::fabric::{Directory, Fabric, FabricSettings, FabricTransport, Own, Wishes};
use crate::transport::{
    Access, AccessId, ConnectionView, Copy, Endpoint, Inbound, Key, Limits, Outgoing, PeerState, Peers,
    Piece, Reach, RemoteAccess, SendOutcome, Started, Task, Ticket, Wakeup,
};
use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the thread serves.
const INTERVAL: Duration = Duration::from_micros(300);

/// One task's end, which a thread serves, too. ThreadSanitizer sees what this lock orders; it does not see into std's.
pub(super) struct Served {
    pub(super) end: Arc<Mutex<FabricTransport>>,
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

pub(super) struct Published(pub(super) Arc<Vec<Vec<u8>>>);

impl Directory for Published {
    fn address_of(&mut self, peer: Task) -> Result<Vec<u8>> {
        Ok(self.0[peer as usize].clone())
    }
}

/// The endpoints of `tasks` tasks, and what they publish.
pub(super) fn open(tasks: u32, provider: &str) -> Result<Vec<(Own, Vec<u8>)>> {
    let wishes = Wishes { provider: Some(provider.into()), one_machine: true, ..Wishes::default() };
    let open = |me| Fabric::open(FabricSettings { me, tasks, wishes: wishes.clone() });
    (0..tasks).map(open).collect()
}

/// Joined tasks that have had contact: each learns when another one ends.
pub(super) fn network(tasks: u32, provider: &str) -> Vec<Served> {
    let (own, published): (Vec<Own>, Vec<Vec<u8>>) =
        open(tasks, provider).expect("endpoints").into_iter().unzip();
    let published = Arc::new(published);
    let mut ends: Vec<FabricTransport> = own
        .into_iter()
        .map(|own| {
            FabricTransport::new(own, 77, Box::new(Published(published.clone()))).expect("a transport")
        })
        .collect();
    for (task, end) in ends.iter_mut().enumerate() {
        (0..tasks).filter(|peer| *peer != task as Task).for_each(|peer| end.connect(peer));
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while ends.iter().any(|end| end.has_pending()) {
        ends.iter_mut().for_each(Endpoint::serve);
        assert!(Instant::now() < deadline, "the greetings never arrive");
    }
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

impl Served {
    pub(super) fn lock(&self) -> MutexGuard<'_, FabricTransport> {
        self.end.lock()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.lock().close();
    }
}

impl Endpoint for Served {
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
        Some(self)
    }

    fn close(&mut self) {
        self.lock().close();
    }
}

impl RemoteAccess for Served {
    fn reach(&mut self, peer: Task) -> Reach {
        self.lock().reach(peer)
    }

    unsafe fn register(&mut self, peer: Task, memory: Piece, access: Access) -> io::Result<Key> {
        // SAFETY: the caller's promise.
        unsafe { self.lock().register(peer, memory, access) }
    }

    fn deregister(&mut self, peer: Task, key: Key) {
        self.lock().deregister(peer, key);
    }

    unsafe fn start(
        &mut self,
        access: Access,
        peer: Task,
        key: Option<Key>,
        copies: &[Copy],
    ) -> io::Result<Started> {
        // SAFETY: the caller's promise.
        unsafe { self.lock().start(access, peer, key, copies) }
    }

    fn poll(&mut self) -> Option<(AccessId, io::Result<()>)> {
        self.lock().poll()
    }
}

impl Wakeup for Served {
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

impl Peers for Served {
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
