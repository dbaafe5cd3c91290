//! LAPI_UTIL, for the sake of one request: LAPI_REG_DDM_FUNC.
//!
//! Every other handler gets addresses from C too. The function that CONTROL instructions call gets
//! three numbers by value, which a Fortran function takes by reference. So C is given a function of
//! the library in its place, one for each of the program's functions.

use crate::common;
use libc::{c_int, c_long, c_void};
use openlapi::abi::{
    LAPI_ERR_MEMORY_EXHAUSTED, LAPI_REG_DDM_FUNC, ddm_func_t, lapi_handle_t, lapi_reg_ddm_t, lapi_util_t,
    lapi_util_type_t,
};
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The C call.
pub type InC = unsafe extern "C" fn(lapi_handle_t, *mut lapi_util_t) -> c_int;

/// The function as Fortran has it.
type ByReference =
    unsafe extern "C" fn(*mut c_void, *mut c_void, *const c_long, *const c_int, *const c_int) -> c_long;

/// Makes the request; the program's function, if it has one to register, is replaced on the way.
///
/// # Safety
/// The command is null or LAPI_ADDR_NULL, or a request as the man page wants it.
pub unsafe fn util(call: InC, hndl: lapi_handle_t, command: *mut lapi_util_t) -> c_int {
    let command = common::or_null(command);
    // SAFETY: every request begins with its type.
    let registers = !command.is_null()
        && unsafe { command.cast::<lapi_util_type_t>().read_unaligned() } == LAPI_REG_DDM_FUNC;
    if !registers {
        // SAFETY: what this function's caller owes.
        return unsafe { call(hndl, command) };
    }
    let place = command.cast::<lapi_reg_ddm_t>();
    // SAFETY: the type says what it is; the copy goes back without the function, which stays
    // the program's.
    unsafe {
        let mut request = place.read_unaligned();
        let function = request.ddm_func;
        if let Some(function) = function {
            let Some(for_c) = for_c(function as usize) else { return LAPI_ERR_MEMORY_EXHAUSTED };
            request.ddm_func = Some(for_c);
        }
        let mut whole = lapi_util_t { DdmFunc: request };
        let code = call(hndl, &raw mut whole);
        place.write_unaligned(lapi_reg_ddm_t { ddm_func: function, ..whole.DdmFunc });
        code
    }
}

/// The program's functions, each with its place for good; 0 where there is none yet.
static FUNCTIONS: [AtomicUsize; FOR_C.len()] = [const { AtomicUsize::new(0) }; FOR_C.len()];

/// What C is given for the function of each place.
static FOR_C: [ddm_func_t; 32] = [
    by_value::<0>,
    by_value::<1>,
    by_value::<2>,
    by_value::<3>,
    by_value::<4>,
    by_value::<5>,
    by_value::<6>,
    by_value::<7>,
    by_value::<8>,
    by_value::<9>,
    by_value::<10>,
    by_value::<11>,
    by_value::<12>,
    by_value::<13>,
    by_value::<14>,
    by_value::<15>,
    by_value::<16>,
    by_value::<17>,
    by_value::<18>,
    by_value::<19>,
    by_value::<20>,
    by_value::<21>,
    by_value::<22>,
    by_value::<23>,
    by_value::<24>,
    by_value::<25>,
    by_value::<26>,
    by_value::<27>,
    by_value::<28>,
    by_value::<29>,
    by_value::<30>,
    by_value::<31>,
];

/// What C is to call for this function; none when the program has registered more of them than
/// there are places.
fn for_c(function: usize) -> Option<ddm_func_t> {
    let taken = FUNCTIONS.iter().position(|place| {
        let was = place.compare_exchange(0, function, Ordering::AcqRel, Ordering::Acquire);
        was.unwrap_or_else(|other| other) == function || was.is_ok()
    })?;
    Some(FOR_C[taken])
}

unsafe extern "C" fn by_value<const PLACE: usize>(
    arrived: *mut c_void,
    there: *mut c_void,
    bytes: c_long,
    operand: c_int,
    operation: c_int,
) -> c_long {
    let function = FUNCTIONS[PLACE].load(Ordering::Acquire);
    // SAFETY: C has this function only since its place was taken by a function of the program.
    unsafe {
        let function: ByReference = mem::transmute(function);
        function(arrived, there, &bytes, &operand, &operation)
    }
}
