//! PMI-1, as used on the descriptor `PMI_FD` by MPICH's Hydra, its relatives, and Slurm's pmi2.
//!
//! The process says "init" once, at its first exchange, and "finalize" when it ends: the launcher
//! closes the descriptor at "finalize", and calls an end without it abnormal. So a second program
//! of the same task has no exchange; that is so for MPI programs, too. Keys contain the number of
//! the exchange and the task's number.
//!
//! [`wire`] has the lines, [`connection`] the descriptor. A program must not call MPI_Init or
//! MPI_Finalize in another thread while an exchange is in use: MPICH uses the same descriptor, one
//! request at a time.

mod connection;
pub(crate) mod wire;

use super::{Exchange, failed, pieces, unpublished};
use crate::config::{Env, given};
use crate::error::{Error, Result};
use crate::job::identity::Identity;
use connection::Connection;
pub(super) use connection::Conversation;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::{LONGEST_REQUEST, Request};

/// How long a value that is there may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// One exchange.
pub(super) struct Pmi1 {
    conversation: Arc<Conversation>,
    /// The value of `PMI_FD`.
    descriptor: String,
    task: u32,
    opening: u32,
}

/// Begins the conversation, if it has not begun yet.
///
/// # Errors
/// `LAPI_ERR_CSS_LOAD_FAILED`: `PMI_FD` is not what it should be. `LAPI_ERR_NO_CONNECTIVITY`
/// at the deadline.
pub(super) fn open(
    identity: &Identity,
    opening: u32,
    env: &Env<'_>,
    conversation: &Arc<Conversation>,
    deadline: Instant,
) -> Result<Pmi1> {
    let descriptor = given(env, "PMI_FD").unwrap_or_default();
    conversation.with(&descriptor, deadline, |_| Ok(()))?;
    Ok(Pmi1 { conversation: conversation.clone(), descriptor, task: identity.task, opening })
}

impl Pmi1 {
    fn key(&self, connection: &Connection, task: u32, key: &str, piece: usize) -> Result<String> {
        let text = format!("lapi-{}-{task}-{key}-{piece}", self.opening);
        let fits = text.len() <= connection.longest_key && !text.contains([' ', '=', ';', '\n']);
        fits.then_some(text).ok_or_else(|| {
            failed(format!("PMI-1: \"{key}\" makes no key of at most {} characters", connection.longest_key))
        })
    }
}

impl Exchange for Pmi1 {
    fn name(&self) -> &'static str {
        "PMI-1"
    }

    fn publish(&mut self, key: &str, value: &[u8]) -> Result<()> {
        if value.len() > pieces::LONGEST {
            return Err(too_long(key, value.len()));
        }
        let deadline = Instant::now() + TIMEOUT;
        self.conversation.with(&self.descriptor, deadline, |connection| {
            let kvsname = connection.kvsname.clone();
            let longest_key = self.key(connection, self.task, key, 99_999)?;
            let around = Request::Put { kvsname: &kvsname, key: &longest_key, value: "" }.line().len();
            let room = LONGEST_REQUEST.saturating_sub(around).min(connection.longest_value);
            if room < 16 {
                return Err(failed(format!("PMI-1: no room for values beside the name {kvsname}")));
            }
            for (piece, text) in pieces::cut(value, room).iter().enumerate() {
                let key = self.key(connection, self.task, key, piece)?;
                connection.ask(Request::Put { kvsname: &kvsname, key: &key, value: text }, deadline)?;
            }
            Ok(())
        })
    }

    fn fence(&mut self, deadline: Instant) -> Result<()> {
        self.conversation.with(&self.descriptor, deadline, |connection| {
            connection.ask(Request::BarrierIn, deadline).map(drop)
        })
    }

    fn lookup(&mut self, task: u32, key: &str) -> Result<Vec<u8>> {
        let deadline = Instant::now() + TIMEOUT;
        self.conversation.with(&self.descriptor, deadline, |connection| {
            let kvsname = connection.kvsname.clone();
            let mut whole = pieces::Whole::default();
            for piece in 0.. {
                let name = self.key(connection, task, key, piece)?;
                let get = Request::Get { kvsname: &kvsname, key: &name };
                let Ok(reply) = connection.try_ask(get, deadline)? else { break };
                match whole.add(reply.word("value").unwrap_or_default()) {
                    Ok(Some(value)) => return Ok(value),
                    Ok(None) => {}
                    Err(why) => return Err(failed(format!("PMI-1: \"{key}\" of task {task}: {why}"))),
                }
            }
            Err(unpublished("PMI-1", task, key))
        })
    }
}

#[cold]
fn too_long(key: &str, length: usize) -> Error {
    failed(format!("PMI-1: \"{key}\" has {length} bytes, the limit is {}", pieces::LONGEST))
}

#[cfg(test)]
mod tests;
