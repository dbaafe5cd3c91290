use super::*;
use crate::base::rng::Rng;

fn some_hello(rng: &mut Rng) -> Hello {
    Hello {
        task: rng.next_u64() as u32,
        tasks: rng.next_u64() as u32,
        generation: rng.next_u64() as u32,
        incarnation: rng.next_u64(),
        epoch: rng.next_u64(),
        landmark: rng.next_u64(),
        mark: rng.next_u64(),
        asymmetric: rng.chance(0.5),
        maps: [rng.next_u64(), rng.next_u64()],
        secret: (0..rng.below(65)).map(|at| at as u8).collect(),
    }
}

#[test]
fn messages_come_back_as_they_were() {
    let mut rng = Rng::new(1);
    for _ in 0..100 {
        let hello = some_hello(&mut rng);
        for message in [
            Message::Request(hello.clone()),
            Message::Reply(hello),
            Message::Confirm,
            Message::Refuse("wrong".into()),
            Message::Refuse(String::new()),
        ] {
            let bytes = message.encode();
            assert!(bytes.len() <= LONGEST);
            assert_eq!(Message::decode(&bytes), Some(message));
        }
    }
}

#[test]
fn a_long_reason_is_cut() {
    let bytes = Message::Refuse("ü".repeat(LONGEST)).encode();
    assert!(bytes.len() <= LONGEST);
    assert!(matches!(Message::decode(&bytes), Some(Message::Refuse(why)) if why.starts_with("üü")));
}

#[test]
fn what_is_no_message_is_refused() {
    let bytes = Message::Request(some_hello(&mut Rng::new(2))).encode();
    let least = Message::Request(Hello::default()).encode().len();
    for len in 0..least {
        assert_eq!(Message::decode(&bytes[..len]), None, "{len} bytes");
    }
    let mut long = bytes.clone();
    long.resize(bytes.len() + LONGEST_SECRET, 0);
    assert!(bytes.len() == least || Message::decode(&long).is_none());
    for (at, value) in [(0, 0xff), (4, 0), (4, 5), (17, 2)] {
        let mut wrong = bytes.clone();
        wrong[at] = value;
        assert_eq!(Message::decode(&wrong), None, "byte {at} is {value}");
    }
    assert_eq!(Message::decode(&[&Message::Confirm.encode()[..], &[0]].concat()), None);
}

/// One that knows another version only reads a refusal in it.
#[test]
fn messages_of_another_version_are_known_as_such() {
    let mut request = Message::Request(some_hello(&mut Rng::new(3))).encode();
    assert_eq!(other_version(&request), None);
    request[0] ^= 1;
    let theirs = other_version(&request).expect("another version");
    assert_eq!((theirs, Message::decode(&request)), (VERSION ^ 1, None));
    request[3] ^= 1;
    assert_eq!((other_version(&request), other_version(&request[..3])), (None, None));
    let mut refused = refusal(theirs, "why");
    assert_eq!(Message::decode(&refused), None);
    refused[0] ^= 1;
    assert_eq!(Message::decode(&refused), Some(Message::Refuse("why".into())));
}
