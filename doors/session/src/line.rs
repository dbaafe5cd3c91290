//! Frames on a channel: sent, and waited for, while a session is opened.

use crate::channel::{Channel, Read};
use crate::error::{Error, Result};
use crate::handshake::{Agreed, Handshake, Trust};
use crate::silence::Meaning;
use crate::wire::{Card, Frames, LONGEST, LONGEST_REASON, MessageKind, Side};
use std::io;
use std::time::Instant;

/// A channel whose other side is known.
pub struct Line {
    channel: Channel,
    frames: Frames,
    /// When this side has asked last whether the other host still answers.
    asked: Option<Instant>,
}

/// What the other side has done on a line since the last look.
#[derive(Debug)]
pub enum News {
    /// Nothing.
    None,
    /// The other side has closed the session.
    Bye,
    /// The other side is gone, or the channel has something that it has not sent.
    Gone(String),
}

impl Line {
    /// The line of a handshake that is over.
    pub fn new(channel: Channel, frames: Frames) -> Self {
        Self { channel, frames, asked: None }
    }

    /// Makes the handshake on a channel, as the side that has nothing else to serve.
    ///
    /// # Errors
    /// Those of [`Handshake::read`], [`Error::Lost`], [`Error::Late`], [`Error::System`].
    pub fn shake(
        channel: Channel,
        side: Side,
        trust: Trust,
        own: &Card,
        until: Instant,
    ) -> Result<(Self, Card)> {
        let mut handshake = Handshake::new(side, trust, own);
        loop {
            send(&channel, &handshake.output(), until)?;
            let mut bytes = [0; 4096];
            let wanted = handshake.wanted();
            let read = match channel.read(&mut bytes[..wanted]).map_err(broken)? {
                Read::Bytes(count) => handshake.read(&bytes[..count]),
                Read::Ended => return Err(handshake.ended()),
                Read::Nothing if Instant::now() >= until => {
                    return Err(Error::Late("the other side has not answered"));
                }
                Read::Nothing => {
                    channel.await_readable(until).map_err(broken)?;
                    continue;
                }
            };
            match read {
                Ok(None) => {}
                Ok(Some(Agreed { peer, frames })) => {
                    return Ok((Self::new(channel, frames), peer));
                }
                Err(error) => {
                    // The other side learns of it.
                    let _ = channel.write(&handshake.output());
                    return Err(error);
                }
            }
        }
    }

    /// The channel.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// A secret of both sides, another one for each purpose.
    pub fn secret(&self, purpose: &[u8]) -> [u8; 16] {
        self.frames.secret(purpose)
    }

    /// Sends a frame of this kind, and waits for that of the other side, which may do the same.
    /// Each reads while it writes, so that neither needs room in the channel for a whole frame.
    ///
    /// # Errors
    /// [`Error::Limit`]: a frame has at most [`LONGEST`] bytes. [`Error::Refused`],
    /// [`Error::Closed`], [`Error::Lost`], [`Error::Late`], [`Error::Forged`].
    pub fn exchange(&mut self, kind: MessageKind, body: &[u8], until: Instant) -> Result<Vec<u8>> {
        let frame = self.frames.seal(kind, body);
        if frame.len() > LONGEST {
            return Err(Error::Limit(format!(
                "{} bytes for the other side at the start; at most {LONGEST}",
                frame.len()
            )));
        }
        let (mut unsent, mut answer, mut failed) = (&frame[..], None, None);
        loop {
            if answer.is_none() {
                answer = self.frame(kind)?;
            }
            if let Some(answer) = answer.take_if(|_| unsent.is_empty()) {
                return Ok(answer);
            }
            match self.channel.write(unsent) {
                Ok(written) => unsent = &unsent[written..],
                // It may have said why before it left.
                Err(error) => (unsent, failed) = (&[], Some(error)),
            }
            let mut bytes = [0; 4096];
            match self.channel.read(&mut bytes).map_err(broken)? {
                Read::Bytes(count) => self.frames.push(&bytes[..count]),
                Read::Ended => {
                    let why = failed
                        .map_or_else(|| "it has closed the channel".to_owned(), |error| error.to_string());
                    return Err(Error::Lost(why));
                }
                Read::Nothing if Instant::now() >= until => {
                    return Err(Error::Late("the other side does not open its session"));
                }
                Read::Nothing if unsent.is_empty() && answer.is_some() => {}
                Read::Nothing => self.channel.await_either(!unsent.is_empty(), until).map_err(broken)?,
            }
        }
    }

    /// The next frame, if it is there, which is of this kind.
    fn frame(&mut self, kind: MessageKind) -> Result<Option<Vec<u8>>> {
        match self.frames.next()? {
            Some((found, body)) if found == kind => Ok(Some(body)),
            Some((MessageKind::Failed, body)) => {
                Err(Error::Refused(String::from_utf8_lossy(&body).into_owned()))
            }
            Some((MessageKind::Bye, _)) => Err(Error::Closed),
            Some(_) => Err(Error::Forged("a frame out of its turn")),
            None => Ok(None),
        }
    }

