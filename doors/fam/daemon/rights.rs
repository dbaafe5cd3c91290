//! Who may do what: the nine bits of a mode, by user and group. Root has no more than others.

use crate::guest::Who;
use fam::wire::{READ, WRITE};

/// What a user may do to something with an owner.
pub fn rights(mode: u32, (user, group): (u32, u32), who: Who) -> u8 {
    let bits = match () {
        () if who.user == user => mode >> 6,
        () if who.group == group => mode >> 3,
        () => mode,
    };
    (if bits & 4 != 0 { READ } else { 0 }) | (if bits & 2 != 0 { WRITE } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fam::wire::Role;

    #[test]
    fn the_first_class_that_fits_decides() {
        let who = |user, group| Who { user, group, role: Role::Program };
        let of = |mode, user, group| rights(mode, (1000, 100), who(user, group));
        assert_eq!(of(0o640, 1000, 7), READ | WRITE);
        assert_eq!(of(0o640, 7, 100), READ);
        assert_eq!(of(0o640, 7, 7), 0);
        assert_eq!(of(0o066, 1000, 100), 0);
        assert_eq!(of(0o602, 7, 100), 0);
        assert_eq!(of(0o602, 7, 7), WRITE);
        assert_eq!(of(0o600, 0, 0), 0);
    }
}
