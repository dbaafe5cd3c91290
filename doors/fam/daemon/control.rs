//! The thread that answers what is asked, one after the other: a change of names, rights or sizes
//! waits for the disk, and data does not wait for it.

use crate::backup::Order;
use crate::guest::{Guest, Who};
use crate::keeper::{Keeper, Outcome};
use crate::memory::Memory;
use crate::servers::by_memory;
use crate::work::{Asked, Asker, Ready, Work};
use fam::wire::{Answer, Ask, Role, Server, VERSION, decode};
use fam::{FamError, Result};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// How often a keeper looks after the servers of memory.
const LOOK: Duration = Duration::from_secs(1);

/// The thread's state.
pub struct Control {
    memory: Arc<Memory>,
    /// `None`: the daemon has memory alone.
    keeper: Option<Keeper>,
    orders: mpsc::Sender<Order>,
}

impl Control {
    /// One for this memory, and as the keeper of a pool.
    pub fn new(memory: Arc<Memory>, keeper: Option<Keeper>, orders: mpsc::Sender<Order>) -> Self {
        Self { memory, keeper, orders }
    }

    /// Answers until no session can ask any more.
    pub fn run(mut self, work: &mpsc::Receiver<Work>) {
        let mut looked = Instant::now();
        loop {
            // By the clock: what is asked may never stop.
            if looked.elapsed() >= LOOK {
                self.look();
                looked = Instant::now();
            }
            match work.recv_timeout(LOOK) {
                Ok(Work::Asked(asked)) => self.asked(asked),
                Ok(Work::Seal(ticket, give)) => {
                    let none = || FamError::InvalidOp.because("this daemon has memory alone");
                    let keeper = self.keeper.as_ref().ok_or_else(none);
                    let _ = give.send(keeper.and_then(|keeper| keeper.sealed(&ticket)));
                }
                Ok(Work::Moved(ready, asker)) => {
                    let outcome = match (ready, &mut self.keeper) {
                        (Ready::Backup(name, made), Some(keeper)) => keeper.backed_up(&name, made),
                        (Ready::Backup(_, made), None) => made.map(|_| Answer::Done).into(),
                        (Ready::Done(answer), _) => answer.into(),
                    };
                    self.end(outcome, asker);
                }
                Ok(Work::Connected) => self.look(),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn look(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            keeper.look(Instant::now());
        }
    }

    fn asked(&mut self, asked: Asked) {
        let Asked { session, guest, number, body } = asked;
        if guest.is_doomed.load(Ordering::SeqCst) {
            // The session is over: the answer has no reader.
            return;
        }
        let asker = Asker { session, guest: guest.clone(), number };
        let Some(ask) = decode(&body) else {
            // No program of ours asks so.
            guest.is_doomed.store(true, Ordering::SeqCst);
            return asker.answer(&Err(FamError::Invalid.because("nothing that can be asked")));
        };
        let outcome = self.outcome(&asker, &guest, ask);
        self.end(outcome, asker);
    }

    fn end(&self, outcome: Outcome, asker: Asker) {
        match outcome {
            Outcome::Now(answer) => asker.answer(&answer),
            Outcome::Later(job) => {
                let _ = self.orders.send(Order { job, asker });
            }
        }
    }

    fn outcome(&mut self, asker: &Asker, guest: &Guest, ask: Ask) -> Outcome {
        if let Ask::Hello { version, role, user, group } = ask {
            return self.hello(asker, guest, version, (role, user, group)).into();
        }
        let Some(who) = guest.who() else {
            return Outcome::Now(Err(FamError::InvalidOp.because("the session has not begun with a hello")));
        };
        match ask {
            Ask::Open { ticket } => {
                let opened = self.memory.open(&ticket, who.user, &guest.is_doomed);
                let number = opened.and_then(|opened| {
                    let full = || FamError::Resource.because("the session has too many items open");
                    guest.add(opened).ok_or_else(full)
                });
                number.map(|number| Answer::Opened { number }).into()
            }
            Ask::Close { number } => {
                let none = || FamError::NotFound.because("no item has this number");
                guest.remove(number).then_some(Answer::Done).ok_or_else(none).into()
            }
            Ask::Map { number } => Self::map(who, guest, number).into(),
            ask => match &mut self.keeper {
                Some(keeper) => keeper.ask(who, ask),
                None if who.role == Role::Keeper => by_memory(&self.memory, &ask).into(),
                None => Outcome::Now(Err(FamError::InvalidOp.because("this daemon has memory alone"))),
            },
        }
    }

    fn hello(
        &self,
        asker: &Asker,
        guest: &Guest,
        version: u32,
        (role, user, group): (Role, u32, u32),
    ) -> Result<Answer> {
        if version != VERSION {
            let why = format!("the program has version {version} of the messages, the daemon {VERSION}");
            return Err(FamError::Rpc.because(why));
        }
        let (user, group) = asker.session.user().map_or((user, group), |user| (user.uid, user.gid));
        if role == Role::Keeper && user != rustix::process::geteuid().as_raw() {
            return Err(FamError::NoPerm.because("a keeper is a process of the daemon's user"));
        }
        if !guest.set_who(Who { user, group, role }) {
            return Err(FamError::InvalidOp.because("a second hello"));
        }
        let own = || vec![Server { server: self.memory.server, address: String::new() }];
        let servers = self.keeper.as_ref().map_or_else(own, |keeper| keeper.servers().listed());
        Ok(Answer::Hello { version: VERSION, user, group, servers })
    }

    /// A process of the daemon's user can open the daemon's files, and has all of their rights.
    fn map(who: Who, guest: &Guest, number: u32) -> Result<Answer> {
        let opened = guest.item(number);
        let opened = opened.ok_or_else(|| FamError::NotFound.because("no item has this number"))?;
        if who.user != rustix::process::geteuid().as_raw() {
            return Err(FamError::Unimpl.because("memory of the daemon of another user cannot be mapped"));
        }
        let (descriptor, offset) = opened.part.in_file(opened.offset);
        let (process, length, rights) = (std::process::id(), opened.length, opened.rights);
        Ok(Answer::Mapped { process, descriptor, offset, length, rights })
    }
}
