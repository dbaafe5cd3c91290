//! The addresses that a program without a launcher gives: `lapi_extend_t` of LAPI_Init, and LAPI_ADD_UDP_DEST_PORT of LAPI_Util.

use super::check;
use crate::abi::{
    LAPI_ERR_TGT, LAPI_ERR_UDP_PORT_INFO, LAPI_ERR_USER_UDP_HNDLR_FAIL, LAPI_ERR_UTIL_CMD,
    lapi_add_udp_port_t, lapi_extend_t, lapi_handle_t, lapi_udp_t, lapi_udpinfo_t,
};
use crate::engine::context::Held;
use crate::error::{Error, Result};
use crate::job::{Identity, Listing, Way};

/// `lapi_extend_t` of the program.
///
/// Programs may leave what is behind num_udp_addr uninitialised, or have a shorter structure: nothing behind it is read.
pub(super) struct Extension {
    structure: *const lapi_extend_t,
    handle: lapi_handle_t,
    instance: usize,
}

impl Extension {
    /// Of a context with this handle and this instance, from 0; `None`: the program has no such structure.
    ///
    /// # Safety
    /// `structure` must be null or the program's, as the man page of LAPI_Init wants it, as long as this lives.
    pub(super) unsafe fn new(
        structure: *const lapi_extend_t,
        handle: lapi_handle_t,
        instance: usize,
    ) -> Option<Self> {
        (!structure.is_null()).then_some(Self { structure, handle, instance })
    }

    fn list(&self, tasks: u32) -> Result<Vec<lapi_udp_t>> {
        // SAFETY: the promise to `new`; the fields are read alone.
        let (list, listed) = unsafe { ((*self.structure).add_udp_addrs, (*self.structure).num_udp_addr) };
        // 0: the man page's own program does not set it.
        if listed != 0 && listed < tasks {
            let detail = format!("num_udp_addr is {listed}, and the job has {tasks} tasks");
            return Err(Error::new(LAPI_ERR_UDP_PORT_INFO, detail));
        }
        // SAFETY: the promise to `new`: the list has an entry for each task.
        Ok((0..tasks as usize).map(|task| unsafe { *list.add(task) }).collect())
    }

    fn ask(&self, identity: &Identity, own: lapi_udp_t) -> Result<Vec<lapi_udp_t>> {
        // SAFETY: the promise to `new`; the field is read alone.
        let handler = unsafe { (*self.structure).udp_hndlr };
        let Identity { task, tasks, .. } = *identity;
        let mut handle = self.handle;
        let mut local = own;
        let mut list = vec![lapi_udp_t { ip_addr: 0, port_no: 0 }; tasks as usize];
        let mut info = lapi_udpinfo_t {
            task_id: task,
            tot_num_tasks: tasks,
            num_tasks: tasks,
            instance_no: self.instance as u32 + 1,
            reserve: [0; 10],
        };
        // SAFETY: the program's handler, which the man page lets LAPI call with these.
        let code =
            handler.map_or(0, |run| unsafe { run(&mut handle, &mut local, list.as_mut_ptr(), &mut info) });
        match code {
            0 => Ok(list),
            code => Err(Error::new(LAPI_ERR_USER_UDP_HNDLR_FAIL, format!("it has returned {code}"))),
        }
    }
}

impl Listing for Extension {
    fn way(&self) -> Way {
        // SAFETY: the promise to `new`; the fields are read alone.
        let (handler, list) = unsafe { ((*self.structure).udp_hndlr, (*self.structure).add_udp_addrs) };
        match (handler, list.is_null()) {
            (Some(_), _) => Way::Handler,
            (None, false) => Way::List,
            (None, true) => Way::Nothing,
        }
    }

    fn read(&mut self, identity: &Identity, own: lapi_udp_t) -> Result<Vec<lapi_udp_t>> {
        match self.way() {
            Way::Handler => self.ask(identity, own),
            Way::List | Way::Nothing => self.list(identity.tasks),
        }
    }
}

/// Takes note of where the process receives that has taken a task's place (LAPI_ADD_UDP_DEST_PORT). `instance_no` is not looked at.
///
/// # Errors
/// `LAPI_ERR_UTIL_CMD`: the job has its addresses from a launcher, or none. `LAPI_ERR_TGT`: no other task has this number.
/// `LAPI_ERR_UDP_PORT_INFO`: `udp_port` is null, or no such task can be there.
///
/// # Safety
/// `udp_port` must be null or the program's structure.
pub unsafe fn add_destination(held: &mut Held<'_>, command: &mut lapi_add_udp_port_t) -> Result<()> {
    let Some(addresses) = held.options().addresses.clone() else {
        let detail = "the program has given LAPI_Init no addresses of the tasks, or a launcher has them";
        return Err(Error::new(LAPI_ERR_UTIL_CMD, detail));
    };
    let task = command.tgt;
    check::target(held, task)?;
    if held.options().me == task {
        return Err(Error::new(LAPI_ERR_TGT, format!("task {task} is this task itself")));
    }
    // SAFETY: the caller's promise.
    let Some(port) = (unsafe { command.udp_port.as_ref() }) else {
        return Err(Error::new(LAPI_ERR_UDP_PORT_INFO, "udp_port is null"));
    };
    addresses.change(task, *port)?;
    command.status = 0;
    Ok(())
}
