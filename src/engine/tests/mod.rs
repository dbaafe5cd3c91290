//! Contexts of one process, joined by transports in memory, by shared memory, and by
//! either with faults.
//!
//! * [`job`]: opens the contexts of a job, runs their threads, and prints the state of each
//!   when one hangs.
//! * [`memory`]: the program's memory. [`plan`]: operations from a seed, and their expected
//!   results. [`program`]: the program that runs them, with its handlers. [`mix`]: plans run in one
//!   thread and in many, over every transport.
//! * [`bulk`]: long messages by keys; [`parts`]: those in many places; [`batches`]: those of many
//!   parts; [`standing`]: puts by a key of all memory; [`keyed`]: the tasks of these. [`calls`]:
//!   single operations; [`short`]: short ones. [`handlers`]: what header handlers can return.
//!   [`failure`]: tasks that die, tasks that leave; [`gone`]: what is not done then;
//!   [`error_handlers`]: the order of error handlers and returns of calls. [`ending`]:
//!   LAPI_Term. [`silence`]: tasks that do not reply, and collective calls without them.
//!   [`rdma`]: RDMA transfers with tasks that are given up.
//!   [`refusal`]: copies that the kernel refuses. [`waiting`]: threads that sleep; [`event_loop`]:
//!   a loop of the program that sleeps outside of calls. [`recovery`]:
//!   tasks that are given up and rejoin; [`parted`]: by one side alone.
//!   [`leaving`]: for a checkpoint. [`report`]: the report of a context that hangs.
//!   [`malformed`]: what no correct task sends. [`exhausted`]: packets without memory.
//!   [`impossible`]: what asks for memory that the target cannot have. [`own_messages`]: what
//!   fences wait for of a task's messages to itself.
//!
//! `SEED=n` runs the seed that a failing test has printed, and only that; `SOAK=n` runs n
//! times as many.

mod batches;
mod bulk;
mod calls;
mod ending;
mod error_handlers;
mod event_loop;
mod exhausted;
mod failure;
mod gone;
mod handlers;
mod impossible;
mod job;
mod keyed;
mod leaving;
mod malformed;
mod memory;
mod mix;
mod own_messages;
mod parted;
mod parts;
mod plan;
mod program;
mod rdma;
mod recovery;
mod recovery_in_handlers;
mod refusal;
mod report;
mod scale;
mod short;
mod silence;
mod simulation;
mod standing;
mod waiting;
