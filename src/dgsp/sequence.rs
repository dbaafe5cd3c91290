//! Parts one after another, brought into the shape that moves fastest.

use super::shape::{Block, Control, Dim, Node, Overflow, Part, Shape, Step, empty, leaf, run};

/// A list of so few runs is taken into the list around it; a longer one stays a node of its own, so
/// that calls of calls cannot multiply lists.
const MAX_INLINE: usize = 16;

/// What a routine does, in its order.
pub(super) struct Sequence {
    /// Whether every copy stays visible: a function that is called for each must be
    /// called for each.
    exact: bool,
    parts: Vec<Part>,
    /// Runs (offset and length, none empty) that follow the parts.
    runs: Vec<(i64, u64)>,
}

impl Sequence {
    pub(super) fn new(exact: bool) -> Self {
        Self { exact, parts: Vec::new(), runs: Vec::new() }
    }

    /// `len` bytes at `offset`.
    pub(super) fn copy(&mut self, offset: i64, len: u64) {
        if len != 0 {
            self.runs.push((offset, len));
        }
    }

    pub(super) fn control(&mut self, control: Control) -> Result<(), Overflow> {
        let node = Node { control: Some(control), ..leaf(0, 0, 0, 0, Shape::Control) };
        self.push(Part::new(0, node))
    }

    pub(super) fn part(&mut self, part: Part) -> Result<(), Overflow> {
        let node = &part.node;
        if node.size == 0 && node.control.is_none() {
            return Ok(());
        }
        match &node.shape {
            Shape::Run => self.copy(part.offset, node.size),
            Shape::Indexed { block, places } if places.len() <= MAX_INLINE => {
                self.runs.extend(places.iter().map(|place| (part.offset + place, *block as u64)));
            }
            Shape::Blocks { list } if list.len() <= MAX_INLINE => {
                let runs = list.windows(2).map(|b| (part.offset + b[0].offset, b[1].start - b[0].start));
                self.runs.extend(runs);
            }
            Shape::Sequence { steps } if steps.len() <= MAX_INLINE && !self.exact => {
                for step in steps {
                    self.part(step.part.shifted(part.offset)?)?;
                }
            }
            _ => self.push(part)?,
        }
        Ok(())
    }

    /// The whole as one part.
    pub(super) fn finish(mut self) -> Result<Part, Overflow> {
        self.flush()?;
        if self.parts.len() <= 1 {
            return Ok(self.parts.pop().unwrap_or_else(empty));
        }
        let (mut size, mut runs, mut control) = (0u64, 0u64, None);
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        let mut steps = Vec::with_capacity(self.parts.len());
        for part in self.parts {
            let node = part.node.clone();
            if node.size != 0 {
                let bounds = part.bounds();
                (low, high) = (low.min(bounds.0), high.max(bounds.1));
            }
            steps.push(Step { part, start: size, before: control });
            size = sum(size, node.size)?;
            runs = runs.saturating_add(node.runs);
            control = node.control.or(control);
        }
        let (low, high) = if size == 0 { (0, 0) } else { (low, high) };
        let shape = Shape::Sequence { steps: steps.into() };
        Ok(Part::new(0, Node { size, runs, low, high, control, shape }))
    }

    fn push(&mut self, part: Part) -> Result<(), Overflow> {
        self.flush()?;
        self.parts.push(part);
        Ok(())
    }

    /// Makes a part of the runs.
    fn flush(&mut self) -> Result<(), Overflow> {
        let mut runs = std::mem::take(&mut self.runs);
        if runs.is_empty() {
            return Ok(());
        }
        if !self.exact {
            // Blocks of one length move faster than runs of many, unless there are far fewer runs.
            let merged = merged(&runs);
            if !same_length(&runs) || merged.len() * 2 <= runs.len() {
                runs = merged;
            }
        }
        let part = part_of(&runs, self.exact)?;
        self.parts.push(part);
        Ok(())
    }
}

/// The runs, those that touch made one.
fn merged(runs: &[(i64, u64)]) -> Vec<(i64, u64)> {
    let mut merged: Vec<(i64, u64)> = Vec::with_capacity(runs.len());
    for &(offset, len) in runs {
        let both = merged
            .last()
            .filter(|(at, size)| at.checked_add_unsigned(*size) == Some(offset))
            .and_then(|(at, size)| Some((*at, size.checked_add(len)?)));
        if both.is_some() {
            merged.pop();
        }
        merged.push(both.unwrap_or((offset, len)));
    }
    merged
}

fn same_length(runs: &[(i64, u64)]) -> bool {
    runs.iter().all(|run| run.1 == runs[0].1)
}

fn part_of(runs: &[(i64, u64)], exact: bool) -> Result<Part, Overflow> {
    let (mut size, mut low, mut high) = (0u64, i64::MAX, i64::MIN);
    for &(offset, len) in runs {
        size = sum(size, len)?;
        low = low.min(offset);
        high = high.max(offset.checked_add_unsigned(len).ok_or(Overflow)?);
    }
    let first = runs[0];
    if runs.len() == 1 {
        return run(first.0, first.1);
    }
    let block = usize::try_from(first.1).ok().filter(|_| same_length(runs) && !exact);
    let node = |low, high, shape| leaf(size, runs.len() as u64, low, high, shape);
    if let Some(block) = block {
        if let Some(stride) = even_stride(runs) {
            let dim = Dim { count: runs.len() as u64, stride, size: first.1 };
            let bounds =
                (low.checked_sub(first.0).ok_or(Overflow)?, high.checked_sub(first.0).ok_or(Overflow)?);
            let shape = Shape::Grid { block, dims: [dim].into() };
            return Ok(Part::new(first.0, node(bounds.0, bounds.1, shape)));
        }
        let places = runs.iter().map(|run| run.0).collect();
        return Ok(Part::new(0, node(low, high, Shape::Indexed { block, places })));
    }
    let mut start = 0;
    let mut list = Vec::with_capacity(runs.len() + 1);
    for &(offset, len) in runs {
        list.push(Block { offset, start });
        start += len;
    }
    list.push(Block { offset: 0, start });
    Ok(Part::new(0, node(low, high, Shape::Blocks { list: list.into() })))
}

/// The distance from each run to the next, if it is always the same.
fn even_stride(runs: &[(i64, u64)]) -> Option<i64> {
    let stride = runs[1].0.checked_sub(runs[0].0)?;
    runs.windows(2).all(|pair| pair[1].0.checked_sub(pair[0].0) == Some(stride)).then_some(stride)
}

fn sum(a: u64, b: u64) -> Result<u64, Overflow> {
    a.checked_add(b).filter(|&sum| sum <= i64::MAX as u64).ok_or(Overflow)
}
