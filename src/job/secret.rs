//! The secret that the tasks of a job know, and no other process. It is another one in each opening
//! of LAPI, so that nothing that was recorded in one is accepted in another one: task 0 draws a
//! number, which the exchange at start-up carries. The secret follows from that and from
//! `LAPI_JOB_SECRET`, set by the user or by poe in every task; without such a variable it is the
//! number, or follows from it ([`Exchange::conceal`]). Tasks that disagree return an error.
//!
//! A task first offers what it has, then the exchange's fence follows, and then the task compares
//! itself with task 0 and with the next task: two values are read however many tasks there are, and
//! where any two tasks disagree, at least one task sees it. Others fail at first contact with it.

use super::Identity;
use super::exchange::Exchange;
use crate::abi::LAPI_ERR_NO_ENV_VAR;
use crate::base::random::random;
use crate::error::{Error, Result};
use sha2::{Digest, Sha256};

pub use super::derive::{Secret, derive};

/// The key of the value in the exchange.
const KEY: &str = "secret";

const UNSET: u8 = 0;
const SET: u8 = 1;

/// What this task has offered.
#[derive(Debug)]
pub struct Offer {
    /// What the other tasks know of the secret in its environment. The number that task 0 has drawn
    /// comes after it.
    own: Vec<u8>,
    configured: Option<Secret>,
}

impl Offer {
    /// Publishes what the others need to know of this task's secret; `configured` is that of its
    /// environment. `replaces`: this process has taken the place of another one, whose number
    /// the others use.
    ///
    /// # Errors
    /// Those of the exchange.
    pub fn publish(
        exchange: &mut dyn Exchange,
        identity: &Identity,
        configured: Option<Secret>,
        replaces: bool,
    ) -> Result<Self> {
        let own = match configured {
            // Other processes may see the exchange.
            Some(secret) => [&[SET][..], &fingerprint(&secret)].concat(),
            None => vec![UNSET],
        };
        let mut published = own.clone();
        if identity.task == 0 {
            let before = if replaces { exchange.lookup(0, KEY).ok() } else { None };
            let before = before.as_deref().and_then(|before| before.split_last_chunk());
            let drawn = before.filter(|(said, _)| *said == own).map_or_else(random, |(_, drawn)| *drawn);
            published.extend_from_slice(&Secret::from(drawn));
        }
        exchange.publish(KEY, &published)?;
        Ok(Self { own, configured })
    }

    /// The job's secret in this opening, after a fence of the exchange.
    ///
    /// # Errors
    /// `LAPI_ERR_NO_ENV_VAR`: this task and another one have different secrets in their
    /// environments, or only one of them has one.
    pub fn agree(self, exchange: &mut dyn Exchange, identity: &Identity) -> Result<Secret> {
        let mut drawn = None;
        for task in [0, (identity.task + 1) % identity.tasks] {
            let its = exchange.lookup_published(task, KEY)?;
            let said = match (task, its.split_last_chunk()) {
                (0, Some((said, number))) => {
                    drawn = Some(*number);
                    said
                }
                _ => &its,
            };
            match (said, self.configured) {
                (said, _) if said == self.own => {}
                ([SET, ..], Some(_)) => {
                    let me = identity.task;
                    return Err(disagreement(format!("it differs between tasks {me} and {task}")));
                }
                ([SET, ..], None) => return Err(disagreement(only(task, identity.task))),
                ([UNSET], Some(_)) => return Err(disagreement(only(identity.task, task))),
                _ => return Err(disagreement(format!("task {task} has published something else"))),
            }
        }
        let drawn: Secret = drawn.ok_or_else(|| disagreement("task 0 has published none".to_owned()))?;
        Ok(match self.configured {
            Some(configured) => derive(&configured, &[b"opening", &drawn]),
            None => exchange.conceal(drawn),
        })
    }
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
#[path = "secret_tests.rs"]
mod tests;
