//! The derived types, read from `types.txt`.

use super::text::Target;

/// A derived type.
pub struct Type {
    pub name: String,
    /// Whether variables begin with zeros; such a variable cannot be in a COMMON block.
    pub is_zero: bool,
    all: Vec<Field>,
}

/// A component.
#[derive(Clone)]
pub struct Field {
    pub name: String,
    kind: Kind,
    /// How many; more than one is an array.
    count: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Bytes.
    Integer(usize),
    /// An address or a long.
    Word,
    /// Four bytes that are there in programs of this width only.
    Pad(Target),
    /// A LAPI_DGSM_BLOCK_T.
    Block,
}

/// All types, in the order of the file.
pub fn all() -> Vec<Type> {
    let mut types: Vec<Type> = Vec::new();
    let lines = include_str!("types.txt").lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some(fields) = line.strip_prefix("  ") else {
            let (name, is_zero) = line.strip_suffix(" = 0").map_or((line, false), |name| (name, true));
            types.push(Type { name: name.to_owned(), is_zero, all: Vec::new() });
            continue;
        };
        let mut words = fields.split_whitespace();
        let kind = match words.next() {
            Some("i2") => Kind::Integer(2),
            Some("i4") => Kind::Integer(4),
            Some("i8") => Kind::Integer(8),
            Some("word") => Kind::Word,
            Some("pad64") => Kind::Pad(Target::Bits64),
            Some("pad32") => Kind::Pad(Target::Bits32),
            Some("block") => Kind::Block,
            other => panic!("types.txt: {other:?} in {line}"),
        };
        let of = types.last_mut().expect("a type before its components");
        of.all.extend(words.map(|word| match word.split_once('(') {
            Some((name, rest)) => {
                let count = rest.trim_end_matches(')').parse().expect("a number of elements");
                Field { name: name.to_owned(), kind, count }
            }
            None => Field { name: word.to_owned(), kind, count: 1 },
        }));
    }
    types
}

impl Type {
    /// The components in programs of this width.
    pub fn fields(&self, target: Target) -> impl Iterator<Item = &Field> {
        self.all.iter().filter(move |field| match field.kind {
            Kind::Pad(only) => only == target,
            _ => true,
        })
    }

    /// In bytes.
    pub fn size(&self, target: Target) -> usize {
        self.fields(target).map(|field| field.size(target)).sum()
    }
}

impl Field {
    /// In bytes.
    pub fn size(&self, target: Target) -> usize {
        let one = match self.kind {
            Kind::Block => 2 * target.word(),
            _ => self.alignment(target),
        };
        one * self.count
    }

    /// In bytes.
    pub fn alignment(&self, target: Target) -> usize {
        match self.kind {
            Kind::Integer(bytes) => bytes,
            Kind::Word | Kind::Block => target.word(),
            Kind::Pad(_) => 4,
        }
    }

    /// The declaration of the component.
    pub fn declaration(&self, target: Target) -> String {
        let of = match self.kind {
            Kind::Block => "TYPE (LAPI_DGSM_BLOCK_T)".to_owned(),
            _ => format!("INTEGER(KIND={})", self.alignment(target)),
        };
        // One block, as in C, is an array all the same.
        let array = self.count > 1 || self.kind == Kind::Block;
        let bounds = if array { format!("({})", self.count) } else { String::new() };
        format!("{of} :: {}{bounds}", self.name)
    }
}
