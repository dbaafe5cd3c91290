//! Data distribution functions: what LAPI_REG_DDM_FUNC registers and CONTROL calls (the man page
//! of LAPI_Util).

use super::shape::Control;
use super::walk::Sink;
use crate::abi::ddm_func_t;
use crate::memory::bytes::{self, Piece};
use libc::{c_int, c_long};

/// The sink that hands runs to a function while a CONTROL demands it, and copies them otherwise.
pub(super) struct Distributor {
    memory: *mut u8,
    data: *const u8,
    function: ddm_func_t,
    control: Option<Control>,
}

impl Distributor {
    /// # Safety
    /// Every run that the sink gets must be writable, counted from `memory`, and `data` must hold
    /// all of them. The function must be sound to call with them.
    pub(super) unsafe fn new(memory: *mut u8, data: *const u8, function: ddm_func_t) -> Self {
        Self { memory, data, function, control: None }
    }

    fn distribute(&self, Control { operation, operand }: Control, memory: *mut u8, len: usize) {
        let mut done = 0;
        while done < len {
            let (data, place) = (self.data.wrapping_add(done), memory.wrapping_add(done));
            let left = len - done;
            let (len, operand, operation) = (left as c_long, operand as c_int, operation as c_int);
            // SAFETY: the maker of the sink vouches for the run, the data and the function.
            let taken =
                unsafe { (self.function)(data.cast_mut().cast(), place.cast(), len, operand, operation) };
            match usize::try_from(taken) {
                Ok(taken @ 1..) if taken < left => done += taken,
                // All of it, or a result that is not a number of bytes: functions exist that return
                // 0 for "no error".
                _ => break,
            }
        }
    }
}

impl Sink for Distributor {
    fn run(&mut self, at: isize, len: usize) {
        let memory = self.memory.wrapping_offset(at);
        match self.control {
            Some(control) => self.distribute(control, memory, len),
            // SAFETY: the maker of the sink vouches for the run and for the data.
            None => unsafe { bytes::copy(Piece { ptr: self.data, len }, memory) },
        }
        self.data = self.data.wrapping_add(len);
    }

    fn control(&mut self, control: Control) {
        self.control = (control.operation >= 0).then_some(control);
    }
}
