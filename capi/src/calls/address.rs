//! LAPI_Addr_set, LAPI_Addr_get, LAPI_Address, LAPI_Address_init, LAPI_Address_init64.

use crate::boundary;
use libc::{c_int, c_ulong, c_void};
use openlapi::abi::*;
use openlapi::api::address;
use openlapi::error::{Error, Result};

pub(crate) unsafe fn addr_set(hndl: lapi_handle_t, addr: *mut c_void, addr_hndl: c_int) -> c_int {
    boundary::call("LAPI_Addr_set", hndl, |held| held.register_function(addr_hndl, addr as usize))
}

pub(crate) unsafe fn addr_get(hndl: lapi_handle_t, addr: *mut *mut c_void, addr_hndl: c_int) -> c_int {
    boundary::call("LAPI_Addr_get", hndl, |held| {
        some(addr)?;
        let found = held.registered_function(addr_hndl)?;
        // SAFETY: not null, and the program's.
        unsafe { addr.write(found as *mut c_void) };
        Ok(())
    })
}

pub(crate) unsafe fn address(my_addr: *mut c_void, ret_addr: *mut c_ulong) -> c_int {
    let outcome = if my_addr.is_null() {
        Err(Error::new(LAPI_ERR_ORG_ADDR_NULL, "a null address"))
    } else if ret_addr.is_null() {
        Err(Error::new(LAPI_ERR_TGT_ADDR_NULL, "a null pointer for the address"))
    } else {
        // SAFETY: not null, and the program's.
        unsafe { ret_addr.write(my_addr as c_ulong) };
        Ok(())
    };
    boundary::code("LAPI_Address", LAPI_VOID_HANDLE, outcome)
}

pub(crate) unsafe fn address_init(
    hndl: lapi_handle_t,
    my_addr: *mut c_void,
    add_tab: *mut *mut c_void,
) -> c_int {
    boundary::call("LAPI_Address_init", hndl, |held| {
        some(add_tab)?;
        let values = address::exchange(held, my_addr as u64)?;
        for (task, value) in values.into_iter().enumerate() {
            // SAFETY: the program gives room for one address of each task.
            unsafe { add_tab.add(task).write(value as *mut c_void) };
        }
        Ok(())
    })
}

pub(crate) unsafe fn address_init64(
    hndl: lapi_handle_t,
    my_addr: lapi_long_t,
    add_tab: *mut lapi_long_t,
) -> c_int {
    boundary::call("LAPI_Address_init64", hndl, |held| {
        some(add_tab)?;
        let values = address::exchange(held, my_addr)?;
        // SAFETY: the program gives room for one value of each task.
        unsafe { add_tab.copy_from_nonoverlapping(values.as_ptr(), values.len()) };
        Ok(())
    })
}

fn some<T>(pointer: *mut T) -> Result<()> {
    if pointer.is_null() {
        return Err(Error::new(LAPI_ERR_RET_PTR_NULL, "a null pointer for the result"));
    }
    Ok(())
}
