//! What two processes do by a session: everything that it offers, checked at both sides.

use openlapi_session::{Change, Error, Message, Result, Session};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Bytes of the memory that the serving side lends.
pub const ROOM: usize = 1 << 20;
const SIZES: [usize; 7] = [1, 8, 100, 4096, 5000, 70_000, ROOM];

/// Bytes that depend on their place and on the turn.
pub fn pattern(turn: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 + at / 251 + turn * 7) as u8).collect()
}

fn message(session: &Session, deadline: Option<Instant>) -> Result<Message> {
    session.receive(deadline)?.ok_or(Error::Late("the next message"))
}

/// Lends memory, and returns what comes, until the peer closes the session. Returns how often the
/// peer has counted.
pub fn serve(session: &Session, deadline: Option<Instant>) -> Result<u64> {
    let mut memory = vec![0_u8; ROOM];
    let counter = Box::new(AtomicU64::new(0));
    let addresses = [memory.as_mut_ptr().expose_provenance(), counter.as_ptr().expose_provenance()];
    session.send(b"memory", &addresses.map(|address| address as u64).map(u64::to_le_bytes).concat())?;
    loop {
        let Message { header, data } = match message(session, deadline) {
            Err(Error::Closed) => return Ok(counter.load(Ordering::Acquire)),
            other => other?,
        };
        match &header[..] {
            // What was put before is in place.
            b"sum" => {
                let length = u64::from_le_bytes(data.try_into().expect("8 bytes")) as usize;
                session.send(b"sum", &memory[..length])?;
            }
            _ => session.send(&header, &data)?,
        }
    }
}

/// Puts, gets, counts and sends; panics when the peer has something else than it should.
pub fn call(session: &Session, deadline: Option<Instant>) -> Result<()> {
    let first = message(session, deadline)?;
    assert_eq!(first.header, b"memory");
    let address = |at: usize| u64::from_le_bytes(first.data[at..at + 8].try_into().expect("8 bytes"));
    let [memory, counter] = [address(0), address(8)];
    for (turn, length) in SIZES.into_iter().enumerate() {
        let (data, mut back) = (pattern(turn, length), vec![0; length]);
        // SAFETY: the peer lends ROOM bytes until the session is closed, and the two buffers live
        // beyond the fences.
        unsafe {
            session.put(data.as_ptr(), length, memory)?;
            session.fence()?;
            session.get(back.as_mut_ptr(), length, memory)?;
        }
        session.fence()?;
        assert!(back == data, "{length} bytes that were put and got");
        let other = pattern(turn + 1, length);
        // SAFETY: the same.
        unsafe {
            session.write(other.as_ptr(), length, memory)?;
            session.read(back.as_mut_ptr(), length, memory)?;
            assert!(back == other, "{length} bytes that were written and read");
            session.write(data.as_ptr(), length, memory)?;
        }
        session.send(b"sum", &(length as u64).to_le_bytes())?;
        let seen = message(session, deadline)?;
        assert!(seen.header == b"sum" && seen.data == data, "{length} bytes that the peer sees");
        session.send(&data[..length.min(1020)], &data)?;
        let returned = message(session, deadline)?;
        assert!(returned.header == data[..length.min(1020)] && returned.data == data, "{length} bytes sent");
    }
    session.send(b"empty", b"")?;
    assert_eq!(message(session, deadline)?, Message { header: b"empty".to_vec(), data: Vec::new() });
    for (change, returned) in [
        (Change::Add(5), 0),
        (Change::Or(8), 5),
        (Change::CompareAndSwap { expected: 1, new: 99 }, 0),
        (Change::CompareAndSwap { expected: 13, new: 40 }, 1),
        (Change::Swap(7), 40),
    ] {
        // SAFETY: the peer's counter, which lives until the session is closed.
        assert_eq!(unsafe { session.fetch(counter, change) }?, returned, "{change:?}");
    }
    // SAFETY: the same.
    assert!(matches!(unsafe { session.fetch(counter + 4, Change::Add(1)) }, Err(Error::Core(_))));
    assert!(matches!(session.send(&[0; 1021], b""), Err(Error::Limit(_))));
    Ok(())
}
