//! LAPI_Address_init, LAPI_Address_init64, LAPI_Addr_set, LAPI_Addr_get.

use crate::abi::{LAPI_ERR_ADDR_HNDL_RANGE, LAPI_ERR_UNKNOWN};
use crate::engine::context::{ADDRESS_TABLE, Core, Held};
use crate::engine::progress::dispatcher;
use crate::engine::progress::wait::wait_until;
use crate::error::{Error, Result};
use crate::proto::collective::Failure;
use std::time::{Duration, Instant};

/// How long a collective operation that is over helps its last packets out.
const LAST_PACKET: Duration = Duration::from_secs(1);

/// Every task gives a value and gets those of all, by task (man page LAPI_Address_init64).
pub fn exchange(held: &mut Held<'_>, value: u64) -> Result<Vec<u64>> {
    collective(held, "LAPI_Address_init", Some(value))
}

/// Registers a function under an index (man page LAPI_Addr_set).
pub fn set(held: &mut Held<'_>, index: i32, function: usize) -> Result<()> {
    *slot(held.core(), index)? = function;
    Ok(())
}

/// The function under an index, 0 when none was set (man page LAPI_Addr_get).
pub fn get(held: &mut Held<'_>, index: i32) -> Result<usize> {
    slot(held.core(), index).copied()
}

fn slot(core: &mut Core, index: i32) -> Result<&mut usize> {
    match usize::try_from(index) {
        Ok(at @ 1..ADDRESS_TABLE) => Ok(&mut core.addresses[at]),
        _ => Err(Error::new(
            LAPI_ERR_ADDR_HNDL_RANGE,
            format!("index {index}; indices are 1 to {}", ADDRESS_TABLE - 1),
        )),
    }
}

/// A collective operation of all tasks: a barrier, or an exchange of a value. Threads of one task take turns.
pub(super) fn collective(held: &mut Held<'_>, what: &'static str, value: Option<u64>) -> Result<Vec<u64>> {
    if held.in_handler() {
        return Err(Error::new(
            LAPI_ERR_UNKNOWN,
            format!("{what} inside of a handler that the dispatcher runs"),
        ));
    }
    wait_until(held, what, |core| (!std::mem::replace(&mut core.collective_turn, true)).then_some(()))?;
    let core = held.core();
    let (collectives, outbox, mut wire) = core.collective();
    collectives.enter(value, outbox, &mut wire);
    dispatcher::advance_collective(core);
    let answer = wait_until(held, what, |core| core.collected.take());
    if held.core().outbox.waiting() {
        // Our part of the operation has found no room yet. Others wait for it, and this task may not call again soon.
        let until = Instant::now() + LAST_PACKET;
        wait_until(held, what, |core| (!core.outbox.waiting() || Instant::now() >= until).then_some(()))?;
    }
    let core = held.core();
    core.collective_turn = false;
    core.news = true;
    answer?.map_err(|Failure { task, code }| {
        Error::new(code, format!("{what} cannot end well: task {task}, which takes part in it, has left"))
    })
}
