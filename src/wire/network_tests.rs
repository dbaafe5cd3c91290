use super::*;

#[test]
fn frames_are_decoded_as_encoded() {
    for (kind, head_len, body_len, after) in [
        (FrameKind::Packet, 48, 65_535, 48 + 65_536),
        (FrameKind::Packet, 8, 0, 8),
        (FrameKind::Credits, 0, 0, 0),
        (FrameKind::Departure, 0, u32::MAX, TAG),
        (FrameKind::Rejoin, 0, 36, 40 + TAG),
        (FrameKind::Notice, 0, 16, 16 + TAG),
        (FrameKind::RailNote, 0, 48, 48 + TAG),
    ] {
        let frame = Frame { kind, src: 0x0102_0304, tag: 0xa1b2_c3d4, credits: 0xfffe, head_len, body_len };
        let mut bytes = frame.encode().to_vec();
        bytes.resize(FRAME + after, 7);
        assert_eq!(Frame::decode(&bytes), Some(frame));
        bytes.push(0);
        assert_eq!(Frame::decode(&bytes), None, "longer than its frame says");
        bytes.truncate(FRAME - 1);
        assert_eq!(Frame::decode(&bytes), None);
    }
    let bytes =
        Frame { kind: FrameKind::Kick, src: 1, tag: 2, credits: 3, head_len: 0, body_len: 0 }.encode();
    assert_eq!(bytes, [1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 7]);
    assert_eq!(Frame::decode(&[0; FRAME]), None, "no kind");
}

/// Also where a length has 32 bits, in which the padded one is 0.
#[test]
fn the_longest_body_is_not_taken_for_none() {
    for (kind, after) in [(FrameKind::Packet, 8), (FrameKind::Rejoin, 0)] {
        let frame = Frame { kind, src: 1, tag: 2, credits: 3, head_len: after, body_len: u32::MAX };
        assert_eq!(Frame::decode(&[&frame.encode()[..], &[0; 8][..after]].concat()), None);
    }
}

#[test]
fn a_rejoin_is_decoded_as_encoded() {
    let process = Process { pid: 1 << 30, started: 1 << 40 };
    let rejoin = Rejoin { tag: 1 << 31, echo: 7, epoch: u64::MAX - 1, process, waits: true };
    let mut bytes = rejoin.encode().to_vec();
    bytes.extend(b"address");
    assert_eq!(Rejoin::decode(&bytes), Some((rejoin, &b"address"[..])));
    assert_eq!(Rejoin::decode(&bytes[..15]), None);
}

#[test]
fn a_notice_is_decoded_as_encoded() {
    use Content::{Confirmed, Died, DiedConfirm, Watched, Watches};
    for content in [Died, DiedConfirm, Confirmed, Watches, Watched] {
        let notice = Notice { content, task: 0x0102_0304, life: u32::MAX - 1 };
        assert_eq!(Notice::decode(&notice.encode()), Some(notice));
        assert_eq!(Notice::decode(&notice.encode()[..15]), None);
    }
    assert_eq!(Notice::decode(&[0; NOTICE]), None, "no content");
}
