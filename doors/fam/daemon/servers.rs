//! The servers of memory of a pool, as its keeper sees them: its own, and those of other daemons,
//! which it asks by sessions.

use crate::log;
use crate::memory::Memory;
use crate::work::Work;
use fam::files::Address;
use fam::reach::{failure, reach};
use fam::wire::{Answer, Ask, Message, Role, SECRET, Sealed, Ticket, VERSION, decode_answer, encode};
use fam::{FamError, Result};
use openlapi_session::{Routes, Session, Settings};
use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// How long another daemon may take to answer.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How long a reply is waited for at least: only calls move the packets of a session, and another
/// one may have been waited for until now.
const LEAST: Duration = Duration::from_secs(1);

/// How long after a try to connect to a daemon the next one begins, at least: news of one daemon
/// are no reason to try another.
const BETWEEN_TRIES: Duration = Duration::from_millis(500);

/// How sessions with other daemons are opened.
pub fn settings() -> Settings {
    let routes = Routes(Routes::SHARED_MEMORY.0 | Routes::UDP.0);
    Settings { routes, patience: Duration::from_secs(5), guarded: true, ..Settings::default() }
}

/// A session with another daemon.
pub struct Remote {
    /// Where it listens.
    pub address: Address,
    session: Option<Session>,
    last: u64,
    /// Another one for each session.
    pub serial: u64,
    /// What a thread that connects gives: a host that does not answer holds up nothing.
    coming: Option<mpsc::Receiver<Result<Remote>>>,
    /// When the last of them began.
    tried: Option<Instant>,
    /// What the log says of why there is none.
    refused: String,
    /// Replies of this session that came before one that is waited for.
    early: BTreeMap<u64, Reply>,
}

/// A message of a daemon, and its data.
type Reply = (Message, Vec<u8>);

impl Remote {
    /// One without a session.
    pub fn new(address: Address) -> Self {
        Self {
            address,
            session: None,
            last: 0,
            serial: 0,
            coming: None,
            tried: None,
            refused: String::new(),
            early: BTreeMap::new(),
        }
    }

    /// Whether the session goes on, if there is one.
    fn is_up(&mut self) -> bool {
        if self.session.as_ref().is_some_and(|session| session.progress().is_err()) {
            self.session = None;
        }
        self.session.is_some()
    }

    /// Opens a session, unless there is one.
    ///
    /// # Errors
    /// Those of [`reach`], and what the daemon says.
    pub fn ensure(&mut self) -> Result<()> {
        if self.is_up() { Ok(()) } else { self.connect() }
    }

    /// Opens a session, as the keeper.
    ///
    /// # Errors
    /// Those of [`reach`], and what the daemon says.
    fn connect(&mut self) -> Result<()> {
        let user = rustix::process::geteuid().as_raw();
        let session = reach(&self.address, &settings())?;
        // Another user may have taken the name, and would learn the secret of the pool.
        if session.user().is_some_and(|other| other.uid != user) {
            let why = format!("what listens at {} is another user's", self.address);
            return Err(FamError::NoPerm.because(why));
        }
        self.session = Some(session);
        self.early.clear();
        self.serial += 1;
        let group = rustix::process::getegid().as_raw();
        let hello = Ask::Hello { version: VERSION, role: Role::Keeper, user, group };
        self.ask(&hello).map(drop).inspect_err(|_| self.session = None)
    }

    /// Has a thread connect, unless one does, and tell by `when_ready` that it is done.
    fn begin_to_connect(&mut self, when_ready: impl FnOnce() + Send + 'static) {
        if self.coming.is_some() || self.tried.is_some_and(|when| when.elapsed() < BETWEEN_TRIES) {
            return;
        }
        self.tried = Some(Instant::now());
        let (give, coming) = mpsc::channel();
        let mut fresh = Self::new(self.address.clone());
        let connect = move || {
            let connected = fresh.connect();
            let _ = give.send(connected.map(|()| fresh));
            when_ready();
        };
        // Where there is no thread, the next look tries again.
        if std::thread::Builder::new().name("connect".to_owned()).spawn(connect).is_ok() {
            self.coming = Some(coming);
        }
    }

