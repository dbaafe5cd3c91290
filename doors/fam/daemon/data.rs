//! The thread for data: an event loop over all sessions. It does what messages ask, sends the
//! replies, and passes on what is asked of the keeper's thread.
//!
//! After something has come from a session, the loop looks for more for a short time; then it
//! sleeps on the session's descriptor.

use crate::guest::{Guest, Reply};
use crate::log;
use crate::work::{Asked, Work};
use fam::wire::Message;
use openlapi::base::clock::ticks;
use openlapi_session::Session;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use std::collections::{BTreeMap, VecDeque};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

/// How many ticks the loop looks for more from a session before it sleeps: 60 to 300 µs.
const LOOK: u64 = 300_000;
/// For this number of ticks after something has come, the loop does not offer its processor to
/// others: 4 to 20 µs.
const HURRY: u64 = 20_000;
/// After this number of ticks without a sleep, sessions that sleep are looked at: 10 to 50 µs.
const PAUSE: u64 = 50_000;
/// Data of more bytes than this is sent from where it is.
const SHORT: usize = 4096;
/// With more bytes than this waiting for a session's peer, its replies are kept: sending them would
/// pause the loop.
const MOST_WAITING: usize = 256 << 10;
/// Bytes that a message takes beside its data, about.
const MESSAGE: usize = 128;
/// After this number of bytes of replies it is looked how many bytes wait.
const UNSEEN: usize = 16 << 10;
/// How many such sends of a session go on at a time.
const MOST_LONG: usize = 8;
/// The number of the bell among the descriptors.
const BELL: u64 = 0;

/// What wakes the loop.
#[derive(Clone)]
pub struct Bell(Arc<Rung>);

struct Rung {
    descriptor: OwnedFd,
    is_rung: AtomicBool,
    has_ended: AtomicBool,
}

impl Bell {
    /// One that was not rung.
    ///
    /// # Errors
    /// The system's.
    pub fn new() -> std::io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let [is_rung, has_ended] = [(); 2].map(|()| AtomicBool::new(false));
        Ok(Self(Arc::new(Rung { descriptor: eventfd(0, flags)?, is_rung, has_ended })))
    }

    /// Wakes the loop.
    pub fn ring(&self) {
        if !self.0.is_rung.swap(true, Ordering::SeqCst) {
            let _ = rustix::io::write(&self.0.descriptor, &1_u64.to_ne_bytes());
        }
    }

    /// Has the loop end, after all sessions.
    pub fn end(&self) {
        self.0.has_ended.store(true, Ordering::SeqCst);
        self.ring();
    }

    /// Whether [`Self::end`] was called.
    pub fn has_ended(&self) -> bool {
        self.0.has_ended.load(Ordering::SeqCst)
    }

    fn hear(&self) {
        let _ = rustix::io::read(&self.0.descriptor, &mut [0; 8]);
        self.0.is_rung.store(false, Ordering::SeqCst);
    }
}

/// New sessions, on their way to the loop. After the bell's end there are none.
pub type Newcomers = Arc<Mutex<Vec<(Session, Arc<Guest>)>>>;

/// A send from an item's memory, until nothing of the session reads there.
struct Long {
    /// Rises by 2.
    ended: Box<AtomicI32>,
    _source: Source,
}

enum Source {
    Item { _reading: crate::opened::Reading },
    Gathered { _data: Vec<u8> },
}

struct Served {
    session: Arc<Session>,
    guest: Arc<Guest>,
    /// Questions that wait until the peer takes answers: their numbers and bodies.
    questions: VecDeque<(u64, Vec<u8>)>,
    long: VecDeque<Long>,
    /// Replies that were taken from the guest. The first one may wait until the peer takes some.
    replies: VecDeque<Reply>,
    /// Bytes that were sent since it was looked how many wait.
    unseen: usize,
    /// When something has come last, in ticks.
    active: u64,
}

/// The event loop.
pub struct Data {
    epoll: OwnedFd,
    bell: Bell,
    newcomers: Newcomers,
    asked: mpsc::Sender<Work>,
    all: BTreeMap<u64, Served>,
    awake: Vec<u64>,
    last: u64,
}

