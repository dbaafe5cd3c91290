//! Puts and gets of several blocks at a time: LAPI_Putv and LAPI_Getv.

use crate::port::Until;
use crate::window::Window;
use bytemuck::Pod;
use libc::{c_ulong, c_void};
use openlapi::abi::*;
use openlapi::api::vector;
use openlapi::error::{Error, Result};
use openlapi_runtime::request;
use std::ptr;

impl<T: Pod + Send + Sync> Window<T> {
    /// Copies each block to the window of `task`, from its own element on, as one message
    /// (LAPI_Putv). Returns when the blocks may be changed.
    ///
    /// # Errors
    /// The errors of [`Window::put`]; nothing is copied then.
    pub fn put_blocks(&self, task: u32, blocks: &[(usize, &[T])]) -> Result<()> {
        if blocks.is_empty() {
            return self.place(task, 0, 0).map(drop);
        }
        let origin = blocks.iter().map(|(_, data)| (data.as_ptr() as u64, size_of_val(*data)));
        let mut lists = self.lists(task, blocks.iter().map(|(at, data)| (*at, data.len())), origin)?;
        let (mut org_vec, mut tgt_vec) = lists.vectors();
        // SAFETY: the blocks are borrowed until `perform` returns, the vectors live during the
        // call, which alone reads them, and the places are within the target's window.
        unsafe {
            self.port().perform(task, Until::Reusable, |held, counters| {
                self.check_life(held, task)?;
                let command = lapi_putv_t {
                    Xfer_type: LAPI_PUTV_XFER,
                    flags: USE_TGT_VEC_TYPE,
                    tgt: task,
                    pad: 0,
                    shdlr: None,
                    sinfo: ptr::null_mut(),
                    org_vec: &mut org_vec,
                    tgt_vec: (&raw mut tgt_vec).cast(),
                    tgt_cntr: 0,
                    org_cntr: counters.origin,
                    cmpl_cntr: counters.completion,
                };
                vector::put(held, request::put_vector(&command))
            })
        }
    }

    /// Copies elements of the window of `task` to each block, from its own element on, as one
    /// message (LAPI_Getv). Returns when they are there.
    ///
    /// # Errors
    /// The errors of [`Window::put`]; nothing is copied then.
    pub fn get_blocks(&self, task: u32, blocks: &mut [(usize, &mut [T])]) -> Result<()> {
        if blocks.is_empty() {
            return self.place(task, 0, 0).map(drop);
        }
        let origin: Vec<_> =
            blocks.iter_mut().map(|(_, into)| (into.as_mut_ptr() as u64, size_of_val(*into))).collect();
        let places = blocks.iter().map(|(at, into)| (*at, into.len()));
        let mut lists = self.lists(task, places, origin.into_iter())?;
        let (mut org_vec, mut tgt_vec) = lists.vectors();
        // SAFETY: as in `put_blocks`; the blocks are apart, and any bytes are a `T`.
        unsafe {
            self.port().perform(task, Until::Reusable, |held, counters| {
                self.check_life(held, task)?;
                let command = lapi_getv_t {
                    Xfer_type: LAPI_GETV_XFER,
                    flags: USE_TGT_VEC_TYPE,
                    tgt: task,
                    pad: 0,
                    org_vec: &mut org_vec,
                    tgt_vec: (&raw mut tgt_vec).cast(),
                    tgt_cntr: 0,
                    org_cntr: counters.origin,
                    chndlr: None,
                    cinfo: ptr::null_mut(),
                };
                vector::get(held, request::get_vector(&command))
            })
        }
    }

    /// The addresses and lengths of blocks at both tasks.
    fn lists(
        &self,
        task: u32,
        places: impl Iterator<Item = (usize, usize)>,
        origin: impl Iterator<Item = (u64, usize)>,
    ) -> Result<Lists> {
        if u32::try_from(places.size_hint().0).is_err() {
            return Err(Error::new(LAPI_ERR_VEC_NUM_DIFF, "more blocks than a vector counts"));
        }
        let target: Result<Vec<u64>> = places.map(|(at, len)| self.place(task, at, len)).collect();
        let (origin, lengths) = origin.map(|(at, len)| (at as *mut c_void, len as c_ulong)).unzip();
        let target = target?.into_iter().map(|at| at as *mut c_void).collect();
        Ok(Lists { origin, target, lengths })
    }
}

/// Blocks with the same lengths at both tasks.
struct Lists {
    origin: Vec<*mut c_void>,
    target: Vec<*mut c_void>,
    lengths: Vec<c_ulong>,
}

impl Lists {
    /// As C has them. They are valid as long as this.
    fn vectors(&mut self) -> (lapi_vec_t, lapi_vec_t) {
        let len = self.lengths.as_mut_ptr();
        let of = |places: &mut Vec<*mut c_void>| lapi_vec_t {
            vec_type: LAPI_GEN_IOVECTOR,
            num_vecs: places.len() as u32,
            info: places.as_mut_ptr(),
            len,
        };
        (of(&mut self.origin), of(&mut self.target))
    }
}