    /// Tells the other side why there is no session, if it still listens.
    pub fn refuse(&mut self, why: &Error) {
        let text = why.to_string();
        let end = (0..=text.len().min(LONGEST_REASON)).rfind(|end| text.is_char_boundary(*end)).unwrap_or(0);
        let _ = self.channel.write(&self.frames.seal(MessageKind::Failed, &text.as_bytes()[..end]));
    }

    /// Tells the other side that this one closes the session, if it still listens.
    pub fn part(&mut self) {
        let _ = self.channel.write(&self.frames.seal(MessageKind::Bye, &[]));
    }

    /// What the silence of the other host means; asks whether it still answers.
    fn listen(&mut self) -> News {
        let Some(signs) = self.channel.signs() else { return News::None };
        match signs.meaning(self.asked.map(|at| at.elapsed())) {
            Meaning::Gone => return News::Gone("its host does not answer".to_owned()),
            // The system sends it again, and its receipt is an answer as good as any.
            Meaning::Ask if signs.is_under_way => self.asked = Some(Instant::now()),
            Meaning::Ask if self.channel.has_room() => {
                let _ = self.channel.write(&self.frames.seal(MessageKind::Ask, &[]));
                self.asked = Some(Instant::now());
            }
            Meaning::Alive | Meaning::Ask | Meaning::Asked => {}
        }
        News::None
    }

    /// When to look next at the latest, where nothing wakes.
    pub fn next_look(&self) -> Option<Instant> {
        let signs = self.channel.signs()?;
        Some(Instant::now() + signs.next(self.asked.map(|at| at.elapsed())))
    }

    /// What the other side has done, as far as this number of reads shows it: one that writes
    /// without a pause does not keep the caller. Once a session is open it has nothing to say but
    /// its end.
    pub fn news(&mut self, reads: u32) -> News {
        let mut bytes = [0; 256];
        let mut left = reads;
        loop {
            match self.frames.next() {
                Ok(Some((MessageKind::Bye, _))) => return News::Bye,
                Ok(Some((MessageKind::Ask, _))) => continue,
                Ok(Some(_)) => return News::Gone("the channel has a frame out of its turn".to_owned()),
                Err(error) => return News::Gone(error.to_string()),
                // What is left wakes the event loop again.
                Ok(None) if left == 0 => return News::None,
                Ok(None) => left -= 1,
            }
            match self.channel.read(&mut bytes) {
                Ok(Read::Bytes(count)) => self.frames.push(&bytes[..count]),
                Ok(Read::Nothing) => return self.listen(),
                Ok(Read::Ended) => return News::Gone("its end of the channel has closed".to_owned()),
                Err(error) => return News::Gone(error.to_string()),
            }
        }
    }
}

fn send(channel: &Channel, bytes: &[u8], until: Instant) -> Result<()> {
    channel.write_all(bytes, until).map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => Error::Late("the other side reads nothing"),
        _ => broken(error),
    })
}

fn broken(error: io::Error) -> Error {
    Error::Lost(format!("the channel: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::{End, Watch};
    use crate::wire::Routes;
    use std::os::unix::net::UnixStream;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    /// Both ends of a line, and what each has said of itself.
    fn lines() -> [(Line, Card); 2] {
        let (one, other) = UnixStream::pair().expect("sockets");
        let until = Instant::now() + Duration::from_secs(100);
        let shake = move |stream: UnixStream, side| {
            let (channel, card) = (Channel::unix(stream).expect("this user"), Card::own(Routes::ALL));
            let (line, _) = Line::shake(channel, side, Trust::Channel, &card, until).expect("a handshake");
            (line, card)
        };
        std::thread::scope(|scope| {
            let connecting = scope.spawn(|| shake(other, Side::Connecting));
            [shake(one, Side::Accepting), connecting.join().expect("a thread")]
        })
    }

    /// Asks often, and closes the session after that.
    fn flood(line: &mut Line) {
        let asks: Vec<u8> = (0..1000).flat_map(|_| line.frames.seal(MessageKind::Ask, &[])).collect();
        line.channel.write_all(&asks, Instant::now()).expect("there is room");
        line.part();
    }

    /// One that asks without a pause keeps nobody, and is heard all the same.
    #[test]
    fn one_look_at_a_line_ends_before_the_other_side_is_silent() {
        let [(mut own, _), (mut other, _)] = lines();
        flood(&mut other);
        let mut looks = 0;
        loop {
            looks += 1;
            match own.news(16) {
                News::None => {}
                News::Bye => break,
                News::Gone(why) => panic!("{why}"),
            }
        }
        assert!(looks > 2, "{looks} looks have read all");
    }

    /// A close of the other side counts, however much stands before it.
    #[test]
    fn the_last_look_at_a_line_reads_all() {
        for fails in [true, false] {
            let [(own, card), (mut other, mut peer)] = lines();
            let mut process = std::process::Command::new("sleep").arg("60").spawn().expect("a process");
            peer.process = openlapi::base::process::Process::of(process.id());
            let watch = Watch::new(Arc::new(Mutex::new(own)), &peer, &card);
            flood(&mut other);
            assert_eq!(watch.look(), None);
            if fails {
                watch.note_failure("a failure".to_owned());
            }
            process.kill().and_then(|()| process.wait()).expect("its end");
            assert_eq!(watch.look(), Some(End::Closed));
        }
    }
}
