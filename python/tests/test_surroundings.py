"""Signals, forks, threads and other processes beside LAPI."""

import os
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


@pytest.mark.parametrize("how", ["counter", "asyncio"])
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


def test_forked_children_do_not_hang(job):
    assert job("forks.py", 2).ok().out.count("no child hangs") == 2


def test_forks_beside_new_threads_of_the_library(job):
    job("opens.py").ok()


def test_multiprocessing_in_a_job(job):
    assert job("spawns.py", 2).ok().out.count("children have computed") == 2


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
