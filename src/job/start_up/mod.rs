//! The TCP connections by which a job on several machines starts: of the tasks with task 0 under
//! Slurm without PMI, and of `poe --task` with `poe`. One side listens ([`arrivals`]), the other
//! one looks for it at several places ([`reach`]), and each proves to the other what it is
//! ([`greeting`]).

pub mod arrivals;
pub mod greeting;
pub mod reach;

#[cfg(test)]
mod tests;
