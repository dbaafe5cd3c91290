//! An MPI that is already initialised in this process: its own collectives carry the values. Its
//! connection to the launcher is taken then, so that PMI is not to be had a second time.
//!
//! The functions are found by name in the process, and MPI's two binary interfaces are
//! distinguished by Open MPI's symbols: in MPICH and its relatives (Intel MPI, MVAPICH) handles are
//! numbers, in Open MPI addresses of objects.
//!
//! Only nonblocking collectives are used, and tested until the deadline. A thread that MPI does not
//! allow to call it is refused.

use super::dynamic::PROCESS;
use super::{Exchange, failed, late, unpublished};
use crate::error::Result;
use crate::job::identity::Identity;
use crate::wire::exchange::{Values, decode_values, encode_values};
use std::ffi::{CStr, c_int, c_void};
use std::time::{Duration, Instant};

/// What MPI is in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// No MPI library is loaded with global scope.
    Absent,
    /// One is loaded.
    Loaded,
    Initialized,
    Finalized,
}

impl State {
    /// The state of MPI in this process now.
    pub(super) fn of_this_process() -> Self {
        // SAFETY: both have this type in every MPI, and may be called at any time, even
        // before MPI_Init.
        let (initialized, finalized) = unsafe {
            (PROCESS.function::<Flag>(c"MPI_Initialized"), PROCESS.function::<Flag>(c"MPI_Finalized"))
        };
        let (Some(initialized), Some(finalized)) = (initialized, finalized) else { return Self::Absent };
        let is = |function: Flag| {
            let mut flag = 0;
            // SAFETY: the flag is writable.
            let code = unsafe { function(&mut flag) };
            code == 0 && flag != 0
        };
        match (is(initialized), is(finalized)) {
            (_, true) => Self::Finalized,
            (true, false) => Self::Initialized,
            (false, false) => Self::Loaded,
        }
    }
}

/// A handle of MPI: a number in MPICH, an address in Open MPI. Both are passed in a register of 64
/// bits (or a word of 32), of which MPICH looks at the lower 32.
type Handle = *mut c_void;
type Flag = unsafe extern "C" fn(*mut c_int) -> c_int;
type OfComm = unsafe extern "C" fn(Handle, *mut c_int) -> c_int;
type Iallgather =
    unsafe extern "C" fn(*const c_void, c_int, Handle, *mut c_void, c_int, Handle, Handle, *mut u64) -> c_int;
type Iallgatherv = unsafe extern "C" fn(
    *const c_void,
    c_int,
    Handle,
    *mut c_void,
    *const c_int,
    *const c_int,
    Handle,
    Handle,
    *mut u64,
) -> c_int;
type Test = unsafe extern "C" fn(*mut u64, *mut c_int, *mut c_void) -> c_int;

/// What MPICH and its relatives have in `mpi.h` (their common binary interface).
const MPICH_COMM_WORLD: usize = 0x4400_0000;
const MPICH_BYTE: usize = 0x4c00_010d;

/// MPI_THREAD_SERIALIZED: any thread may call MPI, one at a time.
const SERIALIZED: c_int = 2;

/// More than an MPI_Status has in any MPI, in words.
const STATUS_WORDS: usize = 16;

/// The functions of the MPI of this process, and two of its handles.
#[derive(Clone, Copy)]
struct Library {
    iallgather: Iallgather,
    iallgatherv: Iallgatherv,
    test: Test,
    world: Handle,
    byte: Handle,
}

// SAFETY: functions, and handles that are the same in all threads.
unsafe impl Send for Library {}

/// One exchange.
pub(super) struct Mpi {
    library: Library,
    /// This task's values.
    own: Values,
    /// All tasks' values as of the last fence, by rank; beside each the number of the task.
    table: Vec<(u32, Values)>,
    task: u32,
    tasks: u32,
}

