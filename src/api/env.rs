//! LAPI_Qenv, LAPI_Senv, LAPI_Msg_string.

use super::MAX_UHDR;
use crate::abi::*;
use crate::config::{self, Env};
use crate::engine::context::queries::Statistics;
use crate::engine::context::statistics::Path;
use crate::engine::context::{ADDRESS_TABLE, Context, Held};
use crate::engine::progress::wait::make_progress;
use crate::error::catalog::{self, Found};
use crate::error::{self, Error, Result};
use std::ffi::c_int;
use std::sync::atomic::Ordering::Relaxed;

/// The shortest and the longest TIMEOUT, in seconds.
pub const TIMEOUTS: std::ops::RangeInclusive<i32> = 10..=86_400;
/// The valid values of ACK_THRESHOLD.
pub const ACK_THRESHOLDS: std::ops::RangeInclusive<i32> = 1..=31;
/// The number of contexts a task may have: MAX_PORTS.
pub const INSTANCES: usize = 16;

/// The result of a query.
pub enum Value {
    /// One number.
    Number(c_int),
    /// One number for each task.
    List(Vec<c_int>),
    /// Counts.
    Statistics(lapi_statistics_t),
    /// The result was printed.
    Printed,
}

/// The addresses of all hosts that the job's network was chosen from, with what has become of each,
/// as lines; in task 0 only, and none where no network is used.
pub fn networks(held: &mut Held<'_>) -> Vec<String> {
    held.options().networks.clone()
}

/// The value of a query (man page LAPI_Qenv, appendix D).
pub fn query(held: &mut Held<'_>, query: lapi_query_t) -> Result<Value> {
    make_progress(held);
    let settings = &held.context().settings;
    let options = held.options();
    let advertised = &options.advertised;
    Ok(Value::Number(match query {
        TASK_ID => options.me as c_int,
        NUM_TASKS => options.tasks as c_int,
        QUERY_SHM_NUM_TASKS => options.hosts.sharing().len() as c_int,
        MAX_UHDR_SZ => MAX_UHDR as c_int,
        MAX_DATA_SZ => c_int::MAX,
        ERROR_CHK => settings.error_check.load(Relaxed).into(),
        TIMEOUT => settings.timeout.load(Relaxed),
        MIN_TIMEOUT => *TIMEOUTS.start(),
        MAX_TIMEOUT => *TIMEOUTS.end(),
        INTERRUPT_SET => settings.interrupts.load(Relaxed).into(),
        MAX_PORTS => INSTANCES as c_int,
        MAX_PKT_SZ | MAX_ATOM_SIZE => held.packet_size() as c_int,
        NUM_REX_BUFS => advertised.rexmit_buffers,
        REX_BUF_SZ => advertised.rexmit_size,
        LOC_ADDRTBL_SZ => ADDRESS_TABLE as c_int,
        EPOCH_NUM | USE_THRESH => 0,
        RCV_FIFO_SIZE => held.limits().receive_buffer as c_int,
        BUF_CP_SIZE => options.copy_limit as c_int,
        MAX_PKTS_OUT => held.limits().window as c_int,
        ACK_THRESHOLD => settings.ack_threshold.load(Relaxed),
        QUERY_SHM_ENABLED => (options.hosts.sharing().len() > 1).into(),
        QUERY_SHM_TASKS => {
            return Ok(Value::List(options.hosts.sharing().into_iter().map(|task| task as c_int).collect()));
        }
        QUERY_STATISTICS => return Ok(Value::Statistics(held.statistics().network.as_statistics())),
        QUERY_SHM_STATISTICS => return Ok(Value::Statistics(held.statistics().peers.as_statistics())),
        QUERY_LOCAL_SEND_STATISTICS => {
            return Ok(Value::Statistics(held.statistics().local.as_statistics()));
        }
        PRINT_STATISTICS => {
            let me = options.me;
            let text = lines(me, &held.statistics());
            // Without the lock: another thread may hold that of stdout and wait for this one.
            held.unlocked(|| print(&text));
            return Ok(Value::Printed);
        }
        BULK_XFER => held.has_bulk_transfer().into(),
        BULK_MIN_MSG_SIZE => advertised.bulk_minimum,
        _ => return Err(unknown(query)),
    }))
}

