//! The secret that the tasks of a job know, and no other process. `LAPI_JOB_SECRET`, set by the user or by poe in every task, wins;
//! without it task 0 makes one, which the exchange at start-up carries, or a number from which it follows ([`Exchange::conceal`]). Tasks that disagree return an error.
//!
//! A task first offers what it has, then the exchange's fence follows, and then the task compares itself with task 0 and with the next
//! task: two values are read however many tasks there are, and where any two tasks disagree, at least one task sees it. Others fail at
//! first contact with it.

use super::Identity;
use super::exchange::Exchange;
use crate::abi::LAPI_ERR_NO_ENV_VAR;
use crate::base::random::random;
use crate::error::{Error, Result};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

pub use super::exchange::Secret;

/// The key of the value in the exchange.
const KEY: &str = "secret";

const UNSET: u8 = 0;
const SET: u8 = 1;
const MADE: u8 = 2;

/// What this task has offered.
#[derive(Debug)]
pub struct Offer {
    own: Vec<u8>,
    configured: Option<Secret>,
}

impl Offer {
    /// Publishes what the others need to know of this task's secret; `configured` is that of its environment.
    ///
    /// # Errors
    /// Those of the exchange.
    pub fn publish(
        exchange: &mut dyn Exchange,
        identity: &Identity,
        configured: Option<Secret>,
    ) -> Result<Self> {
        let own = match configured {
            // Other processes may see the exchange.
            Some(secret) => [&[SET][..], &fingerprint(&secret)].concat(),
            None if identity.task == 0 => [&[MADE][..], &random::<16>()].concat(),
            None => vec![UNSET],
        };
        exchange.publish(KEY, &own)?;
        Ok(Self { own, configured })
    }

    /// The job's secret, after a fence of the exchange.
    ///
    /// # Errors
    /// `LAPI_ERR_NO_ENV_VAR`: this task and another one have different secrets in their environments, or only one of them has one.
    pub fn agree(self, exchange: &mut dyn Exchange, identity: &Identity) -> Result<Secret> {
        let mut made = None;
        for task in [0, (identity.task + 1) % identity.tasks] {
            let its = if task == identity.task {
                self.own.clone()
            } else {
                exchange.lookup_published(task, KEY)?
            };
            match (its.split_first(), self.configured) {
                (Some((&SET, _)), Some(_)) if its == self.own => {}
                (Some((&SET, _)), Some(_)) => {
                    let me = identity.task;
                    return Err(disagreement(format!("it differs between tasks {me} and {task}")));
                }
                (Some((&SET, _)), None) => return Err(disagreement(only(task, identity.task))),
                (Some(_), Some(_)) => return Err(disagreement(only(identity.task, task))),
                (Some((&MADE, secret)), None) if task == 0 => made = Secret::try_from(secret).ok(),
                (Some((&UNSET, [])), None) if task != 0 => {}
                _ => return Err(disagreement(format!("task {task} has published something else"))),
            }
        }
        let secret = self.configured.or_else(|| made.map(|made| exchange.conceal(made)));
        secret.ok_or_else(|| disagreement("task 0 has published none".to_owned()))
    }
}

/// A secret of tasks that agree upon these parts, made from another one.
pub fn derive(from: &Secret, parts: &[&[u8]]) -> Secret {
    // HMAC accepts keys of every length.
    let Ok(mut hmac) = <Hmac<Sha256> as Mac>::new_from_slice(from) else { unreachable!("a key of 16 bytes") };
    hmac.update(b"OpenLAPI secret\0");
    for part in parts {
        hmac.update(&(part.len() as u64).to_le_bytes());
        hmac.update(part);
    }
    let whole: [u8; 32] = hmac.finalize().into_bytes().into();
    std::array::from_fn(|at| whole[at])
}

fn fingerprint(secret: &Secret) -> Vec<u8> {
    Sha256::new().chain_update(b"LAPI_JOB_SECRET\0").chain_update(secret).finalize().to_vec()
}

