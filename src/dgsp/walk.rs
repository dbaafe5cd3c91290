//! Goes through the tree from any byte of the packed stream on, and passes each run to a [`Sink`].

use super::shape::{Block, Control, Dim, MAX_FIELDS, Node, Shape, Step};

/// Blocks at the points of a plane, row by row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plane {
    pub(super) block: usize,
    pub(super) rows: usize,
    pub(super) row_stride: isize,
    pub(super) count: usize,
    pub(super) stride: isize,
}

/// Takes what the packed stream consists of, in its order. What is not overridden ends in
/// [`Sink::run`].
pub(super) trait Sink {
    /// `len` bytes at `at`.
    fn run(&mut self, at: isize, len: usize);

    /// Whole blocks at the points of a plane whose first is at `at`.
    #[inline]
    fn plane(&mut self, at: isize, plane: Plane) {
        let mut row = at;
        for _ in 0..plane.rows {
            let mut place = row;
            for _ in 0..plane.count {
                self.run(place, plane.block);
                place = place.wrapping_add(plane.stride);
            }
            row = row.wrapping_add(plane.row_stride);
        }
    }

    /// Whole blocks at places relative to `at`.
    #[inline]
    fn indexed(&mut self, at: isize, block: usize, places: &[i64]) {
        for &place in places {
            self.run(at.wrapping_add(place as isize), block);
        }
    }

    /// Whole runs at places relative to `at`; the last entry is the position after the last run.
    #[inline]
    fn list(&mut self, at: isize, list: &[Block]) {
        for pair in list.windows(2) {
            self.run(at.wrapping_add(pair[0].offset as isize), (pair[1].start - pair[0].start) as usize);
        }
    }

    /// Takes a record of few runs, `count` times, `stride` apart.
    #[inline]
    fn records(&mut self, at: isize, list: &[Block], count: usize, stride: isize) {
        let mut record = at;
        for _ in 0..count {
            self.list(record, list);
            record = record.wrapping_add(stride);
        }
    }

    /// From here on the runs are to be treated so.
    #[inline]
    fn control(&mut self, _control: Control) {}
}

/// Hands the bytes `from..from + len` of a node to a sink. The node is at `at`.
///
/// The bytes must be among those of the node.
pub(super) fn walk<S: Sink>(node: &Node, at: isize, from: u64, len: u64, sink: &mut S) {
    debug_assert!(from.checked_add(len).is_some_and(|end| end <= node.size));
    if len == 0 {
        return;
    }
    match &node.shape {
        Shape::Run => sink.run(at.wrapping_add(from as isize), len as usize),
        Shape::Grid { block, dims } => grid(dims, *block, at, from, len, sink),
        Shape::Indexed { block, places } => indexed(places, *block, at, from, len, sink),
        Shape::Blocks { list } => blocks(list, at, from, len, sink),
        Shape::Loop { count: _, stride, body } => repetitions(body, *stride as isize, at, from, len, sink),
        Shape::Sequence { steps } => sequence(steps, at, from, len, sink),
        Shape::Control => {}
    }
}

/// A range of bytes cut into what is left of one unit, whole units, and the start of another.
struct Cut {
    /// The first unit that is touched.
    first: u64,
    /// Where in it to start, and how many bytes of it: none if it is whole.
    from: u64,
    head: u64,
    /// How many whole units follow (the first among them if it has no head).
    whole: u64,
    tail: u64,
}

#[inline]
fn cut(unit: u64, from: u64, len: u64) -> Cut {
    let (first, from) = if from == 0 { (0, 0) } else { (from / unit, from % unit) };
    let head = if from == 0 { 0 } else { len.min(unit - from) };
    let rest = len - head;
    Cut { first, from, head, whole: rest / unit, tail: rest % unit }
}

fn step(at: isize, stride: isize, times: u64) -> isize {
    at.wrapping_add(stride.wrapping_mul(times as isize))
}

/// Walks a grid of blocks ([`walk`]).
pub(super) fn grid<S: Sink>(dims: &[Dim], block: usize, at: isize, from: u64, len: u64, sink: &mut S) {
    let Some((dim, inner)) = dims.split_first() else {
        return sink.run(at.wrapping_add(from as isize), len as usize);
    };
    let stride = dim.stride as isize;
    let cut = cut(dim.size, from, len);
    let mut at = step(at, stride, cut.first);
    if cut.head != 0 {
        grid(inner, block, at, cut.from, cut.head, sink);
        at = at.wrapping_add(stride);
    }
    if cut.whole != 0 {
        points(inner, block, at, cut.whole, stride, sink);
        at = step(at, stride, cut.whole);
    }
    if cut.tail != 0 {
        grid(inner, block, at, 0, cut.tail, sink);
    }
}