/// Sets one of the four attributes that can be set (man page LAPI_Senv).
pub fn set(context: &Context, query: lapi_query_t, value: c_int) -> Result<()> {
    let settings = &context.settings;
    let within = |name: &str, range: std::ops::RangeInclusive<i32>| {
        if range.contains(&value) {
            return Ok(());
        }
        let detail = format!("{name} {value}; valid: {} to {}", range.start(), range.end());
        Err(Error::new(LAPI_ERR_SET_VAL, detail))
    };
    match query {
        // The manual has `boolean toggle`: whatever is not 0 is true.
        ERROR_CHK => settings.error_check.store(value != 0, Relaxed),
        INTERRUPT_SET => {
            settings.interrupts.store(value != 0, Relaxed);
            // The notifier checks at once, and arms or disarms the transport.
            context.notifier.watch();
        }
        TIMEOUT => {
            within("TIMEOUT", TIMEOUTS)?;
            settings.timeout.store(value, Relaxed);
        }
        ACK_THRESHOLD => {
            within("ACK_THRESHOLD", ACK_THRESHOLDS)?;
            settings.ack_threshold.store(value, Relaxed);
            if let Ok(mut held) = context.enter() {
                held.acknowledge_every(value as u16);
            }
        }
        _ => return Err(unknown(query)),
    }
    if let Some(mut held) = context.try_enter() {
        make_progress(&mut held);
    }
    Ok(())
}

/// The text of a return code in the language of the environment, without a final zero (man page
/// LAPI_Msg_string). An unknown number gets a text as well, which names it as unknown. At most
/// LAPI_MAX_ERR_STRING - 1 bytes.
///
/// # Errors
/// `LAPI_ERR_CATALOG_FAIL`: NLSPATH is set, and no catalogue of that language can be opened; the
/// text is the English one. `LAPI_ERR_CODE_UNKNOWN`.
pub fn message(code: c_int, env: &Env<'_>) -> (String, Result<()>) {
    let (mut text, outcome) = match error::lookup(code) {
        Some(entry) => match catalog::look_up(code, env) {
            Found::BuiltIn => (entry.to_string(), Ok(())),
            Found::Translated(text) => (entry.with(&text), Ok(())),
            Found::NoCatalog { locale } => {
                let detail = format!("no liblapi.cat for the locale {locale}; the text is in English");
                (entry.to_string(), Err(Error::new(LAPI_ERR_CATALOG_FAIL, detail)))
            }
        },
        None => match system_error(code) {
            Some(text) => (text, Ok(())),
            None => (
                format!("{code} is not a return code of LAPI"),
                Err(Error::new(LAPI_ERR_CODE_UNKNOWN, format!("{code} is not a return code of LAPI"))),
            ),
        },
    };
    while text.len() >= LAPI_MAX_ERR_STRING {
        text.pop();
    }
    (text, outcome)
}

/// How many messages to write while there is no context (`MP_INFOLEVEL`); 1 when the value is not
/// valid, so that the error that names it is seen.
pub fn info_level() -> i32 {
    config::info_level(&config::process_env).map_or(1, |level| level as i32)
}

/// The environment of this process, for [`message`] and [`Error::translated`].
pub fn environment(name: &str) -> Option<String> {
    config::process_env(name)
}

/// The manual has LAPI look for texts of the system's error numbers too.
fn system_error(code: c_int) -> Option<String> {
    let text = (1..=133).contains(&code).then(|| std::io::Error::from_raw_os_error(code).to_string())?;
    (!text.starts_with("Unknown error")).then_some(text)
}

fn unknown(query: lapi_query_t) -> Error {
    Error::new(LAPI_ERR_QUERY_TYPE, format!("query {query}; valid: 0 to {}", LAST_QUERY - 1))
}

/// The lines of PRINT_STATISTICS.
fn lines(me: u32, statistics: &Statistics) -> String {
    let line = |way: &str, path: &Path| {
        format!(
            "task {me}: {way}: packets sent {}, received {}, data bytes sent {}, received {}, copies refused {}\n",
            path.packets_sent, path.packets_received, path.bytes_sent, path.bytes_received, path.refused
        )
    };
    let Statistics { network, peers, local } = statistics;
    [line("network", network), line("shared memory", peers), line("local", local)].concat()
}

/// Writes to C's stdout, after what the program has printed before, and in one piece so that the
/// lines of several tasks stay together.
fn print(text: &str) {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
    }
    // SAFETY: the C library's stream, which is locked for each call; the text is readable. Nothing
    // can be done about a stream that fails.
    unsafe {
        // What the program has buffered goes first; the lines are then written with one call.
        libc::fflush(stdout);
        libc::fwrite(text.as_ptr().cast(), 1, text.len(), stdout);
        libc::fflush(stdout);
    }
}
