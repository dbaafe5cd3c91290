//! The lines of PMI-1: words `name=value`, the first of them `cmd=`, and a line feed. Every request
//! has one reply.

use std::fmt;

/// The longest line of a request, with its end: Slurm's limit is 1024, Hydra's is higher.
pub const LONGEST_REQUEST: usize = 1000;
/// The longest line of a reply that is read.
pub const LONGEST_REPLY: usize = 8192;

/// What a task asks its launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    Init,
    GetMaxes,
    GetMyKvsname,
    Put { kvsname: &'a str, key: &'a str, value: &'a str },
    Get { kvsname: &'a str, key: &'a str },
    BarrierIn,
    Finalize,
}

impl Request<'_> {
    /// The request's line.
    pub fn line(&self) -> String {
        match self {
            Self::Init => "cmd=init pmi_version=1 pmi_subversion=1\n".to_owned(),
            Self::Put { kvsname, key, value } => {
                format!("cmd=put kvsname={kvsname} key={key} value={value}\n")
            }
            Self::Get { kvsname, key } => format!("cmd=get kvsname={kvsname} key={key}\n"),
            _ => format!("cmd={}\n", self.command()),
        }
    }

    /// The command, for messages.
    pub fn command(&self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::GetMaxes => "get_maxes",
            Self::GetMyKvsname => "get_my_kvsname",
            Self::Put { .. } => "put",
            Self::Get { .. } => "get",
            Self::BarrierIn => "barrier_in",
            Self::Finalize => "finalize",
        }
    }

    /// The command of its reply.
    fn reply(&self) -> &'static str {
        match self {
            Self::Init => "response_to_init",
            Self::GetMaxes => "maxes",
            Self::GetMyKvsname => "my_kvsname",
            Self::Put { .. } => "put_result",
            Self::Get { .. } => "get_result",
            Self::BarrierIn => "barrier_out",
            Self::Finalize => "finalize_ack",
        }
    }

    /// The reply in a line, without its end.
    ///
    /// # Errors
    /// The line is no reply to this request, or the launcher has refused the request.
    pub fn reply_in(&self, line: &[u8]) -> Result<Reply, Fault> {
        let text = std::str::from_utf8(line).map_err(|_| Fault::garbage(line))?;
        let words: Option<Vec<(String, String)>> = text
            .split_ascii_whitespace()
            .map(|word| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())))
            .collect();
        let reply = Reply(words.ok_or_else(|| Fault::garbage(line))?);
        if reply.word("cmd") != Some(self.reply()) {
            return Err(Fault::garbage(line));
        }
        match reply.word("rc") {
            None | Some("0") => Ok(reply),
            Some(rc) => {
                let why = reply.word("msg").map_or_else(|| format!("rc={rc}"), str::to_owned);
                Err(Fault::Refused(why))
            }
        }
    }
}

/// The words of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply(Vec<(String, String)>);

impl Reply {
    /// The value of the word of this name.
    pub fn word(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value of a word that is a number.
    pub fn number(&self, name: &str) -> Option<usize> {
        self.word(name)?.parse().ok()
    }
}

/// What is wrong with a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The launcher refuses the request, and the conversation continues.
    Refused(String),
    /// The bytes are no reply: the conversation cannot continue.
    Garbage(String),
}

impl Fault {
    fn garbage(line: &[u8]) -> Self {
        let text: String = String::from_utf8_lossy(line).chars().take(30).collect();
        Self::Garbage(format!("unexpected reply \"{}\"", text.escape_default()))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) | Self::Garbage(why) => f.write_str(why),
        }
    }
}

/// The bytes that have arrived and are not yet a line.
#[derive(Debug, Default)]
pub struct Incoming(Vec<u8>);

impl Incoming {
    /// How many bytes it holds.
    #[cfg(feature = "fuzz")]
    pub fn held(&self) -> usize {
        self.0.len()
    }

