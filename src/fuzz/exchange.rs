//! What tasks publish for each other at start-up, and how launchers and sockets carry it.

use super::{Reader, Seed, Target, seed};
use crate::job::exchange::pieces::{LONGEST as LONGEST_VALUE, Whole, cut};
use crate::job::exchange::pmi1::wire::{Fault, Incoming, LONGEST_REPLY, Request as Pmi};
use crate::job::exchange::slurm::host_list;
use crate::job::start_up::greeting::{Answer, By, Called, Caller, Heard, SUBJECT};
use crate::wire::card::{self, Candidate, Card};
use crate::wire::exchange::{
    Values, decode_table, decode_values, encode_table, encode_values, frame, take_frame,
};

/// What a task publishes about itself.
pub const CARD: Target = Target { name: "card", feed: card, seeds: cards };

/// Values, tables and frames.
pub const EXCHANGE: Target = Target { name: "exchange", feed: exchange, seeds: frames };

/// The replies of a launcher by PMI-1, and values in pieces.
pub const PMI: Target = Target { name: "pmi", feed: pmi, seeds: replies };

/// The connections by which a job on several machines starts, and Slurm's lists of hosts.
pub const START_UP: Target = Target { name: "start_up", feed: start_up, seeds: connections };

fn card(bytes: &[u8]) -> bool {
    let Some(card) = Card::decode(bytes) else { return false };
    assert!(bytes.len() <= card::LONGEST);
    assert_eq!(card.encode().as_deref(), Some(bytes));
    true
}

fn cards() -> Vec<Seed> {
    let alone = Card { host: 7, host_name: "node".into(), pid: 5, ..Card::default() };
    let rails = Card {
        provider: "tcp;ofi_rxm".into(),
        addresses: vec![vec![1; 16], vec![2; 16]],
        networks: vec!["192.0.2.0/24".into(), String::new()],
        ..alone.clone()
    };
    let address = |address: &str| address.parse().ok();
    let candidate = |at: &str| Candidate {
        interface: "eth0".into(),
        address: address(at),
        network: "192.0.2.0/24".into(),
    };
    let candidates = Card {
        net: 9,
        ports: [4711, 4712],
        candidates: ["192.0.2.1", "2001:db8::1", "none"].map(candidate).into(),
        ..alone.clone()
    };
    let failed = Card { failure: "there is no libfabric".into(), ..alone };
    let encoded = |card: Card| card.encode().expect("it is short");
    vec![
        seed("rails", encoded(rails)),
        seed("failed", encoded(failed)),
        seed("candidates", encoded(candidates)),
    ]
}

fn values() -> Values {
    Values::from([("address".to_owned(), vec![5; 30]), ("empty".to_owned(), Vec::new())])
}

fn exchange(bytes: &[u8]) -> bool {
    let values = decode_values(bytes);
    if let Some(values) = &values {
        let again = encode_values(values);
        assert!(again.len() <= bytes.len());
        assert_eq!(decode_values(&again).as_ref(), Some(values));
    }
    let table = decode_table(bytes);
    if let Some(table) = &table {
        let again = encode_table(table);
        assert!(again.len() <= bytes.len());
        assert_eq!(decode_table(&again).as_ref(), Some(table));
    }
    let longest = 64;
    let (mut input, mut taken) = (bytes.to_vec(), Vec::new());
    let refused = loop {
        match take_frame(&mut input, longest) {
            Ok(Some(found)) => {
                assert!(found.len() <= longest);
                taken.extend(frame(&found));
            }
            Ok(None) => break false,
            Err(length) => break length > longest,
        }
    };
    let framed = !refused && input.is_empty() && !bytes.is_empty();
    taken.extend(input);
    assert_eq!(taken, bytes, "nothing is lost");
    values.is_some() || table.is_some() || framed
}

fn frames() -> Vec<Seed> {
    vec![
        seed("values", encode_values(&values())),
        seed("table", encode_table(&[values(), Values::new(), values()])),
        seed("frames", [frame(b"one"), frame(b""), frame(&[3; 60])].concat()),
    ]
}

/// The input: how the bytes are cut, and the bytes of a reply. The value in it is a
/// value in one piece.
fn pmi(bytes: &[u8]) -> bool {
    let mut reader = Reader(bytes);
    let step = 1 + usize::from(reader.byte());
    let (mut incoming, mut rest) = (Incoming::default(), reader);
    let line = loop {
        if rest.is_empty() {
            return false;
        }
        match incoming.add(rest.bytes(step)) {
            Ok(Some(line)) => break line,
            Ok(None) => assert!(incoming.held() < LONGEST_REPLY),
            Err(fault) => {
                assert!(matches!(fault, Fault::Garbage(_)));
                return false;
            }
        }
    };
    let read = &reader.0[..reader.0.len() - rest.0.len()];
    assert_eq!([&line[..], b"\n"].concat(), read);
    assert!(!line.contains(&b'\n') && read.len() < LONGEST_REPLY + step);
    let (kvsname, key) = ("kvs", "key");
    let put = Pmi::Put { kvsname, key, value: "value" };
    let requests = [Pmi::Init, Pmi::GetMaxes, Pmi::GetMyKvsname, put, Pmi::BarrierIn, Pmi::Finalize];
    let mut accepted = requests.iter().filter(|request| request.reply_in(&line).is_ok()).count();
    match (Pmi::Get { kvsname, key }).reply_in(&line) {
        Ok(reply) => {
            assert_eq!(reply.word("cmd"), Some("get_result"));
            assert!(matches!(reply.word("rc"), None | Some("0")));
            if let Some(value) = reply.word("value") {
                whole(value);
            }
            accepted += 1;
        }
        Err(Fault::Refused(why)) => assert!(!why.contains('\n') && why.len() <= line.len()),
        // Each byte of the 30 that are shown may need four characters, or a character ten.
        Err(Fault::Garbage(why)) => assert!(why.len() < 400),
    }
    assert!(accepted <= 1, "the reply to one request is not that to another one");
    accepted == 1
}

