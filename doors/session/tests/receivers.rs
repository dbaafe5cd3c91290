//! Receivers, which give the places of messages' data, and sides that the peer may send messages
//! to and nothing else.

use openlapi_session::{Change, Error, Place, Receiver, Routes, Session, Settings, accept, connect};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const ROUTES: [Routes; 2] = [Routes::SHARED_MEMORY, Routes::UDP];
const ROOM: usize = 1 << 20;

fn settings(routes: Routes) -> Settings {
    Settings { routes, patience: Duration::from_secs(100), ..Settings::default() }
}

/// A session of two threads; this side is opened by the first settings.
fn pair(own: &Settings, other: &Settings) -> [Session; 2] {
    let (one, two) = UnixStream::pair().expect("sockets");
    let [here, there] =
        [one, two].map(|end| -> [OwnedFd; 2] { [end.try_clone().expect("a socket").into(), end.into()] });
    std::thread::scope(|scope| {
        let [read, write] = there;
        let peer = scope.spawn(move || connect(read, write, other).expect("a session"));
        let [read, write] = here;
        [accept(read, write, own).expect("a session"), peer.join().expect("a thread")]
    })
}

/// Memory to which headers name an offset. Beyond it they are refused.
struct Memory {
    bytes: *mut u8,
    ended: Mutex<Vec<usize>>,
    refused: AtomicU64,
}

// SAFETY: the memory is read by a test when nothing is under way, and the rest is synchronized.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

// SAFETY: the range is within the memory, which outlives the session; the test uses no range twice
// at a time.
unsafe impl Receiver for Memory {
    fn begin(&self, header: &[u8], length: usize, here: Option<&[u8]>) -> Place {
        assert!(here.is_none_or(|here| here.len() == length));
        let Ok(offset) = header.try_into().map(u64::from_le_bytes) else { return Place::Inbox };
        match (offset as usize).checked_add(length) {
            Some(end) if end <= ROOM => {
                Place::At(self.bytes.wrapping_add(offset as usize), offset as usize + 1)
            }
            _ => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                Place::Nowhere
            }
        }
    }

    fn end(&self, number: usize) {
        self.ended.lock().expect("no panic").push(number);
    }
}

#[test]
fn a_receiver_gives_places_or_refuses() {
    for route in ROUTES {
        let mut memory = vec![0_u8; ROOM];
        let receiver =
            Arc::new(Memory { bytes: memory.as_mut_ptr(), ended: Mutex::default(), refused: 0.into() });
        let own = Settings { receiver: Some(receiver.clone()), ..settings(route) };
        let [own, peer] = pair(&own, &settings(route));
        let sizes = [0, 1, 8, 100, 4096, 70_000, 300_000];
        let mut model = vec![0_u8; ROOM];
        let fenced = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| {
                let mut at = 0_usize;
                let mut sent = Vec::new();
                for (turn, length) in sizes.into_iter().enumerate() {
                    let data: Vec<u8> = (0..length).map(|byte| (byte * 7 + turn + 1) as u8).collect();
                    peer.post(&(at as u64).to_le_bytes(), &data).expect("a message");
                    // A range that is not within the memory.
                    peer.send(&(ROOM as u64 - 3).to_le_bytes(), &vec![0xee; length.max(4)]).expect("another");
                    sent.push((at, data));
                    at += length;
                }
                peer.send(b"over", b"for the inbox").expect("a message");
                peer.fence().expect("an open session");
                fenced.store(true, Ordering::Release);
                own.wake();
                sent
            });
            let late = Some(Instant::now() + Duration::from_secs(300));
            let last = own.receive(late).expect("an open session").expect("in time");
            assert_eq!((&last.header[..], &last.data[..]), (&b"over"[..], &b"for the inbox"[..]));
            // The fence waits for this side's progress.
            assert!(own.wait(late, || fenced.load(Ordering::Acquire)).expect("an open session"));
            let all = || receiver.ended.lock().expect("no panic").len() == sizes.len();
            assert!(own.wait(late, all).expect("an open session"));
            for (at, data) in sender.join().expect("a sender") {
                model[at..at + data.len()].copy_from_slice(&data);
            }
        });
        assert!(own.take().is_none(), "{route}: a message of the receiver is in the inbox");
        drop(own);
        assert_eq!(receiver.refused.load(Ordering::Relaxed), sizes.len() as u64, "{route}");
        let mut ended = std::mem::take(&mut *receiver.ended.lock().expect("no panic"));
        ended.sort_unstable();
        let mut at = 1;
        let starts = sizes.map(|length| {
            at += length;
            at - length
        });
        assert_eq!(ended, starts, "{route}");
        assert!(memory == model, "{route}: other bytes than were sent");
    }
}

/// What the peer does with an address of this side.
type Attack = fn(&Session, u64) -> openlapi_session::Result<()>;

#[test]
fn a_guarded_side_is_reached_by_messages_alone() {
    let attacks: [(&str, Attack); 4] = [
        ("put", |peer, at| {
            let data = [0xee_u8; 8];
            // SAFETY: the data lives until the session has ended; the other side is guarded.
            unsafe { peer.write(data.as_ptr(), 8, at) }
        }),
        ("long put", |peer, at| {
            let data = vec![0xee_u8; 1 << 17];
            // SAFETY: as above.
            unsafe { peer.write(data.as_ptr(), data.len(), at) }
        }),
        ("get", |peer, at| {
            let mut data = [7_u8; 8];
            // SAFETY: as above.
            let got = unsafe { peer.read(data.as_mut_ptr(), 8, at) };
            assert_eq!(data, [7; 8], "the memory was read");
            got
        }),
        ("fetch", |peer, at| {
            // SAFETY: as above.
            unsafe { peer.fetch(at, Change::Add(1)) }.map(drop)
        }),
    ];
    for (name, attack) in attacks {
        let memory: Box<[AtomicU64]> = (0..1 << 14).map(|_| AtomicU64::new(5)).collect();
        let at = memory.as_ptr().expose_provenance() as u64;
        let guarded = Settings { guarded: true, ..settings(Routes::ALL) };
        let [own, peer] = pair(&Settings { routes: Routes::UDP, ..guarded }, &settings(Routes::ALL));
        std::thread::scope(|scope| {
            let peer = scope.spawn(move || {
                peer.send(b"", b"allowed").expect("a message");
                peer.fence().expect("an open session");
                let failed = attack(&peer, at).expect_err("it is refused");
                assert!(matches!(failed, Error::Lost(_)), "{failed}");
            });
            let late = Some(Instant::now() + Duration::from_secs(300));
            let first = own.receive(late).expect("an open session").expect("in time");
            assert_eq!(first.data, b"allowed");
            let error = own.receive(late).expect_err("the peer has named an address");
            assert!(matches!(&error, Error::Lost(why) if why.contains("malformed")), "{name}: {error}");
            drop(own);
            peer.join().expect("a peer");
        });
        assert!(memory.iter().all(|word| word.load(Ordering::Relaxed) == 5), "{name} has changed memory");
    }
}
