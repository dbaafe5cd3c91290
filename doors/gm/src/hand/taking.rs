//! What comes of peers: those that connect are greeted, and what they send is taken.

use super::hello::Hello;
use super::{LOOK, NO_SOCKET, Shared, lock};
use openlapi_runtime::console;
use openlapi_session::{Arrived, Error, Listener, Session};
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

fn complain(error: &dyn Display) {
    console::log(format_args!("gm: a peer could not connect: {error}"));
}

impl Shared {
    /// Takes peers as they come. Each opens its session in a thread of its own: one that is stopped
    /// in the middle of that holds up no other.
    pub(super) fn listen(self: Arc<Self>, mut listener: Listener) {
        let mut fails = false;
        while !self.leaves() {
            let arrived = listener.next(Some(Instant::now() + LOOK));
            let failed = matches!(arrived, Err(Error::System { .. } | Error::Limit(_)));
            match arrived {
                // Without a thread for it the connection closes.
                Ok(Some(arrived)) => {
                    self.spawn(|shared| shared.greet(arrived)).unwrap_or_else(|error| complain(&error));
                }
                Ok(None) => {}
                // Without descriptors, say, the next call fails at once.
                Err(_) if failed && fails => thread::sleep(LOOK),
                Err(error) => complain(&error),
            }
            fails = failed;
            let unsent = std::mem::take(&mut *lock(&self.unsent));
            unsent.into_iter().for_each(|(task, life)| self.lose(task, life));
        }
        // Right before it is closed: a forked child has a copy until then, and closes no other
        // descriptor.
        self.socket.store(NO_SOCKET, Ordering::Relaxed);
    }

    /// A peer has connected: opens the session, says who this is, and takes what the peer sends.
    fn greet(self: Arc<Self>, arrived: Arrived) {
        let session = match arrived.open() {
            Ok(session) => Arc::new(session),
            Err(error) => return complain(&error),
        };
        let Some(Hello { task, life: of_peer }) = self.peer_of(&session) else { return };
        let life = self.meet(task, of_peer);
        if self.hello(&session, life).is_ok() && self.publish(task, life, of_peer, &session) {
            self.take_all(task, life, session);
        }
    }

    /// Takes what a peer sends, until its session or its life ends, or this process leaves: all
    /// ports are closed then, and what is still to be taken is for none of them.
    pub(super) fn take_all(&self, task: u32, life: u64, session: Arc<Session>) {
        let peer = &self.peers[task as usize];
        let goes_on = || {
            let link = lock(&peer.link);
            link.life == life && link.ends.is_none()
        };
        while !self.leaves() {
            match session.receive(Some(Instant::now() + LOOK)) {
                Ok(Some(message)) => {
                    let _alone = lock(&peer.taking);
                    if lock(&peer.link).life != life {
                        return;
                    }
                    (self.receiving.arrived)(task, &message.header, &message.data);
                    self.wake();
                    if lock(&peer.link).ends.is_none_or(|at| Instant::now() < at) {
                        continue;
                    }
                }
                Ok(None) if goes_on() => continue,
                Ok(None) | Err(Error::Closed) => {}
                Err(_) => lock(&peer.link).fail(life),
            }
            return self.leave(task, life, &session);
        }
    }
}
