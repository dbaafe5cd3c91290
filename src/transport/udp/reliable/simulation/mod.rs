//! Tasks in one process on a clock of their own, joined by bad links, all from one seed. After
//! every step a model checks what came out.

mod bottleneck;
mod link;
mod scenarios;
mod world;