    /// Adds bytes; returns the line, without its end, when they complete one.
    ///
    /// # Errors
    /// A line that is too long, or more than a line: a request has one reply, and nothing
    /// comes unasked.
    pub fn add(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        self.0.extend_from_slice(bytes);
        match self.0.iter().position(|byte| *byte == b'\n') {
            None if self.0.len() < LONGEST_REPLY => Ok(None),
            None => Err(Fault::Garbage(format!("a reply longer than {LONGEST_REPLY} bytes"))),
            Some(end) if end + 1 == self.0.len() => {
                let mut line = std::mem::take(&mut self.0);
                line.pop();
                Ok(Some(line))
            }
            Some(end) => Err(Fault::garbage(&self.0[end + 1..])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;

    const GET: Request<'_> = Request::Get { kvsname: "kvs_1", key: "a-0" };

    #[test]
    fn requests() {
        assert_eq!(Request::Init.line(), "cmd=init pmi_version=1 pmi_subversion=1\n");
        assert_eq!(Request::GetMaxes.line(), "cmd=get_maxes\n");
        assert_eq!(Request::BarrierIn.line(), "cmd=barrier_in\n");
        assert_eq!(GET.line(), "cmd=get kvsname=kvs_1 key=a-0\n");
        let put = Request::Put { kvsname: "kvs_1", key: "a-0", value: "3.AAAA" };
        assert_eq!(put.line(), "cmd=put kvsname=kvs_1 key=a-0 value=3.AAAA\n");
    }

    /// As Hydra 4.0.2 and Slurm 22.05 write them.
    #[test]
    fn replies() {
        let reply =
            Request::GetMaxes.reply_in(b"cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024");
        assert_eq!(reply.expect("a reply").number("vallen_max"), Some(1024));
        let reply = GET.reply_in(b"cmd=get_result rc=0 msg=success value=5.AAAAAAA").expect("a reply");
        assert_eq!(
            (reply.word("value"), reply.number("value"), reply.word("none")),
            (Some("5.AAAAAAA"), None, None)
        );
        assert!(Request::BarrierIn.reply_in(b"cmd=barrier_out").is_ok());
        let refused = |text: &str| Err(Fault::Refused(text.to_owned()));
        let line = b"cmd=get_result rc=-1 msg=key_nothing_not_found value=unknown";
        assert_eq!(GET.reply_in(line), refused("key_nothing_not_found"));
        assert_eq!(GET.reply_in(b"cmd=get_result rc=1"), refused("rc=1"));
    }

    #[test]
    fn what_is_no_reply() {
        for line in [
            &b""[..],
            b"cmd=maxes",
            b"cmd=get_resul value=5",
            b"value=5",
            b"cmd=get_result value",
            b"get_result value=5",
            b"\xff\xfe",
            b"HTTP/1.1 400 Bad Request\r",
        ] {
            assert!(matches!(GET.reply_in(line), Err(Fault::Garbage(_))), "{line:?}");
        }
        let long = Fault::garbage(&[0xff; 4000]).to_string();
        assert!(long.chars().count() < 400, "{long}");
        let mut rng = Rng::new(3);
        for _ in 0..5000 {
            let mut line = b"cmd=get_result rc=0 value=abc".to_vec();
            for _ in 0..rng.below(4) {
                let at = rng.below(line.len() as u64) as usize;
                match rng.below(3) {
                    0 => line[at] = rng.below(256) as u8,
                    1 => line.truncate(at.max(1)),
                    _ => line.insert(at, rng.below(256) as u8),
                }
            }
            // Whatever it is, it does not panic, and what is taken for a reply is one.
            if let Ok(reply) = GET.reply_in(&line) {
                assert_eq!(reply.word("cmd"), Some("get_result"));
            }
        }
    }

    #[test]
    fn lines_in_short_reads() {
        let mut rng = Rng::new(4);
        for _ in 0..500 {
            let line: Vec<u8> = (0..rng.below(200)).map(|_| 32 + rng.below(96) as u8).collect();
            let bytes = [&line[..], b"\n"].concat();
            let (mut incoming, mut at) = (Incoming::default(), 0);
            let found = loop {
                let next = (at + 1 + rng.below(40) as usize).min(bytes.len());
                let found = incoming.add(&bytes[at..next]).expect("a line");
                at = next;
                if at == bytes.len() {
                    break found;
                }
                assert_eq!(found, None);
            };
            assert_eq!(found, Some(line));
            assert_eq!(incoming.add(b"n"), Ok(None), "the next line begins afresh");
        }
    }

    #[test]
    fn lines_that_are_too_long_or_too_many() {
        let mut incoming = Incoming::default();
        let fault = (0..1000).find_map(|_| incoming.add(&[b'x'; 100]).err());
        assert!(fault.expect("a limit").to_string().contains("8192"));
        assert!(incoming.0.len() <= LONGEST_REPLY + 100, "memory is bounded");
        let fault = Incoming::default().add(b"cmd=barrier_out\ncmd=abort\n").unwrap_err();
        assert!(fault.to_string().contains("cmd=abort"), "{fault}");
    }
}
