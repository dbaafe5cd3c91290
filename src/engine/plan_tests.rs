use super::*;
use crate::transport::Key;

const ROOM: usize = 8192;
const MEANS: Means = Means {
    body: ROOM,
    packet: ROOM - 8,
    copy_limit: 4096,
    buffer: true,
    keys: true,
    policy: Policy { by_key: true, minimum: 1 << 16, batch: 8, preference: Preference::Auto, crowded: false },
};
const OPEN: Peer = Peer { reach: Reach::Open, polls: true, room: ROOM };
const ALL: Reach = Reach::Keyed(Some(Key { key: 1, offset: 0 }));
const KEYED: Peer = Peer { reach: ALL, ..OPEN };
const ASKING: Peer = Peer { reach: Reach::Keyed(None), ..OPEN };
const PUT: OperationKind = OperationKind::Put { completion: true, target_counter: false, reports: false };
const AM: OperationKind = OperationKind::Am { header: 8, plain: true, copied: false };

const COPIED: Way = Way::Packets { copied: true };
const PACKETS: Way = Way::Packets { copied: false };

fn ways(kind: OperationKind, len: usize, piece: u32, hint: Hint, means: &Means, peer: Peer) -> Vec<Way> {
    plan(&Operation { kind, len, piece, hint }, means, || peer).into_iter().flatten().collect()
}

