"""Mistakes, each of which has an error that says what is wrong."""

import array
import gc
import os
import pathlib
import subprocess
import sys
import weakref

import openlapi
import pytest
from conftest import seconds


@pytest.fixture
def window(lapi):
    return lapi.window(bytearray(64))


def test_the_context_says_who_it_is(lapi):
    assert (lapi.task, lapi.tasks, lapi.closed) == (0, 1, False)
    assert lapi.interrupts is True
    lapi.interrupts = False
    assert lapi.interrupts is False
    assert repr(lapi) == "<openlapi.Context: task 0 of 1>"


def test_errors_have_code_and_name(lapi, window):
    with pytest.raises(openlapi.Error, match="put: target 1; the job has the tasks 0 to 0") as raised:
        lapi.put(b"", 1, window)
    assert (raised.value.code, raised.value.name) == (428, "LAPI_ERR_TGT")
    with pytest.raises(openlapi.Error, match="target -1"):
        lapi.put(b"", -1, window)
    with pytest.raises(openlapi.Error) as raised:
        openlapi.init(instance=99)
    assert raised.value.name.startswith("LAPI_ERR_"), raised.value
    assert (openlapi.Error.__module__, openlapi.Context.__module__) == ("openlapi", "openlapi")


@pytest.mark.parametrize("offset, size", [(57, 8), (-1, 8), (64, 1), (2**62, 8), (0, 65)])
def test_bounds_are_checked_at_the_origin(lapi, window, offset, size):
    message = f"{size} bytes at offset {offset}; the window has 64 bytes in task 0"
    for call, buffer in [(lapi.put, bytes(size)), (lapi.get, bytearray(size))]:
        with pytest.raises(IndexError, match=message):
            call(buffer, 0, window, offset)
    with pytest.raises(IndexError, match=message):
        lapi.putv([b"", bytes(size)], 0, window, [0, offset])


def test_buffers_are_contiguous_and_writable(lapi, window):
    with pytest.raises(TypeError, match="put: <class 'int'> has no buffer"):
        lapi.put(3, 0, window)
    with pytest.raises(BufferError, match="get: the buffer of <class 'bytes'> is read-only"):
        lapi.get(bytes(8), 0, window)
    with pytest.raises(BufferError, match="put: <class 'memoryview'> has no contiguous buffer"):
        lapi.put(memoryview(bytes(16))[::2], 0, window)
    with pytest.raises(BufferError, match="read-only"):
        lapi.window(b"12345678")
    numpy = pytest.importorskip("numpy")
    matrix = numpy.zeros((4, 4))
    for call in (lapi.put, lapi.get):
        with pytest.raises(BufferError, match="no contiguous buffer.*put_strided"):
            call(matrix[:, 1], 0, window)
    matrix.flags.writeable = False
    with pytest.raises(BufferError, match="read-only"):
        lapi.get(matrix, 0, window)
    lapi.put(matrix[:1], 0, window)
    with pytest.raises(TypeError, match="window: an array of Python objects holds references"):
        lapi.window(numpy.array([1, None]))
    with pytest.raises(TypeError, match="get: an array of Python objects"):
        lapi.get(numpy.zeros(2, [("number", "i8"), ("name", "O")]), 0, window)
    lapi.get(numpy.zeros(2, [("One", "i8"), ("Other", "i8")]), 0, window)
    # Types whose items have no format that Python knows.
    times = numpy.zeros(2, "datetime64[s]")
    lapi.put(numpy.ones(2, numpy.int64), 0, window)
    lapi.get(times, 0, window)
    assert times.astype(numpy.int64).tolist() == [1, 1]