/// The exchange by MPI's collectives; `None` when the MPI of this process is a job of another size,
/// or an unknown library.
///
/// # Errors
/// `LAPI_ERR_CSS_LOAD_FAILED`: MPI was initialised so that this thread must not call it.
pub(super) fn open(identity: &Identity) -> Result<Option<Mpi>> {
    let Some((world, byte)) = handles() else { return Ok(None) };
    // SAFETY: these are functions of MPI, and MPI_COMM_WORLD and MPI_BYTE have their values
    // of this library.
    let Some((library, size, level, is_main)) = (unsafe {
        (|| {
            let library = Library {
                iallgather: PROCESS.function(c"MPI_Iallgather")?,
                iallgatherv: PROCESS.function(c"MPI_Iallgatherv")?,
                test: PROCESS.function(c"MPI_Test")?,
                world,
                byte,
            };
            let (mut size, mut level, mut is_main) = (0, 0, 0);
            PROCESS.function::<OfComm>(c"MPI_Comm_size")?(world, &mut size);
            PROCESS.function::<Flag>(c"MPI_Query_thread")?(&mut level);
            PROCESS.function::<Flag>(c"MPI_Is_thread_main")?(&mut is_main);
            Some((library, size, level, is_main))
        })()
    }) else {
        return Ok(None);
    };
    if u32::try_from(size) != Ok(identity.tasks) {
        return Ok(None);
    }
    if level < SERIALIZED && is_main == 0 {
        return Err(failed("MPI: this thread must not call MPI: see MPI_Init_thread, MPI_THREAD_SERIALIZED"));
    }
    Ok(Some(Mpi {
        library,
        own: Values::new(),
        table: Vec::new(),
        task: identity.task,
        tasks: identity.tasks,
    }))
}

/// MPI_COMM_WORLD and MPI_BYTE.
fn handles() -> Option<(Handle, Handle)> {
    if let (Some(world), Some(byte)) =
        (PROCESS.symbol(c"ompi_mpi_comm_world"), PROCESS.symbol(c"ompi_mpi_byte"))
    {
        return Some((world, byte));
    }
    let is_mpich = ["MPICH", "MVAPICH", "Intel(R) MPI"].iter().any(|name| version().contains(name));
    is_mpich.then_some((MPICH_COMM_WORLD as Handle, MPICH_BYTE as Handle))
}

fn version() -> String {
    type Version = unsafe extern "C" fn(*mut libc::c_char, *mut c_int) -> c_int;
    // MPI_MAX_LIBRARY_VERSION_STRING is 256 in Open MPI and 8192 in MPICH.
    let mut text = vec![0_u8; 8193];
    let mut length = 0;
    // SAFETY: the function has this type, and there is room for the longest text.
    let code = unsafe {
        PROCESS
            .function::<Version>(c"MPI_Get_library_version")
            .map(|version| version(text.as_mut_ptr().cast(), &mut length))
    };
    let text = CStr::from_bytes_until_nul(&text).unwrap_or_default();
    if code == Some(0) { text.to_string_lossy().into_owned() } else { String::new() }
}

impl Exchange for Mpi {
    fn name(&self) -> &'static str {
        "MPI"
    }

    fn publish(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.own.insert(key.to_owned(), value.to_vec());
        Ok(())
    }

    fn fence(&mut self, deadline: Instant) -> Result<()> {
        let own = [&self.task.to_le_bytes()[..], &encode_values(&self.own)].concat();
        let parts = self.library.gather(own, self.tasks as usize, deadline)?;
        let table: Option<Vec<_>> = parts
            .iter()
            .map(|part| {
                let (task, values) = part.split_first_chunk()?;
                Some((u32::from_le_bytes(*task), decode_values(values)?))
            })
            .collect();
        self.table = table.ok_or_else(|| failed("MPI: a task has sent something else than its values"))?;
        Ok(())
    }

    fn lookup(&mut self, task: u32, key: &str) -> Result<Vec<u8>> {
        // Ranks are the numbers of the tasks, unless the tasks have numbered themselves.
        let of_rank = self.table.get(task as usize).filter(|(known, _)| *known == task);
        let values = of_rank.or_else(|| self.table.iter().find(|(known, _)| *known == task));
        let value = values.and_then(|(_, values)| values.get(key));
        value.cloned().ok_or_else(|| unpublished("MPI", task, key))
    }
}

