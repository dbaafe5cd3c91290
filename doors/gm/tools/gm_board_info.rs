//! gm_board_info: what GM sees: this host's node, its ports, and the nodes of the job.

use gm::board;
use std::ffi::{CStr, c_char, c_uint, c_void};
use std::process::ExitCode;
use std::ptr;

/// GM_API_VERSION_2_0_16.
const VERSION: c_uint = 0x20010;
/// What stands above the nodes.
const HEADS: &str = "gmID  host name";
const SUCCESS: c_uint = 0;
const BUSY: c_uint = 5;

unsafe extern "C" {
    fn gm_init() -> c_uint;
    fn gm_finalize();
    fn gm_open(
        port: *mut *mut c_void,
        unit: c_uint,
        number: c_uint,
        name: *const c_char,
        v: c_uint,
    ) -> c_uint;
    fn gm_close(port: *mut c_void);
    fn gm_get_node_id(port: *mut c_void, node: *mut c_uint) -> c_uint;
    fn gm_max_node_id_in_use(port: *mut c_void, node: *mut c_uint) -> c_uint;
    fn gm_node_id_to_host_name(port: *mut c_void, node: c_uint) -> *mut c_char;
    fn gm_strerror(status: c_uint) -> *mut c_char;
}

fn main() -> ExitCode {
    if std::env::args_os().count() > 1 {
        println!("usage: gm_board_info\nShows the node of this host, its ports, and the nodes of the job.");
        return ExitCode::from(2);
    }
    match board::by_hand() {
        Ok(None) => {}
        Ok(Some((own, hosts))) => {
            title(own, hosts.len() as u32);
            println!("  ports: its process alone knows");
            println!("{HEADS}");
            hosts.iter().zip(1..).for_each(|(host, node)| line(node, host, own));
            return ExitCode::SUCCESS;
        }
        Err(why) => {
            eprintln!("gm_board_info: {why}");
            return ExitCode::FAILURE;
        }
    }
    // SAFETY: GM's calls, with pointers to variables, and ports that it has opened.
    unsafe {
        let status = gm_init();
        if status != SUCCESS {
            eprintln!("gm_board_info: gm_init: {}", CStr::from_ptr(gm_strerror(status)).to_string_lossy());
            return ExitCode::FAILURE;
        }
        let shown = show();
        gm_finalize();
        shown
    }
}

fn title(own: c_uint, highest: c_uint) {
    println!("GM 2.0.16 on OpenLAPI {}", env!("CARGO_PKG_VERSION"));
    println!("board 0: node {own} of {highest}");
}

fn line(node: c_uint, host: &str, own: c_uint) {
    println!("{node:4}  {host}{}", if node == own { " (this node)" } else { "" });
}

/// # Safety
/// gm_init has succeeded.
unsafe fn show() -> ExitCode {
    let (mut first, mut lines) = (ptr::null_mut::<c_void>(), Vec::new());
    // SAFETY: as in main.
    unsafe {
        for number in 0..8 {
            let mut port = ptr::null_mut();
            let status = gm_open(&raw mut port, 0, number, c"gm_board_info".as_ptr(), VERSION);
            lines.push(match (number, status) {
                (0 | 1 | 3, BUSY) => format!("  port {number}: GM's own"),
                (_, BUSY) => format!("  port {number}: busy"),
                (_, SUCCESS) => format!("  port {number}: free"),
                _ => format!("  port {number}: {}", CStr::from_ptr(gm_strerror(status)).to_string_lossy()),
            });
            match (status, first.is_null()) {
                (SUCCESS, true) => first = port,
                (SUCCESS, false) => gm_close(port),
                _ => {}
            }
        }
        if first.is_null() {
            eprintln!("gm_board_info: no port is free");
            return ExitCode::FAILURE;
        }
        let (mut own, mut highest) = (0, 0);
        gm_get_node_id(first, &raw mut own);
        gm_max_node_id_in_use(first, &raw mut highest);
        title(own, highest);
        lines.iter().for_each(|line| println!("{line}"));
        println!("{HEADS}");
        for node in 1..=highest {
            let name = gm_node_id_to_host_name(first, node);
            let name = if name.is_null() { "unknown".into() } else { CStr::from_ptr(name).to_string_lossy() };
            line(node, &name, own);
        }
        gm_close(first);
    }
    ExitCode::SUCCESS
}