def test_strides_are_checked(lapi, window):
    with pytest.raises(IndexError, match="3 blocks of 8 bytes, 16 bytes apart from byte 0 on; the buffer has 39 bytes"):
        lapi.put_strided(bytes(39), 0, window, block=8, count=3, stride=16)
    with pytest.raises(IndexError, match="the window has 64 bytes"):
        lapi.put_strided(bytes(40), 0, window, block=8, count=3, stride=16, target_stride=32)
    with pytest.raises(ValueError, match="stride 4 is less than block 8"):
        lapi.get_strided(bytearray(40), 0, window, block=8, count=3, stride=4)
    with pytest.raises(ValueError, match="do not fit"):
        lapi.put_strided(bytes(40), 0, window, block=8, count=2**60, stride=2**60)
    lapi.put_strided(b"", 0, window, block=8, count=0, stride=8)


def test_vectors_have_as_many_buffers_as_offsets(lapi, window):
    with pytest.raises(ValueError, match="putv: 2 buffers and 1 offsets"):
        lapi.putv([b"1", b"2"], 0, window, [0])


def test_atomics_are_checked(lapi, window):
    with pytest.raises(ValueError, match="offset 4 .* not at an address that is a multiple of 8"):
        lapi.fetch_and_add(0, window, 4, 1)
    lapi.fetch_and_add(0, window, 4, 1, bits=32)
    with pytest.raises(ValueError, match="bits is 16"):
        lapi.swap(0, window, 0, 1, bits=16)
    with pytest.raises(ValueError, match="does not fit into 64 bits"):
        lapi.swap(0, window, 0, 2**64)
    with pytest.raises(IndexError, match="8 bytes at offset 60"):
        lapi.fetch_and_or(0, window, 60, 1)


def test_counters(lapi, window):
    own, shared = lapi.counter(), lapi.counter(shared=True)
    assert (own.shared, shared.shared) == (False, True)
    with pytest.raises(ValueError, match="known to this task alone"):
        lapi.put(b"1", 0, window, target_counter=own)
    with pytest.raises(ValueError, match="a shared counter also counts what arrives"):
        lapi.put(b"1", 0, window, origin_counter=shared)
    with pytest.raises(ValueError, match="Counter.wait: -1 is negative"):
        own.wait(-1)
    with pytest.raises(ValueError, match="negative"):
        own.set(-1)
    lapi.put(b"1", 0, window, target_counter=shared, origin_counter=own, completion_counter=own)
    assert own.wait(2) == 0 and shared.value == 1
    own.set(3)
    assert own.value == 3 and own.wait(2) == 1
    assert repr(own) == "<openlapi.Counter 1>" and repr(shared) == "<openlapi.Counter 1, shared>"


def test_messages_are_checked(lapi):
    handler = lapi.handler(print)
    assert handler.name == "print"
    with pytest.raises(TypeError, match="cannot be called"):
        lapi.handler(3)
    with pytest.raises(TypeError, match="into: .* cannot be called"):
        lapi.handler(print, into=3)
    with pytest.raises(ValueError, match="a header of 1017 bytes; at most 1016"):
        lapi.send(0, handler, bytes(1017))
    with pytest.raises(openlapi.Error, match="target 5"):
        lapi.send(5, handler)


def test_what_belongs_to_another_context_is_refused(lapi, window):
    with openlapi.init() as other:
        with pytest.raises(ValueError, match="window belongs to another context"):
            other.put(b"1", 0, window)
        with pytest.raises(ValueError, match="origin_counter belongs to another context"):
            other.put(b"1", 0, other.window(bytearray(1)), origin_counter=lapi.counter())
        with pytest.raises(ValueError, match="handler belongs to another context"):
            other.send(0, lapi.handler(print))


def test_a_closed_context_is_refused():
    lapi = openlapi.init()
    window, counter, handler = lapi.window(bytearray(8)), lapi.counter(), lapi.handler(print)
    lapi.close()
    lapi.close()
    assert lapi.closed
    for call in [
        lapi.fence,
        lapi.counter,
        counter.wait,
        window.free,
        lambda: lapi.put(b"1", 0, window),
        lambda: lapi.swap(0, window, 0, 1),
        lambda: lapi.send(0, handler),
    ]:
        with pytest.raises(openlapi.Error, match="closed") as raised:
            call()
        assert raised.value.name == "LAPI_ERR_HNDL_INVALID"


