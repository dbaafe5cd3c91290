"""Signals, forks, threads and other processes beside LAPI."""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import HERE, seconds


def interrupted(how, again=False):
    """A task without a launcher that gets SIGINT while it waits, once or until it ends: its status, output and errors."""
    command = [sys.executable, str(HERE / "jobs" / "waits.py"), how]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        assert process.stdout.readline() == "waits\n"
        process.send_signal(signal.SIGINT)
        until = time.monotonic() + seconds(60)
        while again and process.poll() is None and time.monotonic() < until:
            time.sleep(1)
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=seconds(60))
    finally:
        process.kill()
    return process.returncode, out, err


@pytest.mark.parametrize("how", ["counter", "asyncio", "again"])
def test_ctrl_c_ends_a_call_that_waits(how):
    # After asyncio.run the first one may come too early.
    status, out, err = interrupted(how, again=how == "asyncio")
    assert status == -signal.SIGINT, err
    assert "lapi.counter().wait()" in err and "KeyboardInterrupt: the task ends in a call of LAPI" in err, err
    assert "cleaned up" not in out


def test_ctrl_c_outside_of_calls_is_an_exception_as_ever():
    status, out, err = interrupted("loop")
    assert status == -signal.SIGINT or status == 130, err
    assert out == "cleaned up\n" and err.rstrip().endswith("KeyboardInterrupt"), err


def test_a_counter_that_is_set_frees_no_buffer_in_use(job):
    # Long enough in flight for the setting thread.
    assert job("counters.py", 2, env={"LAPI_SHM_ATTACH": "no"}).ok().out.count("no buffer was freed too early") == 2


@pytest.mark.parametrize("over", [{}, {"LAPI_USE_SHM": "no", "MP_EUILIB": "ip"}], ids=["shm", "ip"])
def test_a_context_changes_nothing_but_the_handler_of_sigint(job, over):
    outcome = job("unchanged.py", 2, env={"LAPI_BACKTRACE": "no", "LAPI_REPORT_SIGNAL": "none", **over}).ok()
    assert outcome.out.count("nothing has changed") == 2, outcome
    # Those that LAPI takes by default (docs/debugging.md).
    taken = [signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV, signal.SIGUSR2]
    assert job("unchanged.py", 2, *[str(int(one)) for one in taken], env=over).ok().out.count("nothing has changed") == 2


@pytest.mark.skipif(shutil.which("cc") is None, reason="it needs a C compiler")
def test_a_window_that_fails_in_one_task_keeps_its_memory(job, tmp_path):
    """In the last of three exchanges: task 0 has made the window then."""
    library = tmp_path / "fails_once.so"
    made = ["cc", "-shared", "-fPIC", "-Wall", "-o", library, HERE / "jobs" / "fails_once.c", "-ldl"]
    subprocess.run(made, check=True)
    preload = " ".join([str(library), *os.environ.get("LD_PRELOAD", "").split()])
    outcome = job("fails_alone.py", 2, env={"LD_PRELOAD": preload, "FAILS_AT": "3"}).ok()
    assert outcome.out == "the memory has stayed\n"


def test_forked_children_do_not_hang(job):
    assert job("forks.py", 2).ok().out.count("no child hangs") == 2


def test_forked_children_wait_for_no_turn(job):
    assert job("turns_forks.py").ok().out == "no child hangs\n"


def test_forks_beside_new_threads_of_the_library(job):
    job("opens.py").ok()


def test_multiprocessing_in_a_job(job):
    assert job("spawns.py", 2).ok().out.count("children have computed") == 2


class Watched(ctypes.Structure):
    _fields_ = [("what", ctypes.py_object)]


class Union(ctypes.Union):
    _fields_ = [("number", ctypes.c_size_t), ("what", ctypes.py_object)]


class Packed(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("byte", ctypes.c_char), ("what", Watched * 2)]


class Derived(Packed):
    _pack_ = 1
    _fields_ = [("more", ctypes.c_int)]


class Chain(ctypes.Union):
    pass


Chain._fields_ = [("number", ctypes.c_size_t), ("next", ctypes.POINTER(Chain)), ("text", ctypes.c_char_p)]


def test_references_behind_formats_of_bytes_are_refused(lapi):
    for kind in Union, Union * 3, Packed, Derived:
        for memory in kind(), memoryview(kind()):
            with pytest.raises(TypeError, match="holds references"):
                lapi.window(memory)
    # Addresses of C are numbers, and no way back to a type is followed.
    assert lapi.window((Chain * 2)()).sizes == [16]


class Buffer(ctypes.Structure):
    """Py_buffer."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
    ]


class Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("function", ctypes.c_void_p)]


class Spec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.c_void_p),
    ]


def test_a_buffer_stays_where_it_was_filled_in(lapi):
    """Python fills the length in as its shape, by address: what gives the memory back may look there."""
    api, memory, seen = ctypes.pythonapi, (ctypes.c_char * 8)(), []

    def get(exporter, view, flags):
        fill = api.PyBuffer_FillInfo
        fill.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_ssize_t] + [ctypes.c_int] * 2
        return fill(view, exporter, ctypes.addressof(memory), 8, 0, flags)

    def release(exporter, view):
        if shape := Buffer.from_address(view).shape:
            seen.append(shape - view)

    get = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)(get)
    release = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(release)
    # Py_bf_getbuffer and Py_bf_releasebuffer.
    slots = (Slot * 3)((1, ctypes.cast(get, ctypes.c_void_p)), (2, ctypes.cast(release, ctypes.c_void_p)), (0, None))
    spec = Spec(b"test.Exporter", 0, 0, 0, ctypes.addressof(slots))
    make = api.PyType_FromSpec
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p]
    exporter = make(ctypes.addressof(spec))()
    window = lapi.window(bytearray(b"12345678"))
    lapi.get(exporter, 0, window)
    assert memory.raw == b"12345678" and seen == [Buffer.len.offset]


def test_references_behind_types_without_a_format_are_refused(lapi):
    numpy = pytest.importorskip("numpy")
    times = numpy.zeros(4, dtype=[("when", "M8[s]"), ("what", "O")])
    with pytest.raises(TypeError, match="holds references"):
        lapi.window(times)
    with pytest.raises(TypeError, match="holds references"):
        lapi.get(times, 0, lapi.window(bytearray(64)))
    # Without references they are memory like any other.
    window = lapi.window(numpy.zeros(4, dtype="M8[s]"))
    assert window.sizes == [32]
