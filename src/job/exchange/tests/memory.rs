//! For tests: the exchange of tasks in one process.

use super::Exchange;
use crate::error::Result;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// What the tasks have published, each under keys of its own.
pub(in crate::job) type Table = Arc<Mutex<HashMap<(u32, String), Vec<u8>>>>;

/// The exchange of one task: its number, and what all have published.
pub(in crate::job) struct InMemory(pub(in crate::job) u32, pub(in crate::job) Table);

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
