//! How one operation proceeds, from the bottom up:
//!
//! * [`header_handler`]: calls header handlers.
//! * [`send`]: how anything leaves this task. [`beyond`]: addresses that cannot be. [`deliver`]:
//!   what follows when data is in its place.
//! * [`assembly`]: messages of several packets. [`reply`]: replies, on both sides.
//! * [`vector_wire`]: vectors in packets. [`packets`]: puts and gets in packets. [`direct`]: copies
//!   between the memory of two tasks. [`one_sided`]: puts and gets that the origin makes alone;
//!   [`accessed`]: its report to the target. [`registration`], [`parts`]: long messages by
//!   keys.
//! * [`impossible`]: requests for memory that this task cannot have.
//! * [`receive`]: messages that come in. [`loopback`]: a task and itself.
//! * [`origin`]: starts the program's operations.

pub mod accessed;
pub mod assembly;
pub mod beyond;
pub mod deliver;
pub mod direct;
pub mod header_handler;
pub mod impossible;
pub mod loopback;
pub mod one_sided;
pub mod origin;
pub mod packets;
pub mod parts;
pub mod receive;
pub mod registration;
pub mod reply;
pub mod send;
pub mod vector_wire;
