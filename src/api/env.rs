//! LAPI_Qenv, LAPI_Senv.

use super::MAX_UHDR;
use crate::abi::*;
pub use crate::engine::context::statistics::Path;
use crate::engine::context::{ADDRESS_TABLE, Context, Held, Statistics};
use crate::engine::progress::poll::make_progress;
use crate::error::{Error, Result};
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
    Statistics(Path),
    /// Lines to be printed, each with its end. Without the lock: another thread may hold that of
    /// the stream, and wait for this one.
    Lines(String),
}

/// The addresses of all hosts that the job's network was chosen from, with what has become of each,
/// as lines; in task 0 only, and none where no network is used.
pub fn networks(held: &mut Held<'_>) -> Vec<String> {
    held.options().networks.clone()
}

/// The tasks on this task's host, itself included, in ascending order, whether or not they use
/// shared memory.
pub fn here(held: &mut Held<'_>) -> Vec<u32> {
    held.options().hosts.here()
}

/// The value of a query (man page LAPI_Qenv, appendix D).
pub fn query(held: &mut Held<'_>, query: lapi_query_t) -> Result<Value> {
    make_progress(held);
    let settings = &held.context().settings;
    let options = held.options();
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
        NUM_REX_BUFS => options.rexmit_buffers,
        REX_BUF_SZ => options.rexmit_size,
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
        QUERY_STATISTICS => return Ok(Value::Statistics(held.statistics().network)),
        QUERY_SHM_STATISTICS => return Ok(Value::Statistics(held.statistics().peers)),
        QUERY_LOCAL_SEND_STATISTICS => {
            return Ok(Value::Statistics(held.statistics().local));
        }
        PRINT_STATISTICS => {
            let me = options.me;
            return Ok(Value::Lines(lines(me, &held.statistics())));
        }
        BULK_XFER => held.has_bulk_transfer().into(),
        BULK_MIN_MSG_SIZE => options.bulk_minimum,
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
        INTERRUPT_SET if value != 0 && !context.notifier.exists() => {
            let detail = "INTERRUPT_SET of a session that was opened without a thread for it";
            return Err(Error::new(LAPI_ERR_SET_VAL, detail));
        }
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
            // The calling thread may be in a call already.
            if let Some(mut held) = context.enter_closing() {
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
