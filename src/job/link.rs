//! What ties a task to its job from one session to the next: what its launcher has left to it.

use crate::base::sync::Mutex;
use crate::config::Env;
use crate::error::Result;
use crate::job::ended::Ends;
use crate::job::exchange::{self, Conversations, Exchange, Means, Turn};
use crate::job::identity::Identity;
use crate::job::openings::{Counts, Openings};
use std::sync::Arc;
use std::time::Instant;

/// What this process, as one task, has of its launcher, and what its sessions must know of each
/// other. All sessions of the task share one link, and clones are the same link; another task in
/// the process has another one.
#[derive(Clone)]
pub struct Link(Arc<Parts>);

/// How the variables are looked up.
type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

struct Parts {
    env: Box<Lookup>,
    ends: Arc<Ends>,
    counts: Arc<Counts>,
    conversations: Conversations,
    /// An exchange that the program carries by itself, until a session has taken it.
    given: Mutex<Option<Box<dyn Exchange>>>,
}

impl Link {
    /// A link to the launcher that these variables describe. They are looked up when a session is
    /// opened, each time again.
    pub fn new(env: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self::with(env, Ends::of_any_job())
    }

    /// No launcher: the tasks of the job are on this machine, and connect by its key.
    pub fn none() -> Self {
        Self::with(|_| None, Ends::of_none())
    }

    /// No launcher: the program itself carries what the tasks tell each other at start-up. One
    /// session can be opened by it.
    pub fn by(exchange: Box<dyn Exchange>) -> Self {
        let link = Self::none();
        *link.0.given.lock() = Some(exchange);
        link
    }

    fn with(env: impl Fn(&str) -> Option<String> + Send + Sync + 'static, ends: Ends) -> Self {
        let (counts, conversations, given) = (Arc::default(), Conversations::default(), Mutex::default());
        Self(Arc::new(Parts { env: Box::new(env), ends: Arc::new(ends), counts, conversations, given }))
    }

    /// The variables that describe the launcher.
    pub fn env(&self) -> &Env<'_> {
        &*self.0.env
    }

    /// The tasks that have ended, as the launcher reports them.
    pub fn ends(&self) -> &Arc<Ends> {
        &self.0.ends
    }

    /// The openings of an instance in the job with this key.
    pub fn openings(&self, key: &str, tasks: u32, instance: u32) -> Openings {
        Openings::from_env(self.env(), &self.0.counts, key, tasks, instance)
    }

    /// Opens the exchange that the program carries or the launcher of this job offers; `None` when
    /// there is none.
    ///
    /// # Errors
    /// `LAPI_ERR_CSS_LOAD_FAILED`: the launcher's exchange cannot be used.
    /// `LAPI_ERR_NO_CONNECTIVITY`: the launcher has not replied by `deadline`.
    pub fn exchange(
        &self,
        identity: &Identity,
        turn: Turn,
        deadline: Instant,
    ) -> Result<Option<Box<dyn Exchange>>> {
        let Parts { ends, conversations, given, .. } = &*self.0;
        if let Some(given) = given.lock().take() {
            return Ok(Some(given));
        }
        exchange::open(identity, turn, Means { env: self.env(), ends, conversations }, deadline)
    }

    /// Ends the conversations with the launcher: the process exits. Without that some launchers
    /// call its end abnormal. In a forked child this does nothing.
    pub fn leave(&self) {
        self.0.conversations.end();
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Link(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::exchange::memory::{InMemory, Table};

    #[test]
    fn an_exchange_of_the_program_opens_one_session() {
        let identity = Identity { tasks: 2, ..Identity::alone() };
        let link = Link::by(Box::new(InMemory(0, Table::default())));
        let turn = Turn { instance: 0, opening: 1 };
        let open = || link.clone().exchange(&identity, turn, Instant::now()).expect("no launcher fails");
        let mut first = open().expect("the program's own");
        assert_eq!(first.name(), "memory");
        first.publish("key", b"value").expect("memory takes it");
        assert!(open().is_none(), "there is no launcher beside it");
    }
}
