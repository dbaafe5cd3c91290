//! The memory of Python's objects: anything with the buffer protocol whose bytes lie one
//! after the other.

use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyMemoryView, PyType};
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ptr;

/// The exported memory of an object. The object keeps it where it is until this is dropped, which
/// needs Python's lock.
pub struct Buffer {
    /// On the heap, where it stays as it was filled in: it may point into itself.
    view: Box<ffi::Py_buffer>,
}

// SAFETY: a view belongs to no thread; it is released with Python's lock held (`Drop`).
unsafe impl Send for Buffer {}
// SAFETY: shared references read its address and length, which do not change.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Memory that is read.
    #[inline]
    pub fn readable(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Self> {
        Self::new(object, ffi::PyBUF_SIMPLE, what)
    }

    /// Memory that is written: not that of references to Python's objects, which would lead
    /// anywhere afterwards.
    pub fn writable(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Self> {
        let described = Self::new(object, ffi::PyBUF_WRITABLE | ffi::PyBUF_ND | ffi::PyBUF_FORMAT, what);
        if let Ok(buffer) = &described
            && (buffer.has_references() || is_of_references(object))
        {
            return Err(references(what));
        }
        // Some types have no format, as numpy's times; then its dtype says whether there
        // are references.
        described.or_else(|_| {
            let dtype = object.getattr("dtype").and_then(|dtype| dtype.getattr("hasobject"));
            match dtype.and_then(|has| has.is_truthy()) {
                Ok(true) => Err(references(what)),
                Ok(false) => Self::new(object, ffi::PyBUF_WRITABLE, what),
                // Neither says: what it holds is not known, unless it has no such buffer at all,
                // which is said then.
                Err(_) => Err(match Self::new(object, ffi::PyBUF_WRITABLE, what) {
                    Ok(_) => PyTypeError::new_err(format!(
                        "{what}: {} does not describe what its buffer holds, which may be references; give memoryview(...).cast('B') of memory \
                         without them",
                        object.get_type()
                    )),
                    Err(why) => why,
                }),
            }
        })
    }

    /// Whether its items, as far as they are described, are or contain references.
    fn has_references(&self) -> bool {
        if self.view.format.is_null() {
            return false;
        }
        // SAFETY: a format is a C string, which lives as long as the view.
        let format = unsafe { CStr::from_ptr(self.view.format) };
        // The names of fields stand between colons.
        format.to_bytes().split(|byte| *byte == b':').step_by(2).any(|types| types.contains(&b'O'))
    }

    #[inline]
    fn new(object: &Bound<'_, PyAny>, flags: i32, what: &str) -> PyResult<Self> {
        let mut view = Box::new(MaybeUninit::<ffi::Py_buffer>::uninit());
        // SAFETY: an object, with Python's lock held; the view is filled in when the
        // call returns 0.
        unsafe {
            if ffi::PyObject_GetBuffer(object.as_ptr(), view.as_mut_ptr(), flags) != 0 {
                return Err(refused(object, flags, what));
            }
            Ok(Self { view: view.assume_init() })
        }
    }

    /// Where it begins.
    #[inline]
    pub fn address(&self) -> usize {
        self.view.buf as usize
    }

    /// The number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.view.len as usize
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: it was filled in by `new`, and is released once. Python's lock is held: buffers
        // are dropped in calls of Python and in handlers that have taken the lock.
        unsafe { ffi::PyBuffer_Release(ptr::from_mut(&mut *self.view)) }
    }
}

/// Whether an object of ctypes, or one that a memoryview shows, is or contains references: the
/// format of a union, and of a structure with _pack_, speaks of bytes.
fn is_of_references(object: &Bound<'_, PyAny>) -> bool {
    let shown = object.cast::<PyMemoryView>().ok().and_then(|view| view.getattr("obj").ok());
    let kind = shown.as_ref().unwrap_or(object).get_type();
    // Those of ctypes have another metatype, the types of most buffers have not.
    !kind.get_type().is(kind.py().get_type::<PyType>()) && contains_references(&kind).unwrap_or(false)
}

/// Whether what ctypes has by this type is or contains references.
fn contains_references(kind: &Bound<'_, PyAny>) -> PyResult<bool> {
    if let Ok(item) = kind.getattr("_type_") {
        // The type of a pointer has no length; where it points to is not sent.
        return match kind.hasattr("_length_")? {
            true => contains_references(&item),
            false => Ok(item.extract::<String>().is_ok_and(|code| code == "O")),
        };
    }
    // A structure has the fields of its bases, too.
    for base in kind.getattr("__mro__")?.try_iter()? {
        let Ok(fields) = base?.getattr("__dict__")?.get_item("_fields_") else { continue };
        for field in fields.try_iter()? {
            if contains_references(&field?.get_item(1)?)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[cold]
fn references(what: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "{what}: an array of Python objects holds references, which mean nothing to other tasks; give it a type of numbers"
    ))
}

/// Why an object has no such buffer.
#[cold]
fn refused(object: &Bound<'_, PyAny>, flags: i32, what: &str) -> PyErr {
    let py = object.py();
    let raised = PyErr::fetch(py);
    let kind = object.get_type();
    // SAFETY: an object, with Python's lock held.
    if unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } == 0 {
        return PyTypeError::new_err(format!(
            "{what}: {kind} has no buffer; bytes, bytearray, memoryview, array.array and numpy arrays have one"
        ));
    }
    // Which of the two is missing: contiguous memory may still be only readable.
    let writable = flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE;
    if writable && Buffer::new(object, ffi::PyBUF_SIMPLE, what).is_ok() {
        return PyBufferError::new_err(format!("{what}: the buffer of {kind} is read-only"));
    }
    PyBufferError::new_err(format!(
        "{what}: {kind} has no contiguous buffer: {}. Copy it (numpy.ascontiguousarray), or use put_strided and get_strided of the \
         array that it is a view of",
        raised.value(py)
    ))
}
