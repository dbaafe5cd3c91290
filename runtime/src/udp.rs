//! The addresses that a program without a launcher gives: `lapi_extend_t` of LAPI_Init, and
//! LAPI_ADD_UDP_DEST_PORT and LAPI_ADD_UDP_DEST_EXT of LAPI_Util.

use libc::{c_int, sockaddr_storage};
use openlapi::abi::{
    LAPI_ADD_UDP_DEST_EXT, LAPI_ERR_TGT, LAPI_ERR_UDP_PORT_INFO, LAPI_ERR_USER_UDP_HNDLR_FAIL,
    LAPI_ERR_UTIL_CMD, lapi_add_udp_port_t, lapi_extend_t, lapi_handle_t, lapi_udp_t, lapi_udpinfo_t,
    udp_init_ext_hndlr, udp_init_hndlr,
};
use openlapi::api::check;
use openlapi::engine::context::Held;
use openlapi::error::{Error, Result};
use openlapi::job::addresses::Address;
use openlapi::job::{Identity, Listing, Way};

/// `lapi_extend_t` of the program.
///
/// Programs may leave what is behind num_udp_addr uninitialised, or have a shorter structure. What
/// is behind it is read when udp_hndlr and add_udp_addrs are null, and num_udp_addr has an address
/// for each task: it can only be about add_udp_ext_addrs and udp_ext_hndlr then.
pub(crate) struct Extension {
    structure: *const lapi_extend_t,
    handle: lapi_handle_t,
    instance: usize,
}

impl Extension {
    /// Of a context with this handle and this instance, from 0; `None`: the program has no
    /// such structure.
    ///
    /// # Safety
    /// `structure` must be null or the program's, as the man page of LAPI_Init wants it, as long
    /// as this lives.
    pub(crate) unsafe fn new(
        structure: *const lapi_extend_t,
        handle: lapi_handle_t,
        instance: usize,
    ) -> Option<Self> {
        (!structure.is_null()).then_some(Self { structure, handle, instance })
    }

    /// How the program gives the addresses.
    fn source(&self, tasks: u32) -> Option<Source> {
        let structure = self.structure;
        // SAFETY: the promise to `new`; the fields are read alone.
        let (handler, list, listed) =
            unsafe { ((*structure).udp_hndlr, (*structure).add_udp_addrs, (*structure).num_udp_addr) };
        if handler.is_some() || !list.is_null() {
            return handler.map(Source::Handler).or(Some(Source::List(list)));
        }
        if listed < tasks {
            return None;
        }
        // SAFETY: the promise to `new`: a program that counts addresses, and has none of the older
        // kind, has these fields.
        let (handler, list) = unsafe { ((*structure).udp_ext_hndlr, (*structure).add_udp_ext_addrs) };
        handler.map(Source::ExtHandler).or((!list.is_null()).then_some(Source::ExtList(list)))
    }

    fn check_length(&self, tasks: u32) -> Result<()> {
        // SAFETY: the promise to `new`; the field is read alone.
        let listed = unsafe { (*self.structure).num_udp_addr };
        // 0: the man page's own program does not set it.
        if listed != 0 && listed < tasks {
            let detail = format!("num_udp_addr is {listed}, and the job has {tasks} tasks (MP_PROCS)");
            return Err(Error::new(LAPI_ERR_UDP_PORT_INFO, detail));
        }
        Ok(())
    }

    fn info(&self, identity: &Identity) -> lapi_udpinfo_t {
        let Identity { task, tasks, .. } = *identity;
        lapi_udpinfo_t {
            task_id: task,
            tot_num_tasks: tasks,
            num_tasks: tasks,
            instance_no: self.instance as u32 + 1,
            reserve: [0; 10],
        }
    }

    fn ask(&self, run: udp_init_hndlr, identity: &Identity, own: Option<Address>) -> Result<Vec<Address>> {
        let none = lapi_udp_t { ip_addr: 0, port_no: 0 };
        let mut local = own.map_or(none, Address::four);
        let (mut handle, mut info) = (self.handle, self.info(identity));
        let mut list = vec![none; identity.tasks as usize];
        // SAFETY: the program's handler, which the man page lets LAPI call with these.
        succeeded(unsafe { run(&mut handle, &mut local, list.as_mut_ptr(), &mut info) })?;
        Ok(list.into_iter().map(Address::of_four).collect())
    }

