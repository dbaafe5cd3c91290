use super::*;

/// A message of this kind and family about link 7, which is up.
fn message(kind: u16, flags: u16, family: u8) -> Vec<u8> {
    let mut bytes = vec![0_u8; HEAD + LINK];
    let len = bytes.len() as u32;
    bytes[..4].copy_from_slice(&len.to_ne_bytes());
    bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
    bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
    bytes[HEAD] = family;
    bytes[HEAD + 4..][..4].copy_from_slice(&7_u32.to_ne_bytes());
    bytes[HEAD + 8..][..4].copy_from_slice(&RUNNING.to_ne_bytes());
    bytes
}

fn link(running: bool) -> Message {
    Message::Link(Report { number: 7, name: None, running })
}

#[test]
fn a_link_that_leaves_a_bridge_is_not_gone() {
    let gone = message(libc::RTM_DELLINK, 0, libc::AF_BRIDGE as u8);
    assert_eq!(messages(&gone), []);
    let both = [gone, message(libc::RTM_NEWLINK, 0, 0), message(libc::RTM_DELLINK, 0, 0)].concat();
    assert_eq!(messages(&both), [link(true), link(false)]);
}

#[test]
fn a_reply_that_is_not_whole_is_asked_for_again() {
    let done = |flags: u16| messages(&message(libc::NLMSG_DONE as u16, flags, 0));
    assert_eq!(done(0), [Message::End(true)]);
    assert_eq!(done(libc::NLM_F_DUMP_INTR as u16), [Message::End(false)]);
    assert_eq!(messages(&message(libc::NLMSG_ERROR as u16, 0, 0)), [Message::End(false)]);
}

/// Whatever the socket is, it is asked as soon as it takes a question.
#[test]
fn lost_reports_are_asked_for_until_the_question_is_taken() {
    let (socket, kernel) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::DGRAM,
        SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
        None,
    )
    .expect("sockets");
    let mut links =
        LinkState { socket, names: vec![None], numbers: vec![Some(7)], up: 1, asked: false, stale: true };
    while net::send(&links.socket, &[0; 1024], SendFlags::empty()).is_ok() {}
    assert_eq!(links.poll(), None);
    assert!(links.stale && !links.asked, "there was no room for the question");
    while net::recv(&kernel, &mut [0; 1024][..], RecvFlags::empty()).is_ok() {}
    assert_eq!(links.poll(), None);
    assert!(!links.stale && links.asked);
    let question = net::recv(&kernel, &mut [0; 64][..], RecvFlags::empty()).expect("a question").0;
    assert_eq!(question, HEAD + LINK);
    net::send(&kernel, &message(libc::RTM_DELLINK, 0, 0), SendFlags::empty()).expect("room");
    net::send(&kernel, &message(libc::NLMSG_DONE as u16, 0, 0), SendFlags::empty()).expect("room");
    assert_eq!(links.poll(), Some(0));
    assert!(!links.asked);
}
