//! What goes to peers: a thread for each opens a session at first contact, and sends in order.

use super::map::Address;
use super::{Shared, lock};
use crate::protocol::{Data, Output};
use openlapi_runtime::console;
use openlapi_session::{Error, Session, connect_tcp, connect_unix};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};

/// A message for the thread of a peer.
pub(super) struct Order {
    /// The link's life that it belongs to.
    life: u64,
    output: Output,
}

impl Shared {
    /// Orders a message of the thread that sends to its target. In another life of the link than
    /// the message's its end was reported already, and a program may have sent it again.
    pub(super) fn order(self: &Arc<Self>, output: &Output, life: u64) {
        let task = output.task;
        let peer = &self.peers[task as usize];
        let Some(mut sender) = self.lock(&peer.sender) else { return output.data.free() };
        if self.leaves() || self.lock(&peer.link).is_none_or(|link| link.life != life) {
            return output.data.free();
        }
        let orders = match &mut *sender {
            Some(orders) => orders,
            none => {
                let (orders, receiver) = channel();
                if let Err(error) = self.spawn(move |shared| shared.send_all(task, &receiver)) {
                    console::log(format_args!("gm: nothing is sent to node {}: {error}", task + 1));
                    // The caller may take something of this peer now, so the thread that listens
                    // forgets it. Nothing more is sent in this life.
                    if let Some(mut link) = self.lock(&peer.link) {
                        link.fail(life);
                    }
                    if let Some(mut unsent) = self.lock(&self.unsent) {
                        unsent.push((task, life));
                    }
                    return output.data.free();
                }
                none.insert(orders)
            }
        };
        // The thread ends after the sender only.
        self.ordered.fetch_add(1, Ordering::Relaxed);
        let _ = orders.send(Order { life, output: *output });
    }

    fn send_all(self: Arc<Self>, task: u32, orders: &Receiver<Order>) {
        while let Ok(Order { life, output }) = orders.recv() {
            // What waits from an earlier life was meant for a process that is gone.
            let is_now = lock(&self.peers[task as usize].link).takes(life);
            let failed = is_now.then(|| self.send(task, life, &output).err()).flatten();
            output.data.free();
            self.ordered.fetch_sub(1, Ordering::Release);
            if let Some(error) = failed {
                self.not_sent(task, life, &error);
            }
            self.wake();
        }
    }

    /// Sends one message, and opens a session for it where there is none.
    fn send(self: &Arc<Self>, task: u32, life: u64, output: &Output) -> Result<(), Error> {
        let header = output.header.encode();
        let header = header.as_bytes();
        let data = match output.data {
            Data::None | Data::Memory { length: 0, .. } => &[][..],
            Data::Memory { address, length, .. } => {
                let memory = std::ptr::with_exposed_provenance::<u8>(address);
                // SAFETY: the program leaves its memory as it is until its send has ended, which is
                // after the counter has changed.
                unsafe { std::slice::from_raw_parts(memory, length as usize) }
            }
        };
        if task == self.own {
            (self.receiving.arrived)(task, header, data);
            return Ok(());
        }
        self.session(task, life)?.send(header, data)
    }

    /// The session with a peer, which is opened where there is none.
    fn session(self: &Arc<Self>, task: u32, life: u64) -> Result<Arc<Session>, Error> {
        let current = || {
            let link = lock(&self.peers[task as usize].link);
            link.sessions.last().filter(|_| link.takes(life)).cloned()
        };
        match current() {
            Some(session) => Ok(session),
            // The peer may have connected meanwhile.
            None => self.connect(task, life).or_else(|error| current().ok_or(error)),
        }
    }

    fn connect(self: &Arc<Self>, task: u32, life: u64) -> Result<Arc<Session>, Error> {
        let session = match (&self.nodes[task as usize].address, self.key) {
            (Address::Unix(path), _) => connect_unix(path, &self.settings)?,
            (Address::Tcp(at), Some(key)) => connect_tcp(*at, key, &self.settings)?,
            (Address::Tcp(_), None) => unreachable!("a TCP address has a key"),
        };
        let session = Arc::new(session);
        self.hello(&session, life)?;
        let other = || Error::Lost("the peer is another process".to_owned());
        let of_peer = self.peer_of(&session).filter(|hello| hello.task == task).ok_or_else(other)?.life;
        let (begin, begins) = channel();
        let taking = session.clone();
        let taken = self.spawn(move |shared| {
            // Never where the session is not used.
            if begins.recv().is_ok() {
                shared.take_all(task, life, taking);
            }
        });
        taken.map_err(|error| Error::System("a thread", error))?;
        self.meet(task, of_peer);
        if !self.publish(task, life, of_peer, &session) {
            return Err(other());
        }
        let _ = begin.send(());
        Ok(session)
    }
}
