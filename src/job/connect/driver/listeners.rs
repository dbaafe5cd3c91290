//! The names under which this task listens, and the connections that it accepts.

use super::hindrance::Step;
use super::{Driver, LISTENER};
use crate::abi::LAPI_ERR_SHM_SETUP;
use crate::error::{Error, Result};
use crate::job::channel::{Channel, Listener};
use rustix::event::epoll;
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::time::Duration;

/// How long an initiator may take to identify itself.
const INTRODUCTION: Duration = Duration::from_secs(5);
/// How long the listener rests when no descriptor is free for a connection.
const REST: Duration = Duration::from_millis(20);
/// Connections that are accepted before others are served: any user of the machine can make them.
const AT_A_TIME: usize = 64;
/// How often this task tries to listen under a name that another process has.
const BETWEEN_BINDS: Duration = Duration::from_millis(50);
/// And at least, under one that another user has, or for which the system lacks something: the
/// pause is doubled each time up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Driver {
    /// Listens under all names that this task should have. What cannot be done now is tried again.
    pub(super) fn bind(&mut self) -> Result<()> {
        let bound = self.bind_those_left();
        self.bind_pause = match bound {
            Ok(()) => Duration::ZERO,
            Err(_) => (self.bind_pause * 2).clamp(BETWEEN_BINDS, LONGEST_PAUSE),
        };
        if bound.is_err() {
            // A name that another process has was perhaps tried before the one that failed.
            let at = self.now() + self.bind_pause;
            self.bind_at = Some(self.bind_at.map_or(at, |sooner| sooner.min(at)));
        }
        bound
    }

    fn bind_those_left(&mut self) -> Result<()> {
        let failed = |reason: std::io::Error| {
            Error::new(
                LAPI_ERR_SHM_SETUP,
                format!("the listener of task {}: {reason}", self.settings.hello.task),
            )
        };
        self.bind_at = None;
        for (&generation, listener) in self.listeners.iter_mut().filter(|(_, listener)| listener.is_none()) {
            let name = self.key.name(generation, self.settings.hello.task);
            match Listener::bind(&name).map_err(failed)? {
                Some(new) => {
                    let data = epoll::EventData::new_u64(LISTENER | u64::from(generation));
                    let poll = self.poll.get().ok_or(Errno::BADF);
                    poll.and_then(|poll| epoll::add(poll, new.as_fd(), data, epoll::EventFlags::IN))
                        .map_err(|reason| failed(reason.into()))?;
                    *listener = Some(new);
                }
                None => {
                    let holder =
                        Channel::connect(&name).ok().flatten().and_then(|channel| channel.peer().ok());
                    if let Some(holder) = holder.filter(|holder| holder.uid != self.key.uid) {
                        let detail = format!(
                            "user {} (process {}) has the address of task {} of {}; start the job by poe",
                            holder.uid, holder.pid, self.settings.hello.task, self.key
                        );
                        return Err(Error::new(LAPI_ERR_SHM_SETUP, detail));
                    }
                    // The process that had this task's place before has not ended.
                    self.bind_at = Some(self.started.elapsed() + BETWEEN_BINDS);
                }
            }
        }
        Ok(())
    }

    /// Accepts connections that wait at a listener; what is left wakes the thread again, after it
    /// has served the others.
    pub(super) fn accept(&mut self, generation: u32) {
        for _ in 0..AT_A_TIME {
            let Some(Some(listener)) = self.listeners.get(&generation) else { return };
            match listener.accept() {
                Ok(Some(channel)) => {
                    self.hindrance.passed(Step::Accept);
                    let introduction = Some(self.now() + INTRODUCTION);
                    if let Some(id) = self.add(channel, introduction) {
                        self.read(id);
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    // No descriptors: the connections wait in the kernel's queue.
                    let _ = self.unless_limited(Step::Accept, Err::<(), _>(error));
                    self.watch_listeners(false);
                    self.rests_until = Some(self.now() + REST);
                    return;
                }
            }
        }
    }

    /// Whether connections that wait to be accepted wake the thread.
    pub(super) fn watch_listeners(&self, watch: bool) {
        let Some(poll) = self.poll.get() else { return };
        for (generation, listener) in &self.listeners {
            let Some(listener) = listener else { continue };
            let data = epoll::EventData::new_u64(LISTENER | u64::from(*generation));
            let flags = if watch { epoll::EventFlags::IN } else { epoll::EventFlags::empty() };
            let _ = epoll::modify(poll, listener.as_fd(), data, flags);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::test_deadline;
    use crate::base::descriptor::Descriptor;
    use crate::error::Log;
    use crate::job::Link;
    use crate::job::connect::ConnectSettings;
    use crate::job::connect::descriptors::Descriptors;
    use crate::job::connect::machine::Action;
    use crate::job::name::Key;
    use crate::transport::shm::{Group, Own};
    use crate::wire::hello::Hello;
    use rustix::event::Timespec;
    use std::mem::MaybeUninit;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::sync::Arc;
    use std::time::Instant;

    /// Task 0 of a job of this process and `case`, as a user has started it.
    fn driver(case: &str, uid: u32) -> (Own, Driver) {
        let (own, site) = Own::create(0, Group::all(2)).expect("shared memory");
        let (job, link) = (format!("{case} {}", std::process::id()), Link::none());
        let key = Key { job: job.clone(), instance: 0, secret: Vec::new(), uid };
        let settings = ConnectSettings {
            openings: link.openings(&job, 2, 0),
            job,
            instance: 0,
            ends: link.ends().clone(),
            hello: Hello { task: 0, tasks: 2, generation: 1, ..Hello::default() },
            init_timeout: test_deadline(),
            log: Log::none(),
            info_level: 0,
            processes: Box::default(),
            hint: None,
        };
        let poll = Descriptors::new().expect("descriptors").poll;
        (own, Driver::new(settings, key, site, poll).expect("its first name is free"))
    }

    /// What keeps it from listening here is a name that another user has.
    #[test]
    fn a_listener_that_could_not_be_opened_is_tried_again() {
        let (own, mut driver) = driver("listeners", u32::MAX);
        let foreign = Listener::bind(&driver.key.name(2, 0)).expect("a socket").expect("the name is free");
        driver.act(Action::Adopt(2));
        assert!(driver.listeners[&2].is_none() && driver.bind_at.is_some());
        // Ever more seldom, as it may be there for as long as the process.
        for _ in 0..8 {
            assert!(driver.bind().is_err());
        }
        assert_eq!(driver.bind_pause, LONGEST_PAUSE);
        drop(foreign);
        let end = Instant::now() + test_deadline();
        while driver.listeners[&2].is_none() {
            assert!(Instant::now() < end, "it does not listen");
            std::thread::sleep(Duration::from_millis(5));
            driver.tick();
        }
        assert_eq!(driver.bind_at, None);
        drop(own);
    }

    #[test]
    fn a_predecessor_is_looked_for_as_often_when_another_name_fails() {
        let uid = rustix::process::geteuid().as_raw();
        let (own, mut driver) = driver("predecessor", uid);
        let before = Listener::bind(&driver.key.name(2, 0)).expect("a socket").expect("the name is free");
        driver.listeners.extend([(2, None), (3, None)]);
        driver.bind_pause = LONGEST_PAUSE;
        // Nothing can be added to this one.
        let event = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).expect("a descriptor");
        driver.poll = Arc::new(Descriptor::new(event));
        assert!(driver.bind().is_err());
        assert_eq!(driver.bind_pause, LONGEST_PAUSE);
        assert!(driver.bind_at <= Some(driver.now() + BETWEEN_BINDS));
        drop((before, own));
    }

    /// A program has closed all descriptors, and waits with one of its own.
    #[test]
    fn what_the_program_waits_with_under_the_number_is_not_changed() {
        let (own, mut driver) = driver("closed", u32::MAX);
        let program = epoll::create(epoll::CreateFlags::CLOEXEC).expect("a descriptor");
        let number = driver.poll.as_fd().as_raw_fd();
        // SAFETY: the library is to see that the number is not its own any more.
        assert_eq!(unsafe { libc::dup2(program.as_raw_fd(), number) }, number);
        driver.act(Action::Adopt(2));
        assert!(driver.listeners[&2].is_none(), "its listener was added");
        let Some(Some(listener)) = driver.listeners.get(&1) else { panic!("it listens") };
        let (data, flags) = (epoll::EventData::new_u64(1), epoll::EventFlags::IN);
        epoll::add(&program, listener.as_fd(), data, flags).expect("room");
        let channel = Channel::connect(&driver.key.name(1, 0)).expect("a socket").expect("it listens");
        driver.key.uid = rustix::process::geteuid().as_raw();
        assert_eq!(driver.add(channel, None), None, "it was added");
        driver.watch_listeners(false);
        let mut space = [MaybeUninit::uninit(); 1];
        let (ready, _) = epoll::wait(&program, &mut space, Some(&Timespec::default())).expect("a look");
        assert_eq!(ready.len(), 1, "it is watched as before");
        drop((driver, own));
        // SAFETY: from now on the number is the program's.
        drop(unsafe { OwnedFd::from_raw_fd(number) });
    }
}