fn only(has: u32, lacks: u32) -> String {
    format!("it is set in task {has}, but not in task {lacks}")
}

#[cold]
fn disagreement(detail: String) -> Error {
    Error::new(LAPI_ERR_NO_ENV_VAR, format!("LAPI_JOB_SECRET: {detail}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::sync::{Arc, Mutex};
    use std::time::Instant;

    type Table = Arc<Mutex<HashMap<(u32, String), Vec<u8>>>>;

    struct InMemory(u32, Table);

    impl Exchange for InMemory {
        fn name(&self) -> &'static str {
            "memory"
        }

        fn publish(&mut self, key: &str, value: &[u8]) -> Result<()> {
            self.1.lock().unwrap().insert((self.0, key.to_owned()), value.to_vec());
            Ok(())
        }

        fn fence(&mut self, _: Instant) -> Result<()> {
            Ok(())
        }

        fn lookup(&mut self, task: u32, key: &str) -> Result<Vec<u8>> {
            Ok(self.1.lock().unwrap()[&(task, key.to_owned())].clone())
        }
    }

    fn agreed(configured: &[Option<Secret>]) -> Vec<Result<Secret>> {
        let table = Table::default();
        let tasks = configured.len() as u32;
        let identity = |task| Identity { task, tasks, ..Identity::alone() };
        let mut offers = Vec::new();
        for (task, configured) in configured.iter().enumerate() {
            let mut exchange = InMemory(task as u32, table.clone());
            let offer = Offer::publish(&mut exchange, &identity(task as u32), *configured);
            offers.push((exchange, offer.expect("memory takes it")));
        }
        for value in table.lock().unwrap().values() {
            for secret in configured.iter().flatten() {
                assert!(!value.windows(4).any(|part| part == &secret[..4]), "the user's secret is not shown");
            }
        }
        let agree = |(task, (mut exchange, offer)): (usize, (InMemory, Offer))| {
            offer.agree(&mut exchange, &identity(task as u32))
        };
        offers.into_iter().enumerate().map(agree).collect()
    }

    #[test]
    fn each_part_counts() {
        let one = derive(&[7; 16], &[b"ab", b"c"]);
        assert_eq!(one, derive(&[7; 16], &[b"ab", b"c"]));
        for (from, parts) in
            [([8; 16], [&b"ab"[..], b"c"]), ([7; 16], [b"a", b"bc"]), ([7; 16], [b"ab", b"d"])]
        {
            assert_ne!(one, derive(&from, &parts));
        }
    }

    #[test]
    fn one_that_task_0_makes() {
        let (one, other) = (agreed(&[None; 4]), agreed(&[None; 4]));
        let secret = one[0].clone().expect("they agree");
        assert!(one.iter().all(|own| own.as_ref() == Ok(&secret)));
        assert_ne!(other[0], Ok(secret));
    }

    #[test]
    fn one_that_the_user_has_set() {
        assert_eq!(agreed(&[Some([7; 16]); 3]), [const { Ok([7; 16]) }; 3]);
    }

    #[test]
    fn disagreement_is_an_error() {
        let (a, b) = (Some([7; 16]), Some([8; 16]));
        for (configured, text) in [
            (&[a, b][..], "differs between tasks"),
            (&[a, None], "it is set in task 0, but not in task 1"),
            (&[None, b], "it is set in task 1, but not in task 0"),
            (&[a, a, b], "differs between tasks"),
            (&[None, None, b], "it is set in task 2, but not in task"),
        ] {
            let found: Vec<Error> = agreed(configured).into_iter().filter_map(Result::err).collect();
            assert!(found.len() >= 2, "{configured:?}: {found:?}");
            for error in found {
                assert_eq!(error.code, LAPI_ERR_NO_ENV_VAR);
                assert!(error.detail.contains(text) && error.detail.len() < 100, "{}", error.detail);
            }
        }
    }
}