    /// Takes the session that a thread opens, for which it waits until then at most. `None`: there
    /// is none.
    fn connected(&mut self, until: Instant) -> Option<Result<()>> {
        let coming = self.coming.as_ref()?;
        let fresh = coming.recv_timeout(until.saturating_duration_since(Instant::now()));
        if matches!(fresh, Err(RecvTimeoutError::Timeout)) {
            return None;
        }
        self.coming = None;
        fresh.ok().map(|fresh| {
            fresh.map(|fresh| {
                (self.session, self.last) = (fresh.session, fresh.last);
                self.early.clear();
                self.serial += 1;
            })
        })
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// [`FamError::Rpc`], and what the daemon says.
    pub fn ask(&mut self, ask: &Ask) -> Result<Answer> {
        let number = self.post_question(ask)?;
        self.answer(number, Instant::now() + PATIENCE)
    }

    /// Asks: the number of the answer.
    ///
    /// # Errors
    /// Those of [`Self::post`].
    pub fn post_question(&mut self, ask: &Ask) -> Result<u64> {
        let number = self.next();
        self.post(&Message::Ask { number }, &encode(ask))?;
        Ok(number)
    }

    /// Waits for the answer to the question of this number, until then at most.
    ///
    /// # Errors
    /// Those of [`Self::reply`], and what the daemon says.
    pub fn answer(&mut self, number: u64, until: Instant) -> Result<Answer> {
        match self.reply(number, until)? {
            (Message::Answer { .. }, body) => decode_answer(&body),
            (Message::Done { code, .. }, _) if code != 0 => {
                Err(FamError::of(code).because("the daemon refuses"))
            }
            _ => Err(FamError::Rpc.because("the daemon has answered something else")),
        }
    }

    /// The number of the next operation.
    pub fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Sends a message.
    ///
    /// # Errors
    /// [`FamError::Rpc`]: the session is over.
    pub fn post(&mut self, message: &Message, data: &[u8]) -> Result<()> {
        let down = || FamError::Rpc.because(format!("the daemon at {} is not there", self.address));
        let session = self.session.as_ref().ok_or_else(down)?;
        let posted = session.post(&message.encode(), data).map_err(|error| failure(&self.address, &error));
        posted.inspect_err(|_| self.session = None)
    }

    /// Waits for the reply to the message of this number, until then at most, or for [`LEAST`].
    /// Replies come in any order.
    ///
    /// # Errors
    /// [`FamError::Rpc`], [`FamError::Timeout`]: the session is over.
    pub fn reply(&mut self, number: u64, until: Instant) -> Result<Reply> {
        self.try_reply(number, until).inspect_err(|_| self.session = None)
    }

    fn try_reply(&mut self, number: u64, until: Instant) -> Result<Reply> {
        if let Some(reply) = self.early.remove(&number) {
            return Ok(reply);
        }
        let lost = |error| failure(&self.address, &error);
        let down = || FamError::Rpc.because(format!("the daemon at {} is not there", self.address));
        let session = self.session.as_ref().ok_or_else(down)?;
        let until = until.max(Instant::now() + LEAST);
        while let Some(reply) = session.receive(Some(until)).map_err(lost)? {
            let header = Message::decode(&reply.header).filter(|header| header.number() <= self.last);
            let header = header.ok_or_else(down)?;
            if header.number() == number {
                return Ok((header, reply.data));
            }
            self.early.insert(header.number(), (header, reply.data));
        }
        Err(FamError::Timeout.because(format!("the daemon at {} does not answer", self.address)))
    }
}

/// What a keeper asks of a server of memory, done by this daemon's own.
///
/// # Errors
/// What the memory refuses; [`FamError::InvalidOp`]: another server is to be asked.
pub fn by_memory(memory: &Memory, ask: &Ask) -> Result<Answer> {
    match *ask {
        Ask::Join { pool, secret, ref parts } => memory.join(pool, secret, parts),
        Ask::MakePart { part, size, kind } => memory.make_part(part, size, kind),
        Ask::ResizePart { part, size, grows_only } => memory.resize_part(part, size, grows_only),
        Ask::RemovePart { part } => memory.remove_part(part),
        Ask::Clear { part, offset, length } => memory.clear(part, offset, length),
        Ask::Withdraw { item } => memory.withdraw(item),
        _ => Err(FamError::InvalidOp.because("it is not asked of a server of memory")),
    }
}

/// What memory a server has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Offer {
    volatile: bool,
    persistent: bool,
}

