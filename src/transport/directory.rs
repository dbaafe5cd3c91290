//! What a network learns about its peers from the job.

use super::Task;
use crate::base::process::Process;
use crate::error::Result;

/// Finds peers, which receive at addresses of type `A`.
pub trait Directory<A>: Send {
    /// Where the peer receives, as it has published. Called at first contact, and, since another
    /// process may have taken its place, several times in a second while the peer is awaited.
    ///
    /// # Errors
    /// None is known.
    fn address_of(&mut self, peer: Task) -> Result<A>;

    /// Whether the peer is known to have ended without LAPI_Term. Called some times in a second
    /// for some peers.
    fn has_died(&mut self, _peer: Task) -> bool {
        false
    }

    /// The process that the peer is now, as far as is known. Called some times in a second for
    /// peers that have died.
    fn process_of(&mut self, _peer: Task) -> Option<Process> {
        None
    }

    /// The peer that this task is connected with is this process.
    fn note_process(&mut self, _peer: Task, _process: Process) {}

    /// This task rejoins tasks that are in this opening, modulo 65,536.
    fn note_opening(&mut self, _opening: u16) {}
}
