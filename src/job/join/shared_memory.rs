//! Shared memory between the tasks of one host: the listener, and what this task
//! sends about itself.

use super::Joining;
use crate::base::asymmetric_barrier;
use crate::base::loader;
use crate::base::open_files;
use crate::base::process::Process;
use crate::base::random::random;
use crate::base::thread::{self, ThreadConfig};
use crate::config::ShmAttach;
use crate::error::Result;
use crate::job::{Connections, Hosts, connect};
use crate::transport::shm::remote::{self, CrossMemory};
use crate::transport::shm::{Group, Own, ShmTransport, segment};
use crate::wire::hello::Hello;

/// What the names of listeners have in the place of the job's key, where the tasks have agreed upon
/// a secret: that belongs to one opening of one job. The key need not be the same in all tasks of
/// this host: where no variable has one, it comes from the process that has started the task, and a
/// launcher may have several such processes on one machine.
pub(super) const AGREED: &str = "agreed";

/// Begins to listen for the other tasks of this host. `job` and `secret` are the same in all of
/// them, `processes` as [`connect::ConnectSettings`] has them.
///
/// # Errors
/// `LAPI_ERR_SHM_SETUP`: the system lacks something, this host has too many tasks, another user has
/// this task's name, or this is a child of fork whose parent has sessions without a thread of their
/// own, as this one is to be.
pub(super) fn open(
    place: &Joining<'_>,
    hosts: &Hosts,
    (job, secret): (&str, Option<&[u8]>),
    processes: Box<[Process]>,
) -> Result<ShmTransport> {
    let Joining { config, identity, instance, thread_config, log, link, openings, opening, .. } = *place;
    if thread_config.is_none() {
        connect::may_listen()?;
    }
    let group = Group::new(identity.tasks, hosts.here(), hosts.largest());
    let here = group.count();
    // Each task that this one connects with takes two descriptors, and more for a moment. If there
    // are not enough, connecting reports that.
    let _ = open_files::allow(4 * u64::from(here) + 64);
    let hello = Hello {
        task: identity.task,
        tasks: identity.tasks,
        generation: opening,
        secret: secret.unwrap_or_default().to_vec(),
        ..hello(here)
    };
    let asymmetric = hello.asymmetric;
    let denied = config.shm_attach == ShmAttach::Deny;
    let wanted = config.shm_attach != ShmAttach::No;
    let memory = wanted
        .then(|| CrossMemory::new(identity.tasks, denied, (config.info_level >= 2).then(|| log.clone())));
    let (own, site) = Own::create(identity.task, group)?;
    let settings = connect::ConnectSettings {
        job: job.to_owned(),
        instance,
        openings: openings.clone(),
        ends: link.ends().clone(),
        hello,
        init_timeout: config.init_timeout,
        info_level: config.info_level as u8,
        log: log.clone(),
        processes,
        hint: hint(place),
    };
    let connections = Connections::open(settings, site, |service| match thread_config {
        Some(thread_config) => listen(service, thread_config),
        None => service.run_in_common(),
    })?;
    Ok(ShmTransport::new(own, asymmetric, memory, Box::new(connections)))
}

/// The longest body of a packet between tasks of one host, in bytes, in a job whose hosts have up
/// to `largest` tasks.
pub(super) fn longest_body(largest: u32) -> usize {
    segment::longest_body(segment::geometry(largest))
}

/// Starts the listener's thread, and returns what waits for its end.
fn listen(service: connect::Service, thread_config: ThreadConfig) -> Result<Box<dyn FnOnce() + Send>> {
    let thread = thread::spawn("lapi-conn", thread_config, move || service.run())?;
    Ok(Box::new(move || thread.join()))
}

/// The possible mistake when another task is not found.
fn hint(place: &Joining<'_>) -> Option<String> {
    let identity = place.identity;
    if place.ignores_addresses {
        let detail = "with MP_EUILIB=us the addresses in add_info of lapi_info_t are not used, and all tasks without a launcher are \
                      expected on this machine; MP_EUILIB=ip uses them";
        return Some(detail.to_owned());
    }
    let env = place.link.env();
    let by_hand = env("MP_CHILD").is_some() && env("MP_PARTITION").is_none();
    by_hand.then(|| {
        format!(
            "MP_PARTITION is not set; tasks that are started by hand from several shells need the same value of it in \
             all of them ({} tasks)",
            identity.tasks
        )
    })
}

/// What this task sends about itself when it connects.
fn hello(tasks: u32) -> Hello {
    let landmark = remote::landmark();
    Hello {
        incarnation: u64::from_ne_bytes(random()),
        landmark: landmark.address,
        mark: landmark.mark,
        asymmetric: asymmetric_barrier::pays_off(tasks),
        maps: [loader::program_linked_with(c"liblapi"), hello as *const () as u64],
        ..Hello::default()
    }
}
