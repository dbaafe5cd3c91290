//! How a session is opened on a channel whose two sides know each other.

use super::Session;
use super::endpoints::Endpoint;
use super::sleep::Descriptors;
use crate::error::{Error, Result};
use crate::exchange::{ByChannel, Failed, no_core};
use crate::line::Line;
use crate::messages::{HANDLER, Inbox, Landing, Receiver, arrived};
use crate::watch::Watch;
use crate::wire::{Card, MessageKind, Routes, Side};
use openlapi::abi::{L1_LIB, lapi_handle_t};
use openlapi::api::session::{Interrupts, Session as Core, Settings as CoreSettings};
use openlapi::api::{Context, Events, Failure, Link};
use openlapi::config::{Config, Euilib, UseShm};
use openlapi::error::Log;
use openlapi::job::{Common, Identity, fabric_candidates, network_preferences};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How sessions are opened.
#[derive(Clone)]
pub struct Settings {
    /// The ways that data may take. The two sides use the best one that both may and can: shared
    /// memory, then libfabric, then UDP. Where libfabric uses connections of TCP, which takes 71 MB
    /// for each session, at most 4 sessions of a process have it at a time, and others use UDP; all
    /// have it where one side may not use UDP.
    pub routes: Routes,
    /// How long opening and closing may take.
    pub patience: Duration,
    /// What the environment of a program of LAPI would say: providers, interfaces, sizes. What a
    /// session decides by itself is replaced: the transport, the secret and the time for the start.
    pub config: Config,
    /// Where messages go, as many as `config` asks for.
    pub log: Log,
    /// Gives the memory for messages of the peer; `None`: each has its own.
    pub landing: Option<Landing>,
    /// Takes messages of the peer as they arrive, instead of the inbox.
    pub receiver: Option<Arc<dyn Receiver>>,
    /// The peer may do nothing but send messages: what would put, get or change a number at an
    /// address that it names ends the session. Does not hold for shared memory, where both sides
    /// are processes of one user, and excludes libfabric, whose cards would do it alone.
    pub guarded: bool,
    /// Bytes of data of the longest message that is taken from the peer. A longer one ends the
    /// session with [`Error::Limit`], and no memory is asked for.
    pub longest: usize,
}

/// All ways, 10 seconds, messages of any length, and nothing from the environment.
impl Default for Settings {
    fn default() -> Self {
        Self {
            routes: Routes::ALL,
            patience: Duration::from_secs(10),
            config: Config::default(),
            log: Log::none(),
            landing: None,
            receiver: None,
            guarded: false,
            longest: usize::MAX,
        }
    }
}

/// A time that is never waited for.
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// The time at which this patience ends; one that has no end ends in a year.
pub(crate) fn after(patience: Duration) -> Instant {
    Instant::now() + patience.min(FAR)
}

/// What the core reports beside the results of calls. The session ends by it in the call that looks
/// next: operations are under way until then.
struct Reports(Arc<Watch>);

impl Events for Reports {
    fn ends_by(&self, _: &Failure<'_>) -> bool {
        false
    }

    fn failed(&self, _: &Context, failure: &Failure<'_>) {
        self.0.note_failure(failure.error.to_string());
    }

    fn fatal(&self) {
        self.0.note_fatal();
    }

    fn stalled(&self) {}

    fn closing(&self, _: &Context, _: bool) {}
}

/// A sleep that nothing ends.
const LONG: Duration = Duration::from_secs(3600);

/// How long a thread polls before it yields the processor. A job counts the tasks that want the
/// processors, and its tasks poll ten times as long; nothing counts the processes with sessions.
const SPIN_TIME: Duration = Duration::from_micros(100);

/// Sessions are numbered above the handles that LAPI gives.
static LAST: AtomicU32 = AtomicU32::new(1 << 16);

/// Opens this side's session. When that fails, the other side learns why.
///
/// # Errors
/// [`Error::NoRoute`], [`Error::Refused`], [`Error::Lost`], [`Error::Late`], [`Error::Core`],
/// [`Error::Limit`].
pub(crate) fn open(
    mut line: Line,
    side: Side,
    (own, peer): (&Card, &Card),
    settings: &Settings,
    until: Instant,
) -> Result<Session> {
    let (route, endpoint) = match route(&mut line, (own, peer), settings, until) {
        Ok(found) => found,
        Err(error) => {
            line.refuse(&error);
            return Err(error);
        }
    };
    let name = u128::from_le_bytes(line.secret(b"name"));
    let secret = line.secret(b"job");
    let line = Arc::new(Mutex::new(line));
    let watch = Arc::new(Watch::new(line.clone(), peer, own));
    let opened = begin(
        &line,
        side,
        (name, secret),
        (route, endpoint, own.host == peer.host),
        (settings, until),
        &watch,
    );
    let mut line = lock(&line);
    match opened {
        Ok(session) => line.exchange(MessageKind::Ready, &[], until).map(|_| session),
        Err(error) => {
            line.refuse(&error);
            Err(error)
        }
    }
}

