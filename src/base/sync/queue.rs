//! crossbeam's array queue for loom: a list behind a lock. Loom cannot look into the crate, so
//! models check what is built on the queue, not the queue.
#![allow(missing_docs)]

use super::Mutex;
use std::collections::VecDeque;

#[derive(Debug)]
pub struct ArrayQueue<T> {
    items: Mutex<VecDeque<T>>,
    room: usize,
}

impl<T> ArrayQueue<T> {
    pub fn new(room: usize) -> Self {
        Self { items: Mutex::new(VecDeque::new()), room }
    }

    pub fn push(&self, item: T) -> Result<(), T> {
        let mut items = self.items.lock();
        if items.len() == self.room {
            return Err(item);
        }
        items.push_back(item);
        Ok(())
    }

    pub fn pop(&self) -> Option<T> {
        self.items.lock().pop_front()
    }

    pub fn len(&self) -> usize {
        self.items.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
