use super::*;
use crate::base::rng::Rng;

fn values(rng: &mut Rng) -> Values {
    let one = |rng: &mut Rng| (0..rng.below(40)).map(|_| rng.below(256) as u8).collect();
    (0..rng.below(4)).map(|at| (format!("key {at}"), one(rng))).collect()
}

#[test]
fn round_trips() {
    let mut rng = Rng::new(7);
    for _ in 0..200 {
        let table: Vec<Values> = (0..rng.below(6)).map(|_| values(&mut rng)).collect();
        let bytes = encode_table(&table);
        assert_eq!(decode_table(&bytes).as_ref(), Some(&table));
        for values in &table {
            assert_eq!(decode_values(&encode_values(values)).as_ref(), Some(values));
        }
        // Bytes that are missing, and bytes too many.
        assert_eq!(decode_table(&bytes[..rng.below(bytes.len() as u64) as usize]), None);
        assert_eq!(decode_table(&[&bytes[..], &[0]].concat()), None);
    }
}

#[test]
fn garbage_is_no_table() {
    let mut rng = Rng::new(8);
    for _ in 0..2000 {
        let bytes: Vec<u8> = (0..rng.below(64)).map(|_| rng.below(256) as u8).collect();
        if let Some(table) = decode_table(&bytes) {
            assert_eq!(encode_table(&table), bytes);
        }
    }
    assert_eq!(decode_table(&[0xff; 4]), None);
}

#[test]
fn frames_from_pieces() {
    let mut rng = Rng::new(9);
    for _ in 0..200 {
        let frames: Vec<Vec<u8>> =
            (0..rng.below(5)).map(|at| vec![at as u8; rng.below(50) as usize]).collect();
        let bytes: Vec<u8> = frames.iter().flat_map(|bytes| frame(bytes)).collect();
        let (mut input, mut at, mut found) = (Vec::new(), 0, Vec::new());
        while at < bytes.len() {
            let next = (at + 1 + rng.below(9) as usize).min(bytes.len());
            input.extend_from_slice(&bytes[at..next]);
            at = next;
            while let Some(frame) = take_frame(&mut input, 64).expect("none is longer") {
                found.push(frame);
            }
        }
        assert_eq!((found, input.len()), (frames, 0));
    }
    assert_eq!(take_frame(&mut frame(&[0; 65]), 64), Err(65));
}
