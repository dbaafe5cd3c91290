//! YAML as far as the files need it: texts, lists and tables. Which kind of scalar a text is does
//! not matter here.

use crate::error::FamError;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A value of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// Nothing.
    None,
    /// A scalar, as text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A table, in the order of the file.
    Table(Vec<(String, Node)>),
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a list or a table")
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Text(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Text(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Text(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Text(value.to_string()))
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::None)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::None)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Node, D::Error> {
        Node::deserialize(from)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Node, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = from.next_element()? {
            all.push(one);
        }
        Ok(Node::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Node, A::Error> {
        let mut all = Vec::new();
        while let Some((key, value)) = from.next_entry::<Node, Node>()? {
            let Node::Text(key) = key else {
                return Err(serde::de::Error::custom("a key that is no text"));
            };
            all.push((key, value));
        }
        Ok(Node::Table(all))
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Any)
    }
}

/// A table whose keys are taken one by one; the others are left.
#[derive(Debug)]
pub struct Table {
    file: &'static str,
    all: Vec<(String, Node)>,
}

impl Table {
    /// The table of a file with this name.
    ///
    /// # Errors
    /// [`FamError::Invalid`]: the text is no YAML, or no table.
    pub fn parse(file: &'static str, text: &str) -> crate::Result<Self> {
        let invalid = |why: String| FamError::Invalid.because(format!("{file}: {why}"));
        // An empty file, or one of comments.
        if text.lines().map(str::trim_start).all(|line| line.is_empty() || line.starts_with(['#', '-'])) {
            return Ok(Self { file, all: Vec::new() });
        }
        match serde_saphyr::from_str(text) {
            Ok(Node::Table(all)) => Ok(Self { file, all }),
            Ok(Node::None) => Ok(Self { file, all: Vec::new() }),
            Ok(_) => Err(invalid("it is no table".to_owned())),
            Err(error) => Err(invalid(error.to_string().lines().next().unwrap_or_default().to_owned())),
        }
    }

    /// One that is a value of this.
    ///
    /// # Errors
    /// [`FamError::Invalid`]: the value is no table.
    pub fn within(&self, key: &str, node: Node) -> crate::Result<Self> {
        match node {
            Node::Table(all) => Ok(Self { file: self.file, all }),
            _ => Err(self.wrong(key, "is no table")),
        }
    }

    /// A failure by the value of a key.
    pub fn wrong(&self, key: &str, what: &str) -> crate::Failure {
        FamError::Invalid.because(format!("{}: {key} {what}", self.file))
    }

    /// Takes a value.
    pub fn take(&mut self, key: &str) -> Option<Node> {
        let at = self.all.iter().position(|(name, _)| name == key)?;
        Some(self.all.remove(at).1).filter(|node| *node != Node::None)
    }

    /// Takes a text.
    ///
    /// # Errors
    /// [`FamError::Invalid`]: the value is none.
    pub fn text(&mut self, key: &str) -> crate::Result<Option<String>> {
        match self.take(key) {
            None => Ok(None),
            Some(Node::Text(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
            Some(_) => Err(self.wrong(key, "is no text")),
        }
    }

    /// Takes texts: a list, or one text with commas.
    ///
    /// # Errors
    /// [`FamError::Invalid`]: the value is neither.
    pub fn texts(&mut self, key: &str) -> crate::Result<Vec<String>> {
        let nodes = match self.take(key) {
            None => return Ok(Vec::new()),
            Some(Node::Text(text)) => {
                return Ok(text.split(',').map(|one| one.trim().to_owned()).collect());
            }
            Some(Node::List(nodes)) => nodes,
            Some(Node::Table(_) | Node::None) => return Err(self.wrong(key, "is no list")),
        };
        let texts = nodes.into_iter().map(|node| match node {
            Node::Text(text) => Ok(text.trim().to_owned()),
            _ => Err(self.wrong(key, "has an entry that is no text")),
        });
        texts.collect()
    }

    /// The keys that are left, with the name of the file: for messages.
    pub fn ignored(self) -> Vec<String> {
        let file = self.file;
        self.all.into_iter().map(|(key, _)| format!("{file}: {key}")).collect()
    }
}
