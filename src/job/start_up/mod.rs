//! The TCP connections of a start over several machines: of the tasks with task 0 under Slurm
//! without PMI, of `poe --task` with `poe`, and between tasks that try which networks carry
//! packets. One side listens ([`arrivals`]), the other one looks for it at several places
//! ([`reach`]), and each proves to the other what it is ([`greeting`]).

pub mod arrivals;
pub mod greeting;
pub mod reach;

#[cfg(test)]
mod tests;
