//! The machine as the manual describes it: a counter, a stack, one instruction after the other.
//! Slow and plain; it shares nothing with what it is held against.

use crate::abi::{
    LAPI_DGSM_CONTROL, LAPI_DGSM_CONTROL_SIZE, LAPI_DGSM_COPY, LAPI_DGSM_COPY_SIZE, LAPI_DGSM_GOSUB,
    LAPI_DGSM_ITERATE, LAPI_DGSM_MCOPY, LAPI_DGSM_MCOPY_BLOCK_SIZE, LAPI_DGSM_MCOPY_SIZE,
    lapi_dgsm_control_t, lapi_dgsm_copy_t, lapi_dgsm_gosub_t, lapi_dgsm_iterate_t, lapi_dgsm_mcopy_t,
};

/// One copy that the machine makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Where the bytes stand in the packed stream.
    pub start: u64,
    pub offset: i64,
    pub len: u64,
    /// Operation and operand, in CONTROL mode.
    pub control: Option<(i32, i32)>,
}

struct Frame {
    base: i64,
    reps: i64,
    stride: i64,
    back: usize,
}

/// What the machine moves until it has moved `bytes` bytes; none if it needs more than `steps`
/// instructions for it, or reaches something that is not an instruction.
pub fn moves(code: &[i32], extent: i64, bytes: u64, mut steps: usize) -> Option<Vec<Move>> {
    let mut moves = Vec::new();
    let mut done = 0;
    let mut control = None;
    let mut ic = 0;
    let mut stack = vec![Frame { base: 0, reps: i64::MAX, stride: extent, back: 0 }];
    while done < bytes {
        steps = steps.checked_sub(1)?;
        let frame = stack.last_mut()?;
        match *code.get(ic)? as u32 {
            LAPI_DGSM_COPY => {
                let copy: lapi_dgsm_copy_t = read(code, ic)?;
                done = one(&mut moves, done, frame.base.wrapping_add(copy.offset), copy.bytes, control)?;
                ic += LAPI_DGSM_COPY_SIZE as usize;
            }
            LAPI_DGSM_MCOPY => {
                let count = *code.get(ic + 1)?;
                for i in 0..count {
                    if done >= bytes {
                        break;
                    }
                    steps = steps.checked_sub(1)?;
                    let block = ic + (i * LAPI_DGSM_MCOPY_BLOCK_SIZE) as usize;
                    // The blocks are read as if each stood in an instruction of its own.
                    let mcopy: lapi_dgsm_mcopy_t = read(code, block)?;
                    let block = mcopy.block[0];
                    let offset = frame.base.wrapping_add(block.block_disp);
                    done = one(&mut moves, done, offset, block.block_len, control)?;
                }
                let size = LAPI_DGSM_MCOPY_SIZE + (count - 1) * LAPI_DGSM_MCOPY_BLOCK_SIZE;
                ic = ic.checked_add_signed(size as isize)?;
            }
            LAPI_DGSM_GOSUB => {
                let gosub: lapi_dgsm_gosub_t = read(code, ic)?;
                let back = ic.checked_add_signed(gosub.ret_loc as isize)?;
                if gosub.reps == 0 {
                    ic = back;
                } else {
                    let base = frame.base.wrapping_add(gosub.offset);
                    stack.push(Frame { base, reps: gosub.reps, stride: gosub.stride, back });
                    ic = ic.checked_add_signed(gosub.to_loc as isize)?;
                }
            }
            LAPI_DGSM_ITERATE => {
                let iterate: lapi_dgsm_iterate_t = read(code, ic)?;
                frame.reps -= 1;
                if frame.reps != 0 {
                    frame.base = frame.base.wrapping_add(frame.stride);
                    ic = ic.checked_add_signed(iterate.iter_loc as isize)?;
                } else {
                    ic = frame.back;
                    stack.pop();
                }
            }
            LAPI_DGSM_CONTROL => {
                let said: lapi_dgsm_control_t = read(code, ic)?;
                control = (said.operation >= 0).then_some((said.operation, said.operand));
                ic += LAPI_DGSM_CONTROL_SIZE as usize;
            }
            _ => return None,
        }
    }
    if let Some(last) = moves.last_mut() {
        last.len -= done - bytes;
    }
    Some(moves)
}

fn one(
    moves: &mut Vec<Move>,
    start: u64,
    offset: i64,
    bytes: i64,
    control: Option<(i32, i32)>,
) -> Option<u64> {
    let len = u64::try_from(bytes).ok()?;
    if len != 0 {
        moves.push(Move { start, offset, len, control });
    }
    start.checked_add(len)
}

fn read<T: Copy>(code: &[i32], at: usize) -> Option<T> {
    let ints = code.get(at..at + size_of::<T>() / size_of::<i32>())?;
    // SAFETY: there are as many ints as T is long, and T consists of numbers only.
    Some(unsafe { ints.as_ptr().cast::<T>().read_unaligned() })
}