/// Every combination ends with a way that is never refused, and has only ways that the
/// operation and the peer know.
#[test]
fn the_last_way_is_never_refused() {
    let truth = [false, true];
    let lengths = [0, 1, COPIED_MAX, 129, 4096, 4097, ROOM - 16, ROOM, ROOM + 1, 1 << 16, 1 << 30];
    let puts = truth.iter().flat_map(|&completion| truth.map(|reports| (completion, reports)));
    let puts = puts.flat_map(|(completion, reports)| {
        truth.map(|target_counter| OperationKind::Put { completion, target_counter, reports })
    });
    let messages = [0, 8, 1024].into_iter().flat_map(|header| {
        truth.map(|plain| truth.map(|copied| OperationKind::Am { header, plain, copied }))
    });
    let kinds: Vec<OperationKind> = puts.chain(messages.flatten()).chain([OperationKind::Get]).collect();
    let hints = [Hint::None, Hint::Bulk, Hint::Packets, Hint::OneRail, Hint::BulkOneRail];
    let preferences = [Preference::Auto, Preference::Packets, Preference::Attach];
    let mut seen = 0;
    for bits in 0..1u32 << 6 {
        let bit = |n: u32| bits >> n & 1 != 0;
        let keyed = if bit(2) { ALL } else { Reach::Keyed(None) };
        let reach = [Reach::None, Reach::Open, keyed, keyed][bits as usize & 3];
        let peer = Peer { reach, polls: bit(3), room: ROOM };
        for preference in preferences {
            let policy = Policy { crowded: bit(4), preference, ..MEANS.policy };
            let means = Means { buffer: bit(5), keys: reach == keyed, policy, ..MEANS };
            for (kind, len) in kinds.iter().flat_map(|kind| lengths.map(|len| (*kind, len))) {
                for (piece, hint) in
                    [0, 64, 4096].into_iter().flat_map(|piece| hints.map(|hint| (piece, hint)))
                {
                    let ways = ways(kind, len, piece, hint, &means, peer);
                    let known = |way: &Way| match way {
                        Way::Packets { .. } => true,
                        Way::Copy => {
                            reach == Reach::Open && !matches!(kind, OperationKind::Am { .. }) && len != 0
                        }
                        Way::Write { .. } | Way::WriteLong => {
                            reach == ALL
                                && piece == 0
                                && matches!(kind, OperationKind::Put { target_counter: false, .. })
                        }
                        Way::Offer => {
                            reach == Reach::Open && piece == 0 && matches!(kind, OperationKind::Am { .. })
                        }
                        Way::OfferParts => reach == keyed,
                    };
                    let last = matches!(ways.last(), Some(Way::Packets { .. }));
                    assert!(
                        last && ways.iter().all(known),
                        "{kind:?}, {len}, {piece}, {hint:?}, {peer:?}: {ways:?}"
                    );
                    let wish =
                        preference == Preference::Packets && reach == Reach::Open || hint == Hint::Packets;
                    if wish && preference != Preference::Attach {
                        assert_eq!(ways.len(), 1, "{kind:?}, {len}, {hint:?}: {ways:?}");
                    }
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 500_000, "{seen}");
}

#[test]
fn puts() {
    use Way::*;
    let waited = |reports, target_counter| OperationKind::Put { completion: true, target_counter, reports };
    let unwaited = OperationKind::Put { completion: false, target_counter: false, reports: true };
    for (kind, len, piece, peer, expected) in [
        // What fits a packet goes in one, whatever the peer does.
        (unwaited, 8, 0, OPEN, vec![COPIED]),
        (unwaited, ROOM, 0, OPEN, vec![PACKETS]),
        (PUT, ROOM, 0, OPEN, vec![PACKETS]),
        // Where there is a key of all memory, and the target has nothing to do.
        (PUT, 8, 0, KEYED, vec![Write { copied: true }, COPIED]),
        (PUT, 4096, 0, KEYED, vec![COPIED]),
        (PUT, 4097, 0, KEYED, vec![Write { copied: false }, PACKETS]),
        (waited(true, false), 4097, 0, KEYED, vec![PACKETS]),
        (waited(false, true), 8, 0, KEYED, vec![COPIED]),
        (waited(true, false), 1 << 20, 0, KEYED, vec![Write { copied: false }, WriteLong, PACKETS]),
        (unwaited, 1 << 20, 0, KEYED, vec![WriteLong, PACKETS]),
        (waited(false, true), 1 << 20, 0, KEYED, vec![OfferParts, PACKETS]),
        (PUT, 1 << 20, 0, ASKING, vec![OfferParts, PACKETS]),
        (PUT, 1 << 20, 64, KEYED, vec![OfferParts, PACKETS]),
        (unwaited, 1 << 15, 0, ASKING, vec![PACKETS]),
        // Across address spaces.
        (PUT, 1 << 20, 0, OPEN, vec![PACKETS]),
        (PUT, 1 << 20, 0, Peer { polls: false, ..OPEN }, vec![Copy, PACKETS]),
        (PUT, 1 << 20, 0, Peer { reach: Reach::None, ..OPEN }, vec![PACKETS]),
    ] {
        assert_eq!(ways(kind, len, piece, Hint::None, &MEANS, peer), expected, "{kind:?}, {len}, {peer:?}");
    }
}

#[test]
fn gets_and_active_messages() {
    use Way::*;
    let scattered = OperationKind::Am { header: 8, plain: false, copied: false };
    let headed = OperationKind::Am { header: ROOM - 8, plain: true, copied: false };
    let computing = Peer { polls: false, ..OPEN };
    for (kind, len, piece, peer, expected) in [
        (OperationKind::Get, 8, 0, OPEN, vec![PACKETS]),
        (OperationKind::Get, 8, 0, computing, vec![Copy, PACKETS]),
        (OperationKind::Get, 0, 0, computing, vec![PACKETS]),
        (OperationKind::Get, 1 << 20, 0, OPEN, vec![PACKETS]),
        (OperationKind::Get, 1 << 20, 0, KEYED, vec![OfferParts, PACKETS]),
        (OperationKind::Get, 1 << 20, 64, KEYED, vec![OfferParts, PACKETS]),
        (AM, 8, 0, KEYED, vec![COPIED]),
        (AM, ROOM - 16, 0, computing, vec![PACKETS]),
        (AM, 1 << 20, 0, OPEN, vec![PACKETS]),
        (AM, 1 << 20, 0, computing, vec![Offer, PACKETS]),
        (AM, 1 << 20, 64, computing, vec![PACKETS]),
        (scattered, 1 << 20, 0, computing, vec![PACKETS]),
        (AM, 1 << 20, 0, KEYED, vec![OfferParts, PACKETS]),
        (headed, 1 << 20, 0, KEYED, vec![OfferParts, PACKETS]),
        (scattered, 1 << 20, 0, KEYED, vec![OfferParts, PACKETS]),
        (OperationKind::Am { header: 8, plain: true, copied: true }, 1 << 20, 0, KEYED, vec![COPIED]),
    ] {
        assert_eq!(ways(kind, len, piece, Hint::None, &MEANS, peer), expected, "{kind:?}, {len}, {peer:?}");
    }
}

/// Lengths, pieces and states of the peer, and whether data is copied across address spaces.
#[test]
fn a_stream_needs_a_peer_that_looks_for_packets() {
    for (len, piece, polls, crowded, copied) in [
        (ROOM, 0, true, false, false),
        (ROOM, 0, true, true, false),
        (1, 0, false, false, true),
        (ROOM + 1, 0, true, false, false),
        (1 << 30, 0, true, false, false),
        (ROOM + 1, 0, true, true, true),
        (ROOM + 1, 0, false, false, true),
        (1 << 20, 1 << 16, true, false, false),
        (1 << 20, 1 << 16, false, false, true),
        (1 << 20, 1 << 16, true, true, true),
        (1 << 20, 64, false, false, false),
        (ROOM, 1 << 12, true, true, false),
    ] {
        let means = Means { policy: Policy { crowded, ..MEANS.policy }, ..MEANS };
        let first = ways(OperationKind::Get, len, piece, Hint::None, &means, Peer { polls, ..OPEN })[0];
        assert_eq!(
            first == Way::Copy,
            copied,
            "{len} bytes in pieces of {piece}, polls: {polls}, crowded: {crowded}"
        );
    }
}

/// What the program or the environment wants is done, whatever the peer does.
#[test]
fn wishes_come_first() {
    for (polls, crowded) in [(false, false), (false, true), (true, false), (true, true)] {
        let first = |preference, hint| {
            let means = Means { policy: Policy { crowded, preference, ..MEANS.policy }, ..MEANS };
            ways(OperationKind::Get, 1 << 20, 0, hint, &means, Peer { polls, ..OPEN })[0]
        };
        assert_eq!(first(Preference::Attach, Hint::None), Way::Copy);
        assert_eq!(first(Preference::Attach, Hint::Packets), Way::Copy);
        assert_eq!(first(Preference::Auto, Hint::Bulk), Way::Copy);
        assert_eq!(first(Preference::Packets, Hint::Bulk), PACKETS);
        assert_eq!(first(Preference::Auto, Hint::Packets), PACKETS);
    }
}