impl Library {
    /// The bytes of every rank, this one's among them.
    fn gather(self, own: Vec<u8>, ranks: usize, deadline: Instant) -> Result<Vec<Vec<u8>>> {
        let own_length = c_int::try_from(own.len()).map_err(|_| failed("MPI: too much for one message"))?;
        let lengths = self.complete(
            Buffers { own: own_length.to_ne_bytes().to_vec(), all: vec![0; 4 * ranks], ..Buffers::default() },
            deadline,
            |buffers, request| {
                let word = size_of::<c_int>() as c_int;
                // SAFETY: one word goes from here to a place for one of each rank; the buffers stay
                // until MPI is done.
                unsafe {
                    (self.iallgather)(
                        buffers.own.as_ptr().cast(),
                        word,
                        self.byte,
                        buffers.all.as_mut_ptr().cast(),
                        word,
                        self.byte,
                        self.world,
                        request,
                    )
                }
            },
        )?;
        let lengths: Vec<c_int> = lengths
            .chunks_exact(4)
            .map(|word| c_int::from_ne_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        let mut total: c_int = 0;
        let mut places = Vec::with_capacity(ranks);
        for length in &lengths {
            places.push(total);
            let next = if *length >= 0 { total.checked_add(*length) } else { None };
            total = next.ok_or_else(|| failed("MPI: the values of all tasks are more than 2 GiB"))?;
        }
        let ends: Vec<usize> =
            places.iter().zip(&lengths).map(|(at, length)| (at + length) as usize).collect();
        let starts: Vec<usize> = places.iter().map(|at| *at as usize).collect();
        let buffers = Buffers { own, all: vec![0; total as usize], lengths, places };
        let all = self.complete(buffers, deadline, |buffers, request| {
            // SAFETY: the place has room for what each rank has announced; the buffers stay
            // until MPI is done.
            unsafe {
                (self.iallgatherv)(
                    buffers.own.as_ptr().cast(),
                    own_length,
                    self.byte,
                    buffers.all.as_mut_ptr().cast(),
                    buffers.lengths.as_ptr(),
                    buffers.places.as_ptr(),
                    self.byte,
                    self.world,
                    request,
                )
            }
        })?;
        Ok(starts.into_iter().zip(ends).map(|(from, to)| all[from..to].to_vec()).collect())
    }

    /// Starts a collective, waits for its end, and returns what has arrived.
    fn complete(
        self,
        buffers: Buffers,
        deadline: Instant,
        start: impl FnOnce(&mut Buffers, &mut u64) -> c_int,
    ) -> Result<Vec<u8>> {
        let mut buffers = Box::new(buffers);
        let mut request = 0;
        let mut code = start(&mut buffers, &mut request);
        let mut done = 0;
        while code == 0 && done == 0 {
            let mut status = [0_u64; STATUS_WORDS];
            // SAFETY: the request is the one that was started, and the status has room for any.
            code = unsafe { (self.test)(&mut request, &mut done, status.as_mut_ptr().cast()) };
            if done == 0 && code == 0 {
                if Instant::now() >= deadline {
                    // MPI still reads and writes the buffers.
                    std::mem::forget(buffers);
                    return Err(late("MPI: not all tasks have come to the start-up exchange in time"));
                }
                std::thread::sleep(PAUSE);
            }
        }
        if code != 0 {
            std::mem::forget(buffers);
            return Err(failed(format!("MPI: a collective call has failed with {code}")));
        }
        Ok(buffers.all)
    }
}

/// Between two tests of a collective.
const PAUSE: Duration = Duration::from_micros(100);

/// What MPI reads and writes while a collective goes on.
#[derive(Default)]
struct Buffers {
    own: Vec<u8>,
    all: Vec<u8>,
    lengths: Vec<c_int>,
    places: Vec<c_int>,
}
