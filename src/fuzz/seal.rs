//! The opening of datagrams.

use super::{Reader, Seed, Target, seed};
use crate::transport::udp::seal::{ENVELOPE, End, JobKey, Opener, Refused, Sealer, Security};
use sha2::{Digest, Sha256};

/// What makes a datagram the job's own.
pub const SEAL: Target = Target { name: "seal", feed: seal, seeds };

/// Each input has a key of its own: a fuzzer that sees what is compared finds the tag
/// of another one.
fn connected(security: Security, input: &[u8]) -> (Sealer, Opener) {
    let digest: [u8; 32] = Sha256::digest(input).into();
    let key = JobKey::new(digest.first_chunk().expect("32 bytes"), security);
    let end = |task, epoch| End { task, epoch, nonce: [task as u8; 16] };
    let (a, b) = (end(3, 7 << 32 | 1), end(5, 9));
    (key.connect(&a, &b).0, key.connect(&b, &a).1)
}

/// The input: the mode, how many bytes of a datagram are changed, each with its place, and the
/// content; which a stranger sends, too.
fn seal(bytes: &[u8]) -> bool {
    let mut reader = Reader(bytes);
    let [mode, changes] = [reader.byte(), reader.byte() % 8];
    let security = [Security::Auth, Security::Encrypt, Security::None][usize::from(mode % 3)];
    let changes: Vec<_> = (0..changes).map(|_| (usize::from(reader.short()), reader.byte())).collect();
    let content = reader.0;
    let (mut sealer, mut opener) = connected(security, bytes);
    let mut opened = |datagram: &[u8]| opener.open(&mut datagram.to_vec()).map(<[u8]>::to_vec);
    let mut sealed = vec![0; ENVELOPE + content.len()];
    sealer.seal([content, &[]], &mut sealed);
    let mut changed = sealed.clone();
    for (at, bits) in changes {
        let at = at % changed.len();
        changed[at] ^= bits;
    }
    if security != Security::None {
        assert!(opened(content).is_err(), "no other side has the key");
        // The last bytes may be cut off on the way.
        assert_eq!(opened(&sealed[..sealed.len() - 1]), Err(Refused::Forged));
        assert!(changed == sealed || opened(&changed).is_err());
    } else if changed[..ENVELOPE] != sealed[..ENVELOPE] && changed[16..ENVELOPE] != sealed[16..ENVELOPE] {
        assert!(opened(&changed).is_err(), "the tag is wrong");
    }
    // What was refused has changed nothing.
    assert_eq!(opened(&sealed).as_deref(), Ok(content));
    assert_eq!(opened(&sealed), Err(Refused::Replayed));
    true
}

fn seeds() -> Vec<Seed> {
    let content = b"content of a datagram, some 40 bytes long";
    vec![
        seed("changed", [&[0, 2, 0, 0, 1, 40, 0, 128][..], content].concat()),
        seed("encrypted", [&[1, 1, 20, 0, 1][..], content].concat()),
        seed("constant_tag", [&[2, 1, 20, 0, 1][..], content].concat()),
        seed("empty", [1, 0]),
    ]
}
