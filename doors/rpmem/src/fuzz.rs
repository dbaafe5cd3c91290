//! What the daemon reads of others: set files, headers of parts, and requests.

use crate::attributes::Attributes;
use crate::disk::{self, HEADER, Header, Place};
use crate::wire::{Answer, Depth, Range, Request, VERSION};
use openlapi::fuzz::{Seed, Target, seed};

/// The targets of this crate.
pub const TARGETS: &[Target] = &[
    Target { name: "rpmem_set", feed: set, seeds: set_seeds },
    Target { name: "rpmem_header", feed: header, seeds: header_seeds },
    Target { name: "rpmem_request", feed: request, seeds: request_seeds },
];

fn set(text: &[u8]) -> bool {
    let Ok(set) = disk::parse(text) else { return false };
    assert!(!set.parts.is_empty() && set.headers() <= set.parts.len());
    for page in [4096, 65536] {
        let is_mapped = set.check_pages(page).is_ok();
        assert!(is_mapped || page != 4096);
        let pieces = (0..set.parts.len()).map(|part| set.piece(part, page));
        let sizes = pieces.map(|(start, length)| {
            assert!(!is_mapped || start.is_multiple_of(page) && length.is_multiple_of(page));
            assert!(length >= disk::MIN_PART / 2);
            length
        });
        assert_eq!(sizes.sum::<u64>(), set.size(page));
    }
    true
}

fn header(bytes: &[u8]) -> bool {
    let Some(bytes) = bytes.first_chunk::<HEADER>() else { return false };
    let Ok(header) = Header::decode(bytes) else { return false };
    // What is written again is read again.
    let again = header.encode(header.is_single());
    let read = Header::decode(&again);
    read.is_ok_and(|read| read.place == header.place && read.attributes.poolset == header.attributes.poolset)
}

fn request(bytes: &[u8]) -> bool {
    if let Some(answer) = Answer::decode(bytes) {
        assert!(Answer::decode(&answer.encode()) == Some(answer));
        return true;
    }
    let Some(request) = Request::decode(bytes) else { return false };
    if !matches!(request, Request::Start { version, .. } if version != VERSION) {
        assert_eq!(request.encode(), bytes);
    }
    true
}

fn attributes() -> Attributes {
    Attributes {
        signature: *b"PMEMOBJ\0",
        major: 6,
        compat: 1,
        incompat: 6,
        uuid: [2; 16],
        ..Default::default()
    }
}

fn set_seeds() -> Vec<Seed> {
    vec![
        seed("parts", b"PMEMPOOLSET\n# two\n2M /a\n3000kB /b # here\n".to_vec()),
        seed("options", b"PMEMPOOLSET\nOPTION SINGLEHDR\n4MiB\t/a\n".to_vec()),
        seed("no_headers", b"PMEMPOOLSET\n1G /a\nOPTION NOHDRS\n".to_vec()),
    ]
}

fn header_seeds() -> Vec<Seed> {
    let place = Place { uuid: [2; 16], prev_part: [3; 16], next_part: [4; 16] };
    let header = Header { attributes: attributes(), place, created: 7, is_dirty: true, devices: [0; 2] };
    vec![seed("part", header.encode(false).to_vec()), seed("single", header.encode(true).to_vec())]
}

fn request_seeds() -> Vec<Seed> {
    let range = Range { offset: 4096, length: 64 };
    vec![
        seed("open", Request::Start { version: VERSION, size: 8192, lanes: 4, create: None }.encode()),
        seed(
            "create",
            Request::Start { version: VERSION, size: 1 << 25, lanes: 9, create: Some(attributes()) }.encode(),
        ),
        seed("persist", Request::Persist { lane: 3, range, depth: Depth::Deep }.encode()),
        seed("flush", Request::Flush { lane: 3, range }.encode()),
        seed("drain", Request::Drain { lane: 3, flushes: 2 }.encode()),
        seed("attributes", Request::SetAttributes(attributes()).encode()),
        seed("close", Request::Close.encode()),
        seed("done", Answer::Done { lane: 3, errno: 5 }.encode()),
    ]
}
