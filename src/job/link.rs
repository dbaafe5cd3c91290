//! What ties a task to its job from one session to the next: what its launcher has left to it.

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

    fn with(env: impl Fn(&str) -> Option<String> + Send + Sync + 'static, ends: Ends) -> Self {
        let (counts, conversations) = (Arc::default(), Conversations::default());
        Self(Arc::new(Parts { env: Box::new(env), ends: Arc::new(ends), counts, conversations }))
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

    /// Opens the exchange that the launcher of this job offers; `None` when it offers none.
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
        let Parts { ends, conversations, .. } = &*self.0;
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