/// A value, as far as the text is one: what is cut again from it is put together again.
fn whole(text: &str) {
    let Ok(Some(value)) = Whole::default().add(text) else { return };
    assert!(value.len() <= LONGEST_VALUE && value.len() <= text.len());
    let mut again = Whole::default();
    let pieces = cut(&value, 9 + value.len() % 40);
    let (last, others) = pieces.split_last().expect("a value has a piece");
    assert!(others.iter().all(|piece| again.add(piece) == Ok(None)));
    assert_eq!(again.add(last), Ok(Some(value)));
}

fn replies() -> Vec<Seed> {
    let value = cut(b"some bytes", 1000).concat();
    // As Hydra and Slurm write them; the first byte says how they are cut.
    let reply = |name, step: u8, text: &str| seed(name, [&[step][..], text.as_bytes(), b"\n"].concat());
    vec![
        reply("init", 255, "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1"),
        reply("maxes", 3, "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024"),
        reply("get", 10, &format!("cmd=get_result rc=0 msg=success value={value}")),
        reply("barrier", 0, "cmd=barrier_out"),
    ]
}

/// The input: how far a connection has come, where the next message is changed, and what stands
/// there; the rest is what a stranger sends. A message that was changed is never believed.
fn start_up(bytes: &[u8]) -> bool {
    let mut reader = Reader(bytes);
    let (stage, at, change) = (reader.byte() % 4, usize::from(reader.short()), reader.byte());
    let listed = std::str::from_utf8(reader.0).ok().and_then(host_list::first);
    if let Some(host) = &listed {
        assert!(host.len() <= reader.0.len());
        assert_eq!(host_list::first(host).as_ref(), Some(host));
    }
    strangers(reader.0);
    let changed = |of: u8, message: &[u8]| {
        let mut message = message.to_vec();
        let at = at % message.len();
        message[at] ^= if of == stage { change } else { 0 };
        message
    };
    let subject = [9; SUBJECT];
    let (mut caller, mut called) = (Caller::new([7; 16], &subject), Called::new([7; 16]));
    let Heard::Reply(reply) = called.read(&changed(0, caller.hello()), |_| true) else {
        assert!(stage == 0 && change != 0, "a whole hello");
        return listed.is_some();
    };
    let Answer::Proved(last, ours) = caller.read(&changed(1, &reply)) else {
        assert!(stage < 2 && change != 0, "a whole reply");
        return listed.is_some();
    };
    let Heard::Proved(of, theirs) = called.read(&changed(2, &last), |_| true) else {
        assert!(stage == 2 && change != 0, "a whole proof");
        return listed.is_some();
    };
    assert!(of == subject && (change == 0 || stage == 3), "it was changed on the way");
    let sealed = ours.sealed(By::Caller, &encode_values(&values()));
    let opened = theirs.opened(By::Caller, &changed(3, &sealed[4..])).and_then(decode_values);
    assert_eq!(opened == Some(values()), change == 0);
    assert!(opened.is_none() || change == 0);
    change == 0
}

/// Bytes of a stranger without the secret, to both sides.
fn strangers(bytes: &[u8]) {
    let (mut caller, mut called) = (Caller::new([7; 16], &[9; SUBJECT]), Called::new([7; 16]));
    let mut rest = bytes;
    while called.wanted() > 0 && !rest.is_empty() {
        let (some, others) = rest.split_at(rest.len().min(called.wanted()));
        rest = others;
        match called.read(some, |_| true) {
            Heard::More | Heard::Reply(_) => {}
            Heard::Stranger | Heard::WrongSecret => break,
            Heard::Proved(..) => panic!("without the secret"),
        }
    }
    for piece in bytes.chunks(90) {
        match caller.read(piece) {
            Answer::More => {}
            Answer::Proved(..) => panic!("without the secret"),
            Answer::WrongSecret(_) | Answer::Stranger => return,
        }
    }
}

fn connections() -> Vec<Seed> {
    let connection = |stage: u8, rest: &[u8]| [&[stage, 0, 0, 0], rest].concat();
    vec![
        seed("hello", connection(0, &[&b"LAPICON1"[..], &[1; 48]].concat())),
        seed("reply", connection(1, &[&b"LAPICON1"[..], &[1; 32]].concat())),
        seed("proof", connection(2, b"")),
        seed("values", connection(3, b"rack[2-3]node[01-03]-ib,x")),
    ]
}
