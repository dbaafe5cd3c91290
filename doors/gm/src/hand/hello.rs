//! The first message of both sides of a session: who they are.

/// The header of the message.
const HEADER: &[u8] = b"GM node";

/// Which process says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The place of the process in the map, from 0.
    pub task: u32,
    /// What the process calls its own life: another one for each process, and for each time that
    /// it has forgotten the peer.
    pub life: u64,
}

impl Hello {
    /// The message: header and data.
    pub fn encode(self) -> (&'static [u8], [u8; 12]) {
        let mut data = [0; 12];
        data[..4].copy_from_slice(&self.task.to_le_bytes());
        data[4..].copy_from_slice(&self.life.to_le_bytes());
        (HEADER, data)
    }

    /// What a message says, in a map with this many nodes. `None`: nothing that is expected.
    pub fn decode(header: &[u8], data: &[u8], nodes: usize) -> Option<Self> {
        let (task, life) = data.split_first_chunk()?;
        let (task, life) = (u32::from_le_bytes(*task), u64::from_le_bytes(life.try_into().ok()?));
        (header == HEADER && (task as usize) < nodes).then_some(Self { task, life })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_says_who_it_is() {
        let hello = Hello { task: 2, life: u64::MAX - 1 };
        let (header, data) = hello.encode();
        assert_eq!(Hello::decode(header, &data, 3), Some(hello));
        assert_eq!(Hello::decode(header, &data, 2), None, "no number of the map");
        assert_eq!(Hello::decode(b"GM nod", &data, 3), None);
        for short in 0..data.len() {
            assert_eq!(Hello::decode(header, &data[..short], 3), None);
        }
        assert_eq!(Hello::decode(header, &[&data[..], &[0]].concat(), 3), None);
    }
}