def test_a_window_holds_its_memory_until_it_is_freed(lapi):
    memory = bytearray(8)
    window = lapi.window(memory)
    with pytest.raises(BufferError):
        memory.append(1)
    del window
    gc.collect()
    with pytest.raises(BufferError):
        memory.append(1)
    window = lapi.window(other := bytearray(8))
    window.free()
    other.append(1)
    with pytest.raises(ValueError, match="freed"):
        lapi.put(b"1", 0, window)


def test_a_buffer_is_held_until_its_counter_shows_that_it_is_free(lapi, window):
    class Watched(array.array):
        pass

    counter = lapi.counter()
    data = Watched("b", [1] * 8)
    watch = weakref.ref(data)
    lapi.put(data, 0, window, origin_counter=counter)
    counter.wait()
    del data
    gc.collect()
    assert watch() is None


def test_the_library_is_looked_for(tmp_path):
    def opens(env, code="import openlapi; openlapi.init()"):
        environment = {**os.environ, **env}
        return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)

    wrong = opens({"OPENLAPI_LIBRARY": str(tmp_path / "none.so")})
    assert "OSError: OPENLAPI_LIBRARY" in wrong.stderr and "none.so" in wrong.stderr, wrong.stderr
    python = pathlib.Path(sys.executable).parent
    missing = opens({"PATH": str(python), "LD_LIBRARY_PATH": ""})
    if missing.returncode:
        assert "LAPI's library was not found" in missing.stderr, missing.stderr
    other = opens({"OPENLAPI_LIBRARY": "libm.so.6"})
    assert "another library" in other.stderr, other.stderr


def test_without_an_end_the_interpreter_ends():
    code = "import openlapi; lapi = openlapi.init(); w = lapi.window(bytearray(8)); lapi.handler(print)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stderr) == (0, ""), ended


def test_a_forked_child_has_no_context():
    code = """
import os, openlapi
lapi = openlapi.init()
child = os.fork()
if child:
    assert os.waitpid(child, 0)[1] == 0
    lapi.gfence()
else:
    lapi = openlapi.init(instance=2)
    lapi.gfence()
"""
    # The library would write a line if the child ended the context of its parent.
    environment = {**os.environ, "MP_INFOLEVEL": "1"}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=30)
    assert (ran.returncode, ran.stderr) == (0, ""), ran


def test_a_report_of_a_hanging_job_names_the_lines_of_the_program(job):
    hung = job("hangs.py", 2, env={"LAPI_STALL_SECONDS": "1", "MP_TIME_LIMIT": str(seconds(8))})
    source = (pathlib.Path(__file__).parent / "jobs" / "hangs.py").read_text().splitlines()
    at = {line.split("# ")[1]: number for number, line in enumerate(source, 1) if "# line of" in line}
    assert hung.status == 124, hung
    assert f", called in stuck at hangs.py:{at['line of the wait']}\n" in hung.err, hung
    assert f", called in <module> at hangs.py:{at['line of the barrier']}\n" in hung.err, hung


@pytest.mark.parametrize(
    "when, lines, described", [("never", False, True), ("after", True, True), ("before", True, False)]
)
def test_faulthandler_names_the_lines_of_a_fault(job, when, lines, described):
    source = (pathlib.Path(__file__).parent / "jobs" / "crashes.py").read_text().splitlines()
    number = next(number for number, line in enumerate(source, 1) if "# line of the fault" in line)
    crashed = job("crashes.py", 2, when, env={"PYTHONFAULTHANDLER": ""})
    assert crashed.status == 139, crashed
    named = f'crashes.py", line {number} in fault\n' in crashed.err
    says = "LAPI: task 1: signal 11 (SIGSEGV)" in crashed.err
    assert (named, says) == (lines, described), crashed


def test_a_message_without_memory_is_named(job):
    outcome = job("too_long.py", 2)
    assert outcome.status == 134, outcome
    assert "MemoryError: 1073741824 bytes of a message of task 0\n" in outcome.err, outcome