impl Data {
    /// A loop without sessions.
    ///
    /// # Errors
    /// The system's.
    pub fn new(bell: Bell, newcomers: Newcomers, asked: mpsc::Sender<Work>) -> std::io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &bell.0.descriptor, epoll::EventData::new_u64(BELL), epoll::EventFlags::IN)?;
        Ok(Self { epoll, bell, newcomers, asked, all: BTreeMap::new(), awake: Vec::new(), last: BELL })
    }

    /// Serves the sessions until [`Bell::end`].
    pub fn run(mut self) {
        let (mut active, mut looked) = (ticks(), ticks());
        while !self.bell.has_ended() {
            let mut moved = false;
            for at in (0..self.awake.len()).rev() {
                let number = self.awake[at];
                match self.step(number) {
                    Step::Moved => moved = true,
                    Step::Quiet => {}
                    Step::Asleep | Step::Over => drop(self.awake.swap_remove(at)),
                }
            }
            let mut now = ticks();
            if self.awake.is_empty() {
                self.sleep(None);
                now = ticks();
                (active, looked) = (now, now);
            } else if now.wrapping_sub(looked) > PAUSE {
                self.sleep(Some(Timespec { tv_sec: 0, tv_nsec: 0 }));
                looked = now;
            }
            if moved {
                active = now;
            } else if now.wrapping_sub(active) < HURRY {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        for number in self.all.keys().copied().collect::<Vec<u64>>() {
            self.end(number);
        }
        self.newcomers.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Waits until something is there to do, at most for this time.
    fn sleep(&mut self, limit: Option<Timespec>) {
        let mut space = [MaybeUninit::<epoll::Event>::uninit(); 64];
        let Ok((events, _)) = epoll::wait(&self.epoll, &mut space, limit.as_ref()) else { return };
        let mut rung = false;
        for event in events.iter() {
            match event.data.u64() {
                BELL => rung = true,
                number => self.wake(number),
            }
        }
        if rung {
            self.answer_bell();
        }
    }

    fn answer_bell(&mut self) {
        self.bell.hear();
        let newcomers = std::mem::take(&mut *self.newcomers.lock().unwrap_or_else(PoisonError::into_inner));
        for (session, guest) in newcomers {
            self.last += 1;
            let data = epoll::EventData::new_u64(self.last);
            if let Err(error) = epoll::add(&self.epoll, &session, data, epoll::EventFlags::IN) {
                log::line(&format!("a session: {error}"));
                continue;
            }
            self.all.insert(self.last, Served::new(session, guest));
            self.awake.push(self.last);
        }
        let doomed = self.all.iter().filter(|(_, served)| served.guest.is_doomed.load(Ordering::SeqCst));
        for number in doomed.map(|(number, _)| *number).collect::<Vec<u64>>() {
            self.end(number);
            self.awake.retain(|awake| *awake != number);
        }
    }

    /// A session that slept has something.
    fn wake(&mut self, number: u64) {
        let Some(served) = self.all.get_mut(&number) else { return };
        served.active = ticks();
        if served.session.progress().is_err() {
            return self.end(number);
        }
        if !self.awake.contains(&number) {
            self.awake.push(number);
        }
    }

    /// One round of a session.
    fn step(&mut self, number: u64) -> Step {
        let Some(served) = self.all.get_mut(&number) else { return Step::Over };
        let moved = served.round(&self.asked);
        if served.guest.is_doomed.load(Ordering::SeqCst) {
            self.end(number);
            return Step::Over;
        }
        match moved {
            Ok(true) => {
                served.active = ticks();
                Step::Moved
            }
            Ok(false) if ticks().wrapping_sub(served.active) < LOOK => Step::Quiet,
            Ok(false) => match served.session.arm() {
                Ok(true) => Step::Asleep,
                // It sleeps no more, and looks around.
                Ok(false) if served.session.progress().is_ok() => Step::Quiet,
                Ok(false) | Err(_) => {
                    self.end(number);
                    Step::Over
                }
            },
            Err(()) => {
                self.end(number);
                Step::Over
            }
        }
    }

    /// Ends a session: after that nothing uses memory for it.
    fn end(&mut self, number: u64) {
        if let Some(served) = self.all.remove(&number) {
            let _ = epoll::delete(&self.epoll, &*served.session);
            served.session.end();
            served.guest.clear();
        }
    }
}

enum Step {
    Moved,
    Quiet,
    Asleep,
    Over,
}

impl Served {
    fn new(session: Session, guest: Arc<Guest>) -> Self {
        Self {
            session: Arc::new(session),
            guest,
            questions: VecDeque::new(),
            long: VecDeque::new(),
            replies: VecDeque::new(),
            unseen: 0,
            active: ticks(),
        }
    }

    /// Takes what has come, and replies. Returns whether anything moved.
    fn round(&mut self, asked: &mpsc::Sender<Work>) -> Result<bool, ()> {
        let mut moved = self.session.poll().map_err(drop)?;
        while let Some(message) = self.session.take() {
            moved = true;
            match Message::decode(&message.header) {
                Some(Message::Ask { number }) => self.questions.push_back((number, message.data)),
                Some(vector) => self.guest.vector(&vector, &message.data),
                None => return Err(()),
            }
        }
        while self.guest.may_ask() {
            let Some((number, body)) = self.questions.pop_front() else { break };
            moved = true;
            self.guest.has_asked(body.len());
            let (session, guest) = (self.session.clone(), self.guest.clone());
            let _ = asked.send(Work::Asked(Asked { session, guest, number, body }));
        }
        while self.long.front().is_some_and(|long| long.ended.load(Ordering::Acquire) >= 2) {
            self.long.pop_front();
            moved = true;
        }
        if !self.guest.take_replies(&mut self.replies) {
            // It has much done, and takes nothing.
            return Err(());
        }
        while self.may_reply().map_err(drop)? {
            let Some(reply) = self.replies.pop_front() else { break };
            moved = true;
            self.reply(reply).map_err(drop)?;
        }
        Ok(moved)
    }

    /// Whether the next reply can be sent without a pause.
    fn may_reply(&mut self) -> openlapi_session::Result<bool> {
        let length = match self.replies.front() {
            None => return Ok(false),
            Some(Reply::Data(_, reading)) => reading.length,
            Some(Reply::Gathered(_, data) | Reply::Answer(_, data)) => data.len(),
            Some(Reply::Done(..) | Reply::Old(..)) => 0,
        };
        if self.unseen > UNSEEN {
            if self.session.waiting()? > MOST_WAITING {
                return Ok(false);
            }
            self.unseen = 0;
        }
        if length > SHORT && self.long.len() == MOST_LONG {
            return Ok(false);
        }
        self.unseen += length + MESSAGE;
        Ok(true)
    }

    fn reply(&mut self, reply: Reply) -> openlapi_session::Result<()> {
        let (number, at, length, source) = match reply {
            Reply::Done(number, code) => {
                return self.session.post(&Message::Done { number, code }.encode(), &[]);
            }
            Reply::Old(number, value) => {
                return self.session.post(&Message::Old { number, value }.encode(), &[]);
            }
            Reply::Answer(number, body) => {
                self.guest.has_sent_answer(body.len());
                return self.session.post(&Message::Answer { number }.encode(), &body);
            }
            Reply::Data(number, reading) => {
                (number, reading.at, reading.length, Source::Item { _reading: reading })
            }
            Reply::Gathered(number, data) => {
                self.guest.has_sent(data.len());
                (number, data.as_ptr(), data.len(), Source::Gathered { _data: data })
            }
        };
        let header = Message::Data { number }.encode();
        if length <= SHORT {
            // SAFETY: `source` keeps the memory during the call. What is shared with other
            // processes may change meanwhile: any bytes will do.
            let data = unsafe { std::slice::from_raw_parts(at, length) };
            return self.session.post(&header, data);
        }
        let long = Long { ended: Box::new(AtomicI32::new(0)), _source: source };
        let ended = long.ended.as_ptr().cast_const().cast::<AtomicI32>();
        self.long.push_back(long);
        // SAFETY: memory and counter live until the counter has risen, or the session is over:
        // `end` ends it before they go.
        unsafe { self.session.send_pieces(&header, &[(at, length)], ended) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::MOST_ASKED;
    use crate::marks::Label;
    use crate::opened::Opened;
    use crate::parts::Part;
    use fam::wire::{PartKind, READ, WRITE};
    use openlapi_session::{Routes, Settings, accept, connect};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::time::{Duration, Instant};

    const LATE: Duration = Duration::from_secs(100);

    /// A session of the daemon with its guest, and its peer.
    fn sessions() -> (Session, Arc<Guest>, Session) {
        let guest = Arc::new(Guest::default());
        let other = Settings { routes: Routes::SHARED_MEMORY, patience: LATE, ..Settings::default() };
        let own = Settings { receiver: Some(guest.clone()), guarded: true, ..other.clone() };
        let (here, there) = UnixStream::pair().expect("sockets");
        let ends =
            |end: UnixStream| -> [OwnedFd; 2] { [end.try_clone().expect("a socket").into(), end.into()] };
        let ([read, write], there) = (ends(here), ends(there));
        let peer = std::thread::spawn(move || {
            let [read, write] = there;
            connect(read, write, &other).expect("a session")
        });
        let session = accept(read, write, &own).expect("a session");
        (session, guest, peer.join().expect("a session"))
    }

    /// A session of the loop, and its peer.
    fn pair() -> (Served, Session) {
        let (session, guest, peer) = sessions();
        (Served::new(session, guest), peer)
    }

    #[test]
    fn after_the_end_no_session_writes() {
        let (session, guest, peer) = sessions();
        let part = Part::make(Label { pool: 1, part: 1 }, 1 << 16, PartKind::Volatile, None);
        let part = Arc::new(part.expect("a part"));
        let byte = || {
            // SAFETY: a byte of the part's mapping; what is written there at a time is read.
            unsafe { part.at(0).read_volatile() }
        };
        let opened = Opened::new((9, READ | WRITE), part.clone(), (0, 4096), guest.is_doomed.clone());
        let item = guest.add(Arc::new(opened)).expect("a number");
        let (bell, newcomers) = (Bell::new().expect("a bell"), Newcomers::default());
        let new = || Data::new(bell.clone(), newcomers.clone(), mpsc::channel().0).expect("a loop");
        let (data, (ended, has_ended)) = (new(), mpsc::channel());
        newcomers.lock().expect("newcomers").push((session, guest.clone()));
        std::thread::spawn(move || {
            data.run();
            let _ = ended.send(());
        });
        bell.ring();
        let put = |number, byte| peer.post(&Message::Put { number, item, offset: 0 }.encode(), &[byte; 8]);
        put(1, 5).expect("a put");
        let reply = peer.receive(Some(Instant::now() + LATE)).expect("a session").expect("a reply");
        assert_eq!(Message::decode(&reply.header), Some(Message::Done { number: 1, code: 0 }));
        assert_eq!(byte(), 5);
        bell.end();
        has_ended.recv_timeout(LATE).expect("the end of the loop");
        assert!(guest.is_doomed.load(Ordering::SeqCst));
        let _ = put(2, 6);
        assert!(peer.receive(Some(Instant::now() + LATE)).is_err(), "the session goes on");
        assert_eq!(byte(), 5);
        // One that has come since.
        let (session, guest, peer) = sessions();
        newcomers.lock().expect("newcomers").push((session, guest));
        new().run();
        assert!(peer.receive(Some(Instant::now() + LATE)).is_err(), "the session goes on");
    }

    #[test]
    fn questions_wait_while_the_peer_takes_no_answers() {
        const ALL: usize = 3 * MOST_ASKED;
        let (mut served, peer) = pair();
        let (asked, questions) = mpsc::channel();
        let passed = || {
            let questions = questions.try_iter();
            let number = |work| match work {
                Work::Asked(asked) => asked.number,
                _ => panic!("no question"),
            };
            questions.map(number).collect::<Vec<u64>>()
        };
        let until = Instant::now() + LATE;
        for number in 0..ALL as u64 {
            peer.post(&Message::Ask { number }.encode(), &[7; 16]).expect("a question");
            served.round(&asked).expect("a session");
        }
        let mut answered = passed();
        while answered.len() + served.questions.len() < ALL {
            assert!(Instant::now() < until, "they have not come");
            peer.progress().expect("a session");
            served.round(&asked).expect("a session");
            answered.extend(passed());
        }
        assert_eq!(answered.len(), MOST_ASKED);
        // Now the peer takes nothing.
        answered.iter().for_each(|number| served.guest.answer(*number, vec![1; 8192]));
        for _ in 0..1000 {
            served.round(&asked).expect("a session");
        }
        assert!(passed().is_empty() && served.session.waiting().expect("a session") < 2 * MOST_WAITING);
        // Now it does.
        let mut taken = Vec::new();
        while taken.len() < ALL {
            assert!(Instant::now() < until, "answers have not come");
            peer.progress().expect("a session");
            while let Some(message) = peer.take() {
                taken.extend(Message::decode(&message.header).map(|message| message.number()));
            }
            served.round(&asked).expect("a session");
            let more = passed();
            more.iter().for_each(|number| served.guest.answer(*number, vec![1; 8]));
            answered.extend(more);
        }
        assert_eq!((taken, answered), ((0..ALL as u64).collect(), (0..ALL as u64).collect()));
    }
}
