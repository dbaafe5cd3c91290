//! What `poe` and a task on another machine read from each other.

use std::cell::OnceCell;
use std::os::unix::fs::FileExt;

use openlapi::fuzz::{Reader, Seed, Target, seed};
use openlapi::job::start_up::greeting::SUBJECT;
use openlapi::wire::board::{CARD, INSTANCES, RECORD, Word, card_at, size};

use super::super::notes::Note;
use super::super::openings::Openings;
use super::link::{ConnectionKind, HubContact, KINDS, claimed, read_list, subject, write_list};
use super::mirror::{Mirror, put_end};
use super::task::Order;

/// The connections: their first bytes, the order, and the notes.
pub const LINK: Target = Target { name: "poe_link", feed: link, seeds: first_bytes };

/// The changes of the tasks' files.
pub const MIRROR: Target = Target { name: "poe_mirror", feed: mirror, seeds: changes };

const SECRET: &str = "0123456789abcdef0123456789abcdef";

fn link(bytes: &[u8]) -> bool {
    let variable = std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<HubContact>().ok());
    if let Some(link) = &variable {
        assert_eq!(link.to_string().parse().as_ref(), Ok(link));
    }
    let claim = bytes.first_chunk::<SUBJECT>().and_then(|of| Some((of, claimed(of)?)));
    if let Some((of, (task, kind))) = claim {
        assert_eq!(subject(task, kind), *of);
    }
    let mut rest = bytes;
    let list = read_list(&mut rest).ok();
    if let Some(list) = &list {
        let mut again = Vec::new();
        write_list(&mut again, list).expect("memory takes it");
        assert_eq!([&again, rest].concat(), bytes);
    }
    let order = list.and_then(Order::parse).is_some();
    let mut rest = bytes;
    let note = Note::read(&mut rest).ok();
    if let Some(note) = note {
        let mut again = Vec::new();
        note.write(&mut again).expect("memory takes it");
        assert_eq!(Note::read(&mut &again[..]).ok(), Some(note));
    }
    variable.is_some() || claim.is_some() || order || note.is_some()
}

fn first_bytes() -> Vec<Seed> {
    let item = |text: &str| text.as_bytes().to_vec();
    let mut order = Vec::new();
    let list = [Note::VERSION, "/dir", "2", "./a", "x=1", "1", "A=b=c", "EMPTY="].map(item);
    write_list(&mut order, &list).expect("memory takes it");
    let mut note = Vec::new();
    Note::Exited { task: 3, status: 1 }.write(&mut note).expect("memory takes it");
    let mut reply = Vec::new();
    Note::Reply { task: 3, number: 1, length: 70 }.write(&mut reply).expect("memory takes it");
    const { assert!(KINDS.len() == 4) };
    vec![
        seed("variable", format!("192.0.2.1,fe80::1;4711;{SECRET};PMI_RANK")),
        seed("claim", subject(3, ConnectionKind::Output)),
        seed("order", order),
        seed("note", note),
        seed("reply", reply),
    ]
}

const TASKS: u32 = 3;
const OWN: u32 = 1;

thread_local! {
    /// One file for all inputs.
    static FILE: OnceCell<(Openings, Mirror, std::fs::File)> = const { OnceCell::new() };
}

/// The input: changes of the other tasks' parts of the file. What the task itself has
/// written stays.
fn mirror(bytes: &[u8]) -> bool {
    FILE.with(|file| {
        let (_, mirror, file) = file.get_or_init(|| {
            let mut openings = Openings::create(TASKS as usize, "7").expect("a memory file");
            let (file, bell) = openings.share().expect("a socket");
            let again = file.try_clone().expect("a descriptor");
            (openings, Mirror::new(file, bell, TASKS as usize, OWN as usize), again)
        });
        let read = |at, len: u64| {
            let mut bytes = vec![0; len as usize];
            file.read_exact_at(&mut bytes, at).expect("it is in the file");
            bytes
        };
        let own = || {
            let first = card_at(TASKS, OWN, 0, 0);
            let after = card_at(TASKS, OWN + 1, 0, 0);
            // Of the cards the first and the last bytes: there is no place beyond them, and between
            // them no other one's.
            let ends = [read(first, 64), read(after - 64, 64), read(card_at(TASKS, OWN, 3, 1), CARD)];
            (read(Word::Opened(0).at(OWN), RECORD), ends)
        };
        let before = own();
        let applied = mirror.apply(bytes).is_ok();
        assert_eq!(own(), before, "its own part is what the task has written");
        let after = file.metadata().expect("it is open").len();
        assert_eq!(after, size(TASKS), "the file has its length");
        const { assert!(OWN + 1 < TASKS && INSTANCES > 3) };
        applied && !Reader(bytes).is_empty()
    })
}

fn changes() -> Vec<Seed> {
    let mut end = Vec::new();
    put_end(&mut end, 2);
    let change =
        |at: u64, bytes: &[u8]| [&at.to_le_bytes()[..], &(bytes.len() as u32).to_le_bytes(), bytes].concat();
    let card = card_at(TASKS, 0, 3, 1);
    let record = change(Word::Opened(0).at(2), &[1; RECORD as usize]);
    vec![
        seed("end", end),
        seed("card", [change(card, &[0; 8]), change(card + 8, b"a card")].concat()),
        seed("record", record),
        seed("own_record", change(Word::Opened(0).at(OWN), &[1; 16])),
        seed("own_card", change(card_at(TASKS, OWN, 3, 1), b"of another one")),
    ]
}
