//! Values as text: PMI-1 carries lines, in which a value is a word of limited length. A value
//! becomes hexadecimal digits, cut into pieces. The first piece begins with the value's length in
//! bytes and a full stop.

use std::fmt::Write as _;

/// The longest value, in bytes.
pub const LONGEST: usize = 1 << 20;

/// The pieces of a value, each of at most `room` characters. `room` is more than the 8 characters
/// of the longest length.
pub fn cut(value: &[u8], room: usize) -> Vec<String> {
    let mut text = format!("{}.", value.len());
    value.iter().for_each(|byte| write!(text, "{byte:02x}").expect("a string grows"));
    text.as_bytes().chunks(room).map(|piece| String::from_utf8_lossy(piece).into_owned()).collect()
}

/// A value that is put together again from its pieces.
#[derive(Debug, Default)]
pub struct Whole {
    length: Option<usize>,
    /// The digits so far, as numbers.
    digits: Vec<u8>,
}

impl Whole {
    /// Adds the next piece; returns the value when it was the last one.
    ///
    /// # Errors
    /// These are not the pieces of a value; with the reason.
    pub fn add(&mut self, piece: &str) -> Result<Option<Vec<u8>>, &'static str> {
        let (length, piece) = match self.length {
            Some(_) if piece.is_empty() => return Err("an empty piece"),
            Some(length) => (length, piece),
            None => {
                let (length, piece) = piece.split_once('.').ok_or("a value without its length")?;
                let length = length.parse().ok().filter(|length| *length <= LONGEST);
                (length.ok_or("a value of a wrong length")?, piece)
            }
        };
        self.length = Some(length);
        for character in piece.chars() {
            // At once: text of another form may be shorter, and the rest of it awaited.
            let digit = character.to_digit(16).ok_or("a value written by another version of the library")?;
            self.digits.push(digit as u8);
        }
        match self.digits.len().cmp(&(length * 2)) {
            std::cmp::Ordering::Less => Ok(None),
            std::cmp::Ordering::Equal => {
                Ok(Some(self.digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()))
            }
            std::cmp::Ordering::Greater => Err("a value longer than its length"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;

    fn join(pieces: &[String]) -> Result<Option<Vec<u8>>, &'static str> {
        let mut whole = Whole::default();
        let mut value = None;
        for piece in pieces {
            assert_eq!(value, None, "there are pieces after the last one");
            value = whole.add(piece)?;
        }
        Ok(value)
    }

    #[test]
    fn any_value_through_any_room() {
        let mut rng = Rng::new(11);
        for length in (0..300).chain([4096, 4097, 70_000]) {
            let value: Vec<u8> = (0..length).map(|_| rng.below(256) as u8).collect();
            let room = 9 + rng.below(900) as usize;
            let pieces = cut(&value, room);
            assert!(pieces.iter().all(|piece| piece.len() <= room && !piece.contains([' ', '=', ';', '\n'])));
            assert_eq!(join(&pieces), Ok(Some(value)));
            assert_eq!(join(&pieces[..pieces.len() - 1]), Ok(None));
        }
    }

    /// In former versions values were base64, which is shorter: more of it is not waited for.
    #[test]
    fn a_value_of_another_version_is_refused_at_its_first_piece() {
        let why = Whole::default().add("6.AAECAwQF").expect_err("no hexadecimal digits");
        assert!(why.contains("another version"), "{why}");
    }

    #[test]
    fn garbage() {
        for pieces in [
            &["0a0a"][..],
            &["2.0a0a0a"],
            &["x.0a0a"],
            &["1048577.0a"],
            &["2.0a 0"],
            &["2.0a+0"],
            &["3.0a0a", ""],
            &["-1.0a"],
        ] {
            let pieces: Vec<String> = pieces.iter().map(|piece| (*piece).to_owned()).collect();
            assert!(join(&pieces).is_err(), "{pieces:?}");
        }
        let mut rng = Rng::new(12);
        for _ in 0..2000 {
            let text: String = (0..rng.below(30)).map(|_| char::from(32 + rng.below(96) as u8)).collect();
            // Whatever it is, it does not panic.
            let _ = join(&[text.clone(), text]);
        }
        assert_eq!(cut(b"\x0b\xff\xfe", 9), ["3.0bfffe"]);
    }
}