/// What a look after the servers has found.
#[derive(Debug, Default)]
pub struct News {
    /// The servers that have joined.
    pub joined: Vec<u64>,
    /// Parts that a server does not have any more: server and part.
    pub lost: Vec<(u64, u64)>,
}

/// All servers.
pub struct Servers {
    own: Arc<Memory>,
    others: BTreeMap<u64, Remote>,
    offers: BTreeMap<u64, Offer>,
    pool: u128,
    /// The secret of tickets. Another one whenever a server joins: it may have restarted, and then
    /// does not know which items are gone.
    secret: [u8; SECRET],
    /// Those that this keeper has drawn before, the last [`MOST_SECRETS`].
    earlier: VecDeque<[u8; SECRET]>,
    /// Whom a thread tells that has connected.
    work: mpsc::Sender<Work>,
}

/// How many secrets a keeper remembers: as many times servers may join while a program keeps a
/// descriptor and copies.
const MOST_SECRETS: usize = 256;

impl Servers {
    /// This daemon's own memory, and other daemons.
    pub fn new(
        own: Arc<Memory>,
        others: BTreeMap<u64, Address>,
        pool: u128,
        work: mpsc::Sender<Work>,
    ) -> Self {
        let secret = openlapi::base::random::random();
        let others = others.into_iter().map(|(server, address)| (server, Remote::new(address))).collect();
        Self { own, others, offers: BTreeMap::new(), pool, secret, earlier: VecDeque::new(), work }
    }

    /// The secret of tickets of now.
    pub fn secret(&self) -> [u8; SECRET] {
        self.secret
    }

    fn set_secret(&mut self, secret: [u8; SECRET]) {
        let old = std::mem::replace(&mut self.secret, secret);
        self.earlier.push_front(old);
        self.earlier.truncate(MOST_SECRETS);
    }

    /// What a ticket says that this keeper has sealed, also before a server has joined: the keeper
    /// knows itself which items are gone, and an item stays where it is.
    pub fn unsealed(&self, ticket: &Sealed) -> Option<Ticket> {
        let secrets = std::iter::once(self.secret()).chain(self.earlier.iter().copied());
        secrets.into_iter().find_map(|secret| ticket.open(&secret))
    }

    /// The numbers and the addresses of all; the own one has none.
    pub fn listed(&self) -> Vec<fam::wire::Server> {
        let own = fam::wire::Server { server: self.own.server, address: String::new() };
        let others = self.others.iter().map(|(server, remote)| fam::wire::Server {
            server: *server,
            address: remote.address.to_string(),
        });
        std::iter::once(own).chain(others).collect()
    }