    fn ask_any(
        &self,
        run: udp_init_ext_hndlr,
        identity: &Identity,
        own: Option<Address>,
    ) -> Result<Vec<Address>> {
        // SAFETY: an address without a family; every field may be 0.
        let none: sockaddr_storage = unsafe { std::mem::zeroed() };
        let (mut local, mut list) = (own.map_or(none, Address::any), vec![none; identity.tasks as usize]);
        let (mut handle, mut info) = (self.handle, self.info(identity));
        // SAFETY: the program's handler, which is called as the other kind is.
        succeeded(unsafe { run(&mut handle, &mut local, list.as_mut_ptr(), &mut info) })?;
        (0..).zip(&list).map(|(task, address)| Address::of_any(task, address)).collect()
    }
}

/// What the program has set in the structure.
enum Source {
    List(*const lapi_udp_t),
    Handler(udp_init_hndlr),
    ExtList(*const sockaddr_storage),
    ExtHandler(udp_init_ext_hndlr),
}

impl Listing for Extension {
    fn way(&self, tasks: u32) -> Way {
        match self.source(tasks) {
            None => Way::Nothing,
            Some(Source::List(_) | Source::ExtList(_)) => Way::List,
            Some(Source::Handler(_)) => Way::Handler { any_family: false },
            Some(Source::ExtHandler(_)) => Way::Handler { any_family: true },
        }
    }

    fn read(&mut self, identity: &Identity, own: Option<Address>) -> Result<Vec<Address>> {
        let tasks = identity.tasks;
        match self.source(tasks) {
            None => Ok(Vec::new()),
            Some(Source::Handler(run)) => self.ask(run, identity, own),
            Some(Source::ExtHandler(run)) => self.ask_any(run, identity, own),
            Some(Source::List(list)) => {
                self.check_length(tasks)?;
                // SAFETY: the promise to `new`: the list has an entry for each task.
                Ok((0..tasks as usize).map(|task| Address::of_four(unsafe { *list.add(task) })).collect())
            }
            Some(Source::ExtList(list)) => {
                // SAFETY: the same.
                (0..tasks).map(|task| Address::of_any(task, unsafe { &*list.add(task as usize) })).collect()
            }
        }
    }
}

fn succeeded(code: c_int) -> Result<()> {
    match code {
        0 => Ok(()),
        code => Err(Error::new(LAPI_ERR_USER_UDP_HNDLR_FAIL, format!("it has returned {code}"))),
    }
}

/// Takes note of where the process receives that has taken a task's place (LAPI_ADD_UDP_DEST_PORT;
/// LAPI_ADD_UDP_DEST_EXT, whose `udp_port` is a pointer to a `sockaddr_storage`). `instance_no` is
/// not looked at.
///
/// # Errors
/// `LAPI_ERR_UTIL_CMD`: the job has its addresses from a launcher, or none. `LAPI_ERR_TGT`:
/// no other task has this number. `LAPI_ERR_UDP_PORT_INFO`: `udp_port` is null, or no such
/// task can be there.
///
/// # Safety
/// `udp_port` must be null or the program's address, of the kind that `Util_type` says.
pub unsafe fn add_destination(held: &mut Held<'_>, command: &mut lapi_add_udp_port_t) -> Result<()> {
    let Some(addresses) = held.addresses() else {
        let detail = "the program has given LAPI_Init no addresses of the tasks, or a launcher has them";
        return Err(Error::new(LAPI_ERR_UTIL_CMD, detail));
    };
    let task = command.tgt;
    check::target(held, task)?;
    if held.task() == task {
        return Err(Error::new(LAPI_ERR_TGT, format!("task {task} is this task itself")));
    }
    let to = match command.Util_type {
        // SAFETY: the caller's promise for this kind of command.
        LAPI_ADD_UDP_DEST_EXT => unsafe { command.udp_port.cast::<sockaddr_storage>().as_ref() }
            .map(|address| Address::of_any(task, address))
            .transpose()?,
        // SAFETY: the same.
        _ => unsafe { command.udp_port.as_ref() }.copied().map(Address::of_four),
    };
    let Some(to) = to else {
        return Err(Error::new(LAPI_ERR_UDP_PORT_INFO, "udp_port is null"));
    };
    addresses.change(task, to)?;
    command.status = 0;
    Ok(())
}
