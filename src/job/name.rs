//! The names of sockets by which the tasks of a job find each other.

use std::hash::Hasher;

/// What names are made from: the same in all tasks of a job, and different in other jobs.
#[derive(Clone, Debug)]
pub(in crate::job) struct Key {
    /// The job's key.
    pub(in crate::job) job: String,
    /// The LAPI instance.
    pub(in crate::job) instance: u32,
    /// The job's secret; empty when there is none.
    pub(in crate::job) secret: Vec<u8>,
    /// The user.
    pub(in crate::job) uid: u32,
}

impl Key {
    /// The abstract name under which `task` listens for its peers of this generation. The secret is
    /// the key of the hash: names are visible to every user of the machine; such a name reveals
    /// nothing of the secret and cannot be taken in advance.
    #[expect(deprecated, reason = "the only keyed hash in std whose algorithm is fixed")]
    pub(in crate::job) fn name(&self, generation: u32, task: u32) -> String {
        let half = |at: usize| {
            let mut bytes = [0; 8];
            for (to, from) in bytes.iter_mut().zip(self.secret.iter().skip(at)) {
                *to = *from;
            }
            u64::from_le_bytes(bytes)
        };
        let mut hash = std::hash::SipHasher::new_with_keys(half(0), half(8));
        hash.write(&self.secret);
        hash.write_u8(0xff);
        hash.write(self.job.as_bytes());
        hash.write_u8(0xff);
        hash.write(&self.instance.to_le_bytes());
        hash.write(&task.to_le_bytes());
        hash.write(&generation.to_le_bytes());
        format!("openlapi-{}-{:016x}", self.uid, hash.finish())
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "job \"{}\", instance {}", self.job, self.instance)
    }
}
