//! What makes the transport's own messages those of the job: greetings, kicks, departures, notices
//! of deaths, notes about rails, and what parted tasks send each other to rejoin. Behind each is a
//! tag, which only tasks that know the job's secret can make.
//!
//! The tag covers the message, its receiver, and what that has published: the address of its
//! endpoint. So what was recorded in another job with the same secret, or was meant for the process
//! before, is refused; within a connection the messages say nothing new when they come again.
//! Packets and credits have no such tag (docs/design/0018-network-security.md).

use crate::base::mac::MacKey;
use crate::transport::Task;
use crate::wire::network::TAG;
use sha2::{Digest, Sha256};

/// Makes and checks the tags.
#[derive(Clone)]
pub(super) struct ControlKey {
    control: MacKey,
    /// Makes the keys of memory.
    memory: MacKey,
}

impl ControlKey {
    pub(super) fn new(secret: &[u8]) -> Self {
        let derived = |purpose: &[u8]| MacKey::new(secret).derive(&[b"OpenLAPI fabric\0", purpose]);
        Self { control: derived(b"control\0"), memory: derived(b"memory\0") }
    }

    /// The tag of a message to a task that has published this.
    pub(super) fn tag(&self, to: Task, published: &[u8], message: &[u8]) -> [u8; TAG] {
        self.control.tag(&[&to.to_le_bytes(), &len(published), published, message])
    }

    /// The key of all memory of `owner`, which has published this, for `user`, while the owner
    /// wants frames from it with this tag. Both compute it, so it is not sent.
    pub(super) fn memory_key(&self, owner: Task, published: &[u8], user: Task, tag: u32) -> u64 {
        let numbers = [owner, user, tag].map(u32::to_le_bytes);
        u64::from_le_bytes(self.memory.tag(&[numbers.as_flattened(), published]))
    }

    /// Whether a message with its tag was made for this task, which has published this; in a time
    /// that does not depend on where it differs.
    pub(super) fn admits(&self, me: Task, published: &[u8], message: &[u8]) -> bool {
        message.split_last_chunk::<TAG>().is_some_and(|(message, tag)| {
            self.control.is_tag(&[&me.to_le_bytes(), &len(published), published, message], tag)
        })
    }
}

fn len(bytes: &[u8]) -> [u8; 8] {
    (bytes.len() as u64).to_le_bytes()
}

/// What distinguishes the frames of a job at first contact: it follows from the secret, and does
/// not reveal it. Never 0, and even: the tags of tasks that rejoin are odd.
pub(super) fn first_tag(secret: &[u8]) -> u32 {
    let digest = Sha256::new().chain_update(b"LAPI frames\0").chain_update(secret).finalize();
    let secret = digest.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    ((secret ^ secret >> 32) as u32) << 1 | 1 << 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another build of the same version makes the same.
    #[test]
    fn tags_and_keys_stay_as_they_are() {
        let key = ControlKey::new(&[7; 16]);
        let tag = u128::from_be_bytes(key.tag(1, b"address", b"message"));
        assert_eq!(tag, 0x78ea_c7da_4a04_db5e_6254_e424_3da7_8383);
        assert_eq!(key.memory_key(1, b"address", 2, 3), 0x1dd4_0c04_6749_7d4d);
    }

    #[test]
    fn a_message_is_admitted_where_it_was_meant_to_go() {
        let key = ControlKey::new(&[7; 16]);
        let message = [&b"message"[..], &key.tag(1, b"address", b"message")].concat();
        assert!(key.admits(1, b"address", &message));
        assert!(!key.admits(2, b"address", &message), "for another task");
        assert!(!key.admits(1, b"another", &message), "for the process before");
        assert!(!ControlKey::new(&[8; 16]).admits(1, b"address", &message), "of another job");
        for at in 0..message.len() {
            let mut changed = message.clone();
            changed[at] ^= 1;
            assert!(!key.admits(1, b"address", &changed), "byte {at}");
            assert!(!key.admits(1, b"address", &message[..at]));
        }
    }

    #[test]
    fn memory_has_another_key_for_each_owner_user_and_connection() {
        let key = ControlKey::new(&[7; 16]);
        let one = key.memory_key(1, b"address", 2, 3);
        assert_eq!(one, ControlKey::new(&[7; 16]).memory_key(1, b"address", 2, 3));
        let others = [
            key.memory_key(2, b"address", 1, 3),
            key.memory_key(1, b"another", 2, 3),
            key.memory_key(1, b"address", 3, 3),
            key.memory_key(1, b"address", 2, 4),
            ControlKey::new(&[8; 16]).memory_key(1, b"address", 2, 3),
        ];
        assert!(!others.contains(&one));
    }

    #[test]
    fn the_first_tag_is_even_and_not_0() {
        for secret in 0..100 {
            let tag = first_tag(&[secret; 16]);
            assert!(tag != 0 && tag.is_multiple_of(2));
        }
        assert_ne!(first_tag(&[1; 16]), first_tag(&[2; 16]));
    }
}