fn lock(line: &Mutex<Line>) -> MutexGuard<'_, Line> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The best way that both sides may use and can, with the endpoint that it takes.
fn route(
    line: &mut Line,
    (own, peer): (&Card, &Card),
    settings: &Settings,
    until: Instant,
) -> Result<(Routes, Option<Endpoint>)> {
    // A card says what its side wants; the kernel knows whose that is.
    let user = line.channel().user();
    let is_own = user.is_none_or(|user| user.uid == rustix::process::geteuid().as_raw());
    if is_own && own.host == peer.host && own.routes.and(peer.routes).has(Routes::SHARED_MEMORY) {
        return Ok((Routes::SHARED_MEMORY, None));
    }
    let has_udp = own.routes.and(peer.routes).has(Routes::UDP);
    let (networks, endpoint) = networks(settings, own.host == peer.host, has_udp);
    let theirs = match *line.exchange(MessageKind::Networks, &[networks.0], until)? {
        [byte] => Routes(byte),
        _ => return Err(Error::Forged("networks that are none")),
    };
    let common = networks.and(theirs);
    let found = [Routes::FABRIC, Routes::UDP].into_iter().find(|route| common.has(*route));
    let found = found.map(|route| (route, endpoint.filter(|_| route == Routes::FABRIC)));
    found.ok_or_else(|| {
        let place = if own.host == peer.host { "they share a host" } else { "they share no host" };
        Error::NoRoute(format!("{place}; this side has {networks}, and the other one {theirs}"))
    })
}

/// The networks that this side may use and can, with the endpoint that libfabric takes where its
/// number is limited.
fn networks(settings: &Settings, one_host: bool, has_udp: bool) -> (Routes, Option<Endpoint>) {
    let Settings { routes, config, .. } = settings;
    let others = routes.and(Routes::UDP);
    if settings.guarded || !routes.has(Routes::FABRIC) {
        return (others, None);
    }
    let Ok(listed) = fabric_candidates(config, &network_preferences(config, one_host)) else {
        return (others, None);
    };
    let both = Routes(others.0 | Routes::FABRIC.0);
    if !has_udp || !listed.choice.sends_by_system_calls() {
        return (both, None);
    }
    Endpoint::take().map_or((others, None), |endpoint| (both, Some(endpoint)))
}

/// Opens the core's session, with all that belongs to it.
fn begin(
    line: &Arc<Mutex<Line>>,
    side: Side,
    (name, secret): (u128, [u8; 16]),
    (route, endpoint, one_host): (Routes, Option<Endpoint>, bool),
    (settings, until): (&Settings, Instant),
    watch: &Arc<Watch>,
) -> Result<Session> {
    let is_near = route == Routes::SHARED_MEMORY;
    let config = Config {
        use_shm: if is_near { UseShm::Yes } else { UseShm::No },
        euilib: (route == Routes::UDP).then_some(Euilib::Ip),
        job_secret: Some(secret.into()),
        init_timeout: until.saturating_duration_since(Instant::now()),
        ..settings.config.clone()
    };
    let identity = Identity {
        task: side.task(),
        tasks: 2,
        key: format!("session {name:032x}"),
        common: if one_host { Common::All } else { Common::Counted(1) },
        source: "a channel",
    };
    let failed = Failed::default();
    let link = match is_near {
        true => Link::none(),
        false => Link::by(Box::new(ByChannel::new(line.clone(), side, failed.clone()))),
    };
    let handle: lapi_handle_t = LAST.fetch_add(1, Ordering::Relaxed).max(1 << 16);
    let core_settings = CoreSettings {
        config,
        handle,
        // The session's counters are plain numbers.
        level: L1_LIB,
        completion_threads: 0,
        interrupts: Interrupts::Never,
        // The channel shows the end of the peer.
        look_around: LONG,
        spin_time: SPIN_TIME,
        guarded: settings.guarded,
        log: settings.log.clone(),
        ..CoreSettings::default()
    };
    let user = lock(line).channel().user();
    let core = Core::open(&identity, core_settings, &link, Arc::new(Reports(watch.clone())));
    let core = core.map_err(|error| no_core(error, &failed))?;
    let sleep = Descriptors::open(core.as_fd(), watch)?;
    core.enter()?.register_function(HANDLER as i32, arrived as *const () as usize)?;
    Ok(Session {
        core: Arc::new(core),
        process: std::process::id(),
        watch: watch.clone(),
        inbox: Inbox::open(handle, settings.landing.clone(), settings.receiver.clone(), settings.longest),
        handle,
        side,
        route,
        user,
        patience: settings.patience,
        started: AtomicI32::new(0),
        complete: Box::new(AtomicI32::new(0)),
        sleep,
        _endpoint: endpoint,
        ending: Mutex::new(()),
    })
}
