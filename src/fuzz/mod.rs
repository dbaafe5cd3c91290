//! What reads bytes from outside, and what must hold of whatever it reads. `fuzz/` feeds it with
//! inputs that take new ways through the code; `tests/tests/corpora.rs` with the inputs of
//! `fuzz/corpus`, and with changes of them.
//!
//! Only with the feature `fuzz`: no build for users has it.

mod dgsp;
mod environment;
mod exchange;
mod launcher;
mod network;
mod packet;
mod reader;
mod reliable;
mod seal;

pub use reader::Reader;

/// One decoder, or some that belong together.
#[derive(Clone, Copy)]
pub struct Target {
    /// The target's name, and that of the folder of its inputs.
    pub name: &'static str,
    /// Feeds it. Panics when something does not hold that must; returns whether a decoder has
    /// accepted the input.
    pub feed: fn(&[u8]) -> bool,
    /// Inputs that are accepted, from our own encoders, with their names. Where one changes, its
    /// file must follow.
    pub seeds: fn() -> Vec<Seed>,
}

/// An input, with its name.
pub type Seed = (String, Vec<u8>);

/// A seed with this name.
pub fn seed(name: &str, bytes: impl Into<Vec<u8>>) -> Seed {
    (name.to_owned(), bytes.into())
}

/// The targets of the core.
pub const TARGETS: &[Target] = &[
    dgsp::MACHINE,
    dgsp::VERIFIER,
    environment::ENVIRONMENT,
    environment::SETTINGS,
    exchange::CARD,
    exchange::EXCHANGE,
    exchange::PMI,
    exchange::START_UP,
    launcher::LAUNCHER,
    network::HELLO,
    network::NETWORK,
    network::RAIL_MESSAGES,
    packet::COALESCED,
    packet::DESCRIPTION,
    packet::KEYS,
    packet::PACKET,
    reliable::DATAGRAM,
    reliable::RELIABLE,
    seal::SEAL,
];