/// Everything behind `count` points.
fn points<S: Sink>(inner: &[Dim], block: usize, at: isize, count: u64, stride: isize, sink: &mut S) {
    let count = count as usize;
    match inner {
        [] => sink.plane(at, Plane { block, rows: 1, row_stride: 0, count, stride }),
        [last] => {
            let (columns, step) = (last.count as usize, last.stride as isize);
            sink.plane(at, Plane { block, rows: count, row_stride: stride, count: columns, stride: step });
        }
        [next, rest @ ..] => {
            let mut place = at;
            for _ in 0..count {
                points(rest, block, place, next.count, next.stride as isize, sink);
                place = place.wrapping_add(stride);
            }
        }
    }
}

fn indexed<S: Sink>(places: &[i64], block: usize, at: isize, from: u64, len: u64, sink: &mut S) {
    let cut = cut(block as u64, from, len);
    let mut i = cut.first as usize;
    if cut.head != 0 {
        sink.run(at.wrapping_add(places[i] as isize).wrapping_add(cut.from as isize), cut.head as usize);
        i += 1;
    }
    let whole = i + cut.whole as usize;
    sink.indexed(at, block, &places[i..whole]);
    if cut.tail != 0 {
        sink.run(at.wrapping_add(places[whole] as isize), cut.tail as usize);
    }
}

fn blocks<S: Sink>(list: &[Block], at: isize, from: u64, len: u64, sink: &mut S) {
    let part = |i: usize, skip: u64| at.wrapping_add(list[i].offset as isize).wrapping_add(skip as isize);
    let end = from + len;
    let mut first = if from == 0 { 0 } else { list.partition_point(|block| block.start <= from) - 1 };
    let skip = from - list[first].start;
    if skip != 0 {
        let here = (list[first + 1].start - from).min(len);
        sink.run(part(first, skip), here as usize);
        first += 1;
    }
    if list[first].start >= end {
        return;
    }
    // The entry behind the last whole run: where another one starts that is not whole, or where
    // the list ends.
    let whole = first + list[first..].partition_point(|block| block.start <= end) - 1;
    sink.list(at, &list[first..=whole]);
    let rest = end - list[whole].start;
    if rest != 0 {
        sink.run(part(whole, 0), rest as usize);
    }
}

fn repetitions<S: Sink>(body: &Node, stride: isize, at: isize, from: u64, len: u64, sink: &mut S) {
    let cut = cut(body.size, from, len);
    let mut at = step(at, stride, cut.first);
    if let Some(control) = body.control.filter(|_| cut.first != 0) {
        sink.control(control);
    }
    if cut.head != 0 {
        walk(body, at, cut.from, cut.head, sink);
        at = at.wrapping_add(stride);
    }
    if cut.whole != 0 {
        match &body.shape {
            Shape::Blocks { list } if list.len() <= MAX_FIELDS + 1 => {
                sink.records(at, list, cut.whole as usize, stride);
                at = step(at, stride, cut.whole);
            }
            _ => {
                for _ in 0..cut.whole {
                    walk(body, at, 0, body.size, sink);
                    at = at.wrapping_add(stride);
                }
            }
        }
    }
    if cut.tail != 0 {
        walk(body, at, 0, cut.tail, sink);
    }
}

fn sequence<S: Sink>(steps: &[Step], at: isize, from: u64, len: u64, sink: &mut S) {
    let first = if from == 0 { 0 } else { steps.partition_point(|step| step.start <= from) - 1 };
    if let Some(control) = steps[first].before {
        sink.control(control);
    }
    let mut skip = from - steps[first].start;
    let mut left = len;
    for step in &steps[first..] {
        let node = &*step.part.node;
        if left == 0 && node.size != 0 {
            break;
        }
        let here = (node.size - skip).min(left);
        walk(node, at.wrapping_add(step.part.offset as isize), skip, here, sink);
        // A CONTROL behind the last byte counts: the next repetition starts with it.
        if let Some(control) = node.control.filter(|_| node.size == 0) {
            sink.control(control);
        }
        left -= here;
        if skip + here < node.size {
            break;
        }
        skip = 0;
    }
}
