//! The compiled form of a program: a tree whose every node knows how many bytes it moves.
//!
//! Nodes are made only by [`run`], [`repeat`], [`forever`] and [`super::sequence`], which bring
//! what they are given into the shape that moves fastest: touching runs become one, perfect nests
//! of loops become a grid. A node does not contain its own position; that is the offset of the
//! [`Part`] that holds it. So a routine that is called from many places is compiled once.

use libc::c_int;
use std::sync::Arc;

/// A node and its position.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) offset: i64,
    pub(super) node: Arc<Node>,
}

#[derive(Debug)]
pub(super) struct Node {
    /// How many bytes it moves.
    pub(super) size: u64,
    /// In how many runs, as far as 64 bits can count.
    pub(super) runs: u64,
    /// The lowest byte, and the one behind the highest.
    pub(super) low: i64,
    pub(super) high: i64,
    /// What a CONTROL in it has left behind; none if it has none.
    pub(super) control: Option<Control>,
    pub(super) shape: Shape,
}

#[derive(Debug)]
pub(super) enum Shape {
    /// Contiguous bytes.
    Run,
    /// Blocks of `block` bytes at the points of a grid; the outermost dimension first.
    Grid { block: usize, dims: Box<[Dim]> },
    /// Blocks of `block` bytes at any places.
    Indexed { block: usize, places: Box<[i64]> },
    /// Runs of any length at any places; the last entry is the position after the last run.
    Blocks { list: Box<[Block]> },
    /// A body again and again.
    Loop { count: u64, stride: i64, body: Arc<Node> },
    /// One after another.
    Sequence { steps: Box<[Step]> },
    /// No bytes: only [`Node::control`] happens.
    Control,
}

/// One dimension of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dim {
    pub(super) count: u64,
    pub(super) stride: i64,
    /// How many bytes lie behind one of its points.
    pub(super) size: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) offset: i64,
    /// Where it starts in the packed bytes.
    pub(super) start: u64,
}

#[derive(Debug)]
pub(super) struct Step {
    pub(super) part: Part,
    /// Where it starts in the packed bytes.
    pub(super) start: u64,
    /// The value of the last CONTROL before it in the same sequence.
    pub(super) before: Option<Control>,
}

/// The arguments of a CONTROL. A negative operation means: copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Control {
    pub(super) operation: c_int,
    pub(super) operand: c_int,
}

/// An offset or a size that does not fit a long.
#[derive(Debug)]
pub(super) struct Overflow;

/// No message is longer.
const MAX_SIZE: u64 = i64::MAX as u64;

/// A loop over so few runs is moved field by field, not record by record.
pub(super) const MAX_FIELDS: usize = 8;

impl Part {
    pub(super) fn new(offset: i64, node: Node) -> Self {
        Self { offset, node: Arc::new(node) }
    }

    /// The part moved by `by` bytes.
    pub(super) fn shifted(&self, by: i64) -> Result<Self, Overflow> {
        let offset = self.offset.checked_add(by).ok_or(Overflow)?;
        offset.checked_add(self.node.low).ok_or(Overflow)?;
        offset.checked_add(self.node.high).ok_or(Overflow)?;
        Ok(Self { offset, node: self.node.clone() })
    }

    /// The lowest byte, and the one behind the highest.
    pub(super) fn bounds(&self) -> (i64, i64) {
        (self.offset + self.node.low, self.offset + self.node.high)
    }
}

/// No bytes.
pub(super) fn empty() -> Part {
    Part::new(0, leaf(0, 0, 0, 0, Shape::Run))
}

/// `len` contiguous bytes.
pub(super) fn run(offset: i64, len: u64) -> Result<Part, Overflow> {
    let end = i64::try_from(len).map_err(|_| Overflow)?;
    offset.checked_add(end).ok_or(Overflow)?;
    Ok(Part::new(offset, leaf(len, u64::from(len != 0), 0, end, Shape::Run)))
}

/// `count` times a part, `stride` bytes apart. With `exact`, every repetition stays visible.
pub(super) fn repeat(count: u64, stride: i64, part: &Part, exact: bool) -> Result<Part, Overflow> {
    let body = &part.node;
    if count == 0 {
        return Ok(empty());
    }
    if count == 1 || body.size == 0 {
        return Ok(part.clone());
    }
    let size = body.size.checked_mul(count).filter(|&size| size <= MAX_SIZE).ok_or(Overflow)?;
    let last = i64::try_from(count - 1).ok().and_then(|n| n.checked_mul(stride)).ok_or(Overflow)?;
    let low = body.low.checked_add(last.min(0)).ok_or(Overflow)?;
    let high = body.high.checked_add(last.max(0)).ok_or(Overflow)?;
    let node = Node {
        size,
        runs: body.runs.saturating_mul(count),
        low,
        high,
        control: body.control,
        shape: repeated(count, stride, body, exact),
    };
    let whole = if matches!(node.shape, Shape::Run) { Node { runs: 1, ..node } } else { node };
    // The shift by 0 checks whether the bounds fit the position of the part.
    Part::new(part.offset, whole).shifted(0)
}

/// A part again and again, for messages of any length.
pub(super) fn forever(stride: i64, part: &Part, exact: bool) -> Part {
    let body = &part.node;
    if body.size == 0 {
        return empty();
    }
    let count = MAX_SIZE / body.size + 1;
    // Never more than twice the longest message, which 64 bits hold. Offsets wrap as addresses do.
    let size = body.size * count;
    let shape = repeated(count, stride, body, exact);
    let (low, high, runs, control) = (body.low, body.high, body.runs, body.control);
    Part::new(part.offset, Node { size, runs, low, high, control, shape })
}

fn repeated(count: u64, stride: i64, body: &Arc<Node>, exact: bool) -> Shape {
    let plain = || Shape::Loop { count, stride, body: body.clone() };
    if exact {
        return plain();
    }
    match &body.shape {
        Shape::Run if i64::try_from(body.size) == Ok(stride) => Shape::Run,
        Shape::Run => match usize::try_from(body.size) {
            Ok(block) => Shape::Grid { block, dims: [Dim { count, stride, size: body.size }].into() },
            Err(_) => plain(),
        },
        Shape::Grid { block, dims } => {
            let mut dims = dims.to_vec();
            match joined(count, stride, dims[0].count, dims[0].stride) {
                Some(all) => dims[0].count = all,
                None => dims.insert(0, Dim { count, stride, size: body.size }),
            }
            Shape::Grid { block: *block, dims: dims.into() }
        }
        Shape::Loop { count: inner, stride: step, body: innermost } => {
            match joined(count, stride, *inner, *step) {
                Some(count) => Shape::Loop { count, stride: *step, body: innermost.clone() },
                None => plain(),
            }
        }
        Shape::Indexed { block, places } if places.len() <= MAX_FIELDS => {
            let list = places.iter().copied().chain([0]).zip((0u64..).map(|i| i * *block as u64));
            let list = list.map(|(offset, start)| Block { offset, start }).collect();
            Shape::Loop { count, stride, body: Arc::new(Node { shape: Shape::Blocks { list }, ..**body }) }
        }
        _ => plain(),
    }
}

/// The count of the one loop that a loop of a loop is, if it is one.
fn joined(count: u64, stride: i64, inner: u64, step: i64) -> Option<u64> {
    let whole = i64::try_from(inner).ok()?.checked_mul(step)?;
    if whole == stride { count.checked_mul(inner) } else { None }
}

pub(super) fn leaf(size: u64, runs: u64, low: i64, high: i64, shape: Shape) -> Node {
    Node { size, runs, low, high, control: None, shape }
}