    /// Has servers that are down connected to, and takes those that are connected until then.
    /// `known` says which parts lie on a server.
    pub fn look(&mut self, until: Instant, known: impl Fn(u64) -> Vec<u64>) -> News {
        let News { joined: mut new, mut lost } = News::default();
        for (server, remote) in &mut self.others {
            if remote.is_up() {
                continue;
            }
            self.offers.remove(server);
            match remote.connected(until) {
                Some(Ok(())) => {
                    remote.refused.clear();
                    new.push(*server);
                }
                // One that listens, and is no daemon for this one, as of another version.
                Some(Err(failure)) if [FamError::NoPerm, FamError::Rpc].contains(&failure.error) => {
                    if remote.refused != failure.text {
                        log::line(&format!("server {server} of memory: {}", failure.text));
                        remote.refused = failure.text;
                    }
                }
                Some(Err(_)) => {}
                None => {
                    let work = self.work.clone();
                    remote.begin_to_connect(move || drop(work.send(Work::Connected)));
                }
            }
        }
        let up = self.others.iter().filter(|(_, remote)| remote.session.is_some()).map(|(server, _)| server);
        if up.chain([&self.own.server]).all(|server| self.offers.contains_key(server)) && new.is_empty() {
            return News::default();
        }
        let secret = openlapi::base::random::random();
        self.set_secret(secret);
        let all: Vec<u64> = self.others.keys().copied().chain([self.own.server]).collect();
        for server in all {
            let parts = known(server);
            let ask = Ask::Join { pool: self.pool, secret, parts: parts.clone() };
            match self.ask(server, &ask) {
                Ok(Answer::Joined { parts: found, has_volatile, has_persistent }) => {
                    if self
                        .offers
                        .insert(server, Offer { volatile: has_volatile, persistent: has_persistent })
                        != Some(Offer { volatile: has_volatile, persistent: has_persistent })
                    {
                        log::line(&format!("server {server} of memory has joined"));
                    }
                    let missing = parts.into_iter().filter(|part| !found.contains(part));
                    lost.extend(missing.map(|part| (server, part)));
                }
                Ok(_) => log::line(&format!("server {server} has answered something else")),
                Err(failure) => {
                    self.offers.remove(&server);
                    if self.others.get(&server).is_none_or(|remote| remote.session.is_some()) {
                        log::line(&failure.text);
                    }
                }
            }
        }
        if self.offers.contains_key(&self.own.server) && !new.contains(&self.own.server) {
            new.push(self.own.server);
        }
        News { joined: new, lost }
    }

    /// The servers that have such memory, in the order of their numbers.
    pub fn with(&self, is_persistent: bool) -> Vec<u64> {
        let has = |offer: &Offer| if is_persistent { offer.persistent } else { offer.volatile };
        self.offers.iter().filter(|(_, offer)| has(offer)).map(|(server, _)| *server).collect()
    }

    /// Asks a server.
    ///
    /// # Errors
    /// [`FamError::Rpc`]: it is not there. What it refuses.
    pub fn ask(&mut self, server: u64, ask: &Ask) -> Result<Answer> {
        if server == self.own.server {
            return by_memory(&self.own, ask);
        }
        match self.others.get_mut(&server) {
            Some(remote) => remote.ask(ask),
            None => Err(FamError::Rpc.because(format!("server {server} is not in memsrv_list any more"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fam::wire::{Piece, READ};

    #[test]
    fn a_ticket_outlives_the_secret_that_has_sealed_it() {
        let own = Arc::new(Memory::new(0, None, Box::new(|| ())).expect("a memory"));
        let mut servers = Servers::new(own, BTreeMap::new(), 1, mpsc::channel().0);
        let pieces = vec![Piece { server: 0, part: 1, offset: 0, length: 8 }];
        let ticket = Ticket { item: 9, user: 1, rights: READ, size: 8, block: 8, pieces };
        let sealed = Sealed::new(&ticket, &servers.secret());
        for _ in 0..MOST_SECRETS {
            servers.set_secret(openlapi::base::random::random());
            assert_eq!(servers.unsealed(&sealed).as_ref(), Some(&ticket));
        }
        servers.set_secret([2; SECRET]);
        assert_eq!(servers.unsealed(&sealed), None);
        assert_eq!(servers.unsealed(&Sealed::new(&ticket, &[0; SECRET])), None);
    }
}
