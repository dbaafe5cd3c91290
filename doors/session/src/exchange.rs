//! What the cores of the two sides publish at start-up, carried by the channel.

use crate::error::Error;
use crate::line::Line;
use crate::wire::{MessageKind, Side};
use openlapi::abi::{LAPI_ERR_CSS_LOAD_FAILED, LAPI_ERR_NO_CONNECTIVITY};
use openlapi::error::{Error as CoreError, Result};
use openlapi::job::exchange::Exchange;
use openlapi::wire::exchange::{Values, decode_values, encode_values};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The exchange of one side.
pub struct ByChannel {
    line: Arc<Mutex<Line>>,
    side: Side,
    /// Published since the last fence.
    fresh: Values,
    /// By task: what was published.
    values: [Values; 2],
    failed: Failed,
}

/// Why the channel has failed, or that no network was found: the core's error is a number that many
/// failures share, and a text.
pub type Failed = Arc<Mutex<Option<Error>>>;

impl ByChannel {
    /// The exchange of this side of a line.
    pub fn new(line: Arc<Mutex<Line>>, side: Side, failed: Failed) -> Self {
        Self { line, side, fresh: Values::new(), values: [Values::new(), Values::new()], failed }
    }

    fn failed(&self, error: Error) -> CoreError {
        let code = match error {
            Error::Late(_) => LAPI_ERR_NO_CONNECTIVITY,
            _ => LAPI_ERR_CSS_LOAD_FAILED,
        };
        let failed = CoreError::new(code, error.to_string());
        self.note(error);
        failed
    }

    fn note(&self, error: Error) {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}

impl Exchange for ByChannel {
    fn name(&self) -> &'static str {
        "the channel"
    }

    fn publish(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.fresh.insert(key.to_owned(), value.to_vec());
        Ok(())
    }

    fn fence(&mut self, deadline: Instant) -> Result<()> {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let theirs = line.exchange(MessageKind::Values, &encode_values(&self.fresh), deadline);
        drop(line);
        let theirs = theirs.map_err(|error| self.failed(error))?;
        let theirs =
            decode_values(&theirs).ok_or_else(|| self.failed(Error::Forged("values that are none")))?;
        let [own, peer] = [self.side, self.side.peer()].map(|side| side.task() as usize);
        self.values[own].append(&mut self.fresh);
        self.values[peer].extend(theirs);
        Ok(())
    }

    fn lookup(&mut self, task: u32, key: &str) -> Result<Vec<u8>> {
        let found = self.values.get(task as usize).and_then(|values| values.get(key)).cloned();
        found.ok_or_else(|| {
            CoreError::new(LAPI_ERR_CSS_LOAD_FAILED, format!("the other process has sent no \"{key}\""))
        })
    }

    fn note_no_network(&mut self, what: &str) {
        self.note(Error::NoRoute(what.to_owned()));
    }
}

/// Why no core was opened: what has failed on the channel, or that no network reaches the other
/// side, and otherwise what the core says.
pub fn no_core(error: CoreError, failed: &Failed) -> Error {
    let failed = failed.lock().unwrap_or_else(PoisonError::into_inner).take();
    failed.unwrap_or(Error::Core(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Channel;
    use crate::handshake::Trust;
    use crate::wire::{Card, LONGEST, Routes};
    use std::time::Duration;

    fn late() -> Instant {
        Instant::now() + Duration::from_secs(30)
    }

    /// The exchanges of two sides that know each other, by pipes.
    fn both() -> [ByChannel; 2] {
        let [(read, write), (other_read, other_write)] = [(), ()].map(|()| std::io::pipe().expect("a pipe"));
        let begin = |side, channel| {
            let own = Card::own(Routes::ALL);
            let (line, _) = Line::shake(channel, side, Trust::Channel, &own, late()).expect("a peer");
            ByChannel::new(Arc::new(Mutex::new(line)), side, Failed::default())
        };
        std::thread::scope(|scope| {
            let channel = Channel::pipes(read.into(), other_write.into());
            let other = scope.spawn(move || begin(Side::Connecting, channel));
            let own = begin(Side::Accepting, Channel::pipes(other_read.into(), write.into()));
            [own, other.join().expect("a side")]
        })
    }

    /// More than a pipe has room for, in both directions at once.
    #[test]
    fn values_of_any_length_up_to_that_of_a_frame_are_exchanged() {
        let [mut own, mut peer] = both();
        let longest = LONGEST - 100;
        own.publish("key", &vec![1; longest]).expect("room");
        peer.publish("key", &vec![2; longest]).expect("room");
        std::thread::scope(|scope| {
            let peer = scope.spawn(|| peer.fence(late()).map(|()| peer.lookup(0, "key")));
            own.fence(late()).expect("an exchange");
            assert!(own.lookup(1, "key").expect("a value") == vec![2; longest]);
            let theirs = peer.join().expect("a side").expect("an exchange");
            assert!(theirs.expect("a value") == vec![1; longest]);
        });
        own.publish("key", &vec![1; LONGEST]).expect("room");
        let error = own.fence(late()).expect_err("it is too long");
        assert!(error.detail.contains("at most 262144"), "{}", error.detail);
    }
}
