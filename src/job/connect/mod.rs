//! How tasks connect: each has a listener from LAPI_Init on, and sends another one a connection
//! request when it first needs it.
//!
//! [`machine`] decides, [`driver`] carries out. One lock guards both, which the transport takes
//! when it wants a peer, and the listener's thread when something has happened; so a task can be
//! reached whatever its own threads do, and delays no other task.

mod common;
mod descriptors;
mod driver;
mod machine;
#[cfg(test)]
mod tests;

use super::Openings;
use super::ended::Ends;
use super::name::Key;
use crate::abi::LAPI_ERR_SHM_SETUP;
use crate::base::process::Process;
use crate::base::sync::Mutex;
use crate::error::{Error, Log, Result};
use crate::transport::Task;
use crate::transport::shm::connection::{Absence, Connector, Site};
use crate::wire::hello::Hello;
pub(in crate::job) use common::may_listen;
use descriptors::Descriptors;
use driver::Driver;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What connecting needs to know of this task.
pub struct ConnectSettings {
    /// The job's key, or what all tasks have in its place where the secret tells jobs apart.
    pub job: String,
    /// The LAPI instance, from 0.
    pub instance: u32,
    /// How often the tasks have opened the instance.
    pub openings: Openings,
    /// The tasks that have ended, as the launcher reports them.
    pub ends: Arc<Ends>,
    /// What this task sends about itself.
    pub hello: Hello,
    /// After how long a task that was never found counts as dead.
    pub init_timeout: Duration,
    /// MP_INFOLEVEL.
    pub info_level: u8,
    /// Where messages go.
    pub log: Log,
    /// The processes of the tasks whose end this task sees by itself, by task. Where a launcher
    /// reports the ends of tasks there are none; [`Process::default`] is the process of a task that
    /// this one does not see.
    pub processes: Box<[Process]>,
    /// The possible mistake when a task is not found, to be printed at every level.
    pub hint: Option<String>,
}

/// This task's listener, and its connection requests to others. See [`Connector`].
pub struct Connections {
    shared: Arc<Shared>,
    /// Waits until no thread runs the service.
    join: Option<Box<dyn FnOnce() + Send>>,
}

/// What the thread of the listener does; it returns when the [`Connections`] are closed.
pub struct Service(Arc<Shared>);

struct Shared {
    driver: Mutex<Driver>,
    descriptors: Descriptors,
    closed: AtomicBool,
    /// [`LOOK_AROUND`] in a job of this size.
    look_around: Duration,
}

/// The thread looks at least this often: once the program has closed the descriptors, nothing
/// wakes it from a wait that has begun. In a job of several hundred tasks it looks up to four
/// times as seldom.
const LOOK_AROUND: Duration = Duration::from_secs(1);

impl Connections {
    /// Begins to listen. `start` lets a thread run the service, and returns what waits until it
    /// does not any more.
    ///
    /// # Errors
    /// `LAPI_ERR_SHM_SETUP`: another user has this task's name, or the system lacks something. What
    /// `start` returns.
    pub fn open(
        settings: ConnectSettings,
        site: Site,
        start: impl FnOnce(Service) -> Result<Box<dyn FnOnce() + Send>>,
    ) -> Result<Self> {
        let shared = Self::listen(settings, site)?;
        let join = start(Service(shared.clone()))?;
        Ok(Self { shared, join: Some(join) })
    }

    fn listen(settings: ConnectSettings, site: Site) -> Result<Arc<Shared>> {
        let descriptors = Descriptors::new().map_err(|reason| {
            let reason = std::io::Error::from(reason);
            Error::new(LAPI_ERR_SHM_SETUP, format!("the listener of task {}: {reason}", site.me()))
        })?;
        let key = Key {
            job: settings.job.clone(),
            instance: settings.instance,
            secret: settings.hello.secret.clone(),
            uid: rustix::process::geteuid().as_raw(),
        };
        let look_around = LOOK_AROUND * (settings.hello.tasks / 64).clamp(1, 4);
        let driver = Driver::new(settings, key, site, descriptors.poll.clone())?;
        Ok(Arc::new(Shared {
            driver: Mutex::new(driver),
            descriptors,
            closed: AtomicBool::new(false),
            look_around,
        }))
    }

    /// Does something with the driver, and wakes the thread when it must look sooner than planned.
    fn with<R>(&self, what: impl FnOnce(&mut Driver) -> R) -> R {
        let mut driver = self.shared.driver.lock();
        let before = driver.due();
        let result = what(&mut driver);
        let after = driver.due();
        drop(driver);
        if after.is_some_and(|after| before.is_none_or(|before| after < before)) {
            self.shared.descriptors.wake();
        }
        result
    }
}

impl Connector for Connections {
    fn want(&self, peer: Task) {
        self.with(|driver| driver.want(peer));
    }

    fn settle(&self, peer: Task) {
        self.with(|driver| driver.settle(peer));
    }

    fn absence(&self, peer: Task) -> Absence {
        self.shared.driver.lock().absence(peer)
    }

    fn has_parted(&self, peer: Task) -> bool {
        self.shared.driver.lock().has_parted(peer)
    }

    fn part(&self, peer: Task) {
        self.with(|driver| driver.part(peer));
    }

    fn rejoin(&self, peer: Task, epoch: u64) {
        self.with(|driver| driver.rejoin(peer, epoch));
    }

    fn close(&mut self) {
        let Some(join) = self.join.take() else { return };
        self.shared.driver.lock().close();
        self.shared.closed.store(true, Ordering::Release);
        self.shared.descriptors.wake();
        join();
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    /// Waits until something has happened, for this long at most, and does what follows.
    fn serve(&self, at_most: Duration) {
        let ready = self.descriptors.wait(at_most);
        let mut driver = self.driver.lock();
        ready.into_iter().for_each(|what| driver.ready(what));
        driver.tick();
    }
}

impl Service {
    /// The life of the listener's thread.
    pub fn run(self) {
        let shared = self.0;
        while !shared.closed.load(Ordering::Acquire) {
            let left = shared.driver.lock().time_left();
            shared.serve(left.map_or(shared.look_around, |left| left.min(shared.look_around)));
        }
    }
}
