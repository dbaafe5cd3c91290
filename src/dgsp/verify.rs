//! What LAPI_VERIFY_DGSP asks for beyond what every program must keep: the descriptor agrees
//! with the code.

use super::compile::Compiled;
use super::shape::Shape;
use crate::abi::{
    LAPI_DGSM_CONTIG, LAPI_DGSM_SPARSE, LAPI_DGSM_UNIT, LAPI_ERR_DGSP_CTL, LAPI_ERR_DGSP_OTHER,
    LAPI_ERR_DGSP_STACK, lapi_dgsp_descr_t,
};
use crate::error::{Error, Result};

pub(super) fn descriptor(descriptor: &lapi_dgsp_descr_t, compiled: &Compiled) -> Result<()> {
    let &lapi_dgsp_descr_t { depth, density, size, extent, lext, rext, .. } = descriptor;
    let other = |what: String| Err(Error::new(LAPI_ERR_DGSP_OTHER, what));
    if usize::try_from(depth).map_or(true, |depth| depth < compiled.depth) {
        let what = format!("depth {depth}, but the code nests {} deep", compiled.depth);
        return Err(Error::new(LAPI_ERR_DGSP_STACK, what));
    }
    if compiled.controls && density != LAPI_DGSM_SPARSE {
        return Err(Error::new(LAPI_ERR_DGSP_CTL, "CONTROL asks for the density LAPI_DGSM_SPARSE"));
    }
    let moved = compiled.once.node.size;
    if u64::try_from(size) != Ok(moved) {
        return other(format!("size {size}, but the code moves {moved} bytes"));
    }
    let (low, high) = compiled.once.bounds();
    if moved != 0 && (low < lext as i64 || high > rext as i64) {
        return other(format!("lext {lext} and rext {rext}, but the code moves bytes from {low} to {high}"));
    }
    let row = matches!(compiled.once.node.shape, Shape::Run);
    match density {
        LAPI_DGSM_SPARSE => Ok(()),
        LAPI_DGSM_CONTIG | LAPI_DGSM_UNIT if !row => {
            other(format!("density {density}, but the code leaves gaps or goes back"))
        }
        LAPI_DGSM_CONTIG => Ok(()),
        LAPI_DGSM_UNIT if extent == size => Ok(()),
        LAPI_DGSM_UNIT => {
            other(format!("density LAPI_DGSM_UNIT, but size {size} and extent {extent} differ"))
        }
        _ => other(format!("density {density} does not exist")),
    }
}
