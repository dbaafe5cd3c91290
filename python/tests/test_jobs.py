"""What tasks do with each other."""

import textwrap

import openlapi
import pytest


@pytest.mark.parametrize("procs", [1, 2, 4])
def test_data(job, procs):
    assert job("data.py", procs, str(procs)).ok().out.count("all of it arrived") == procs


def test_data_without_direct_copies(job):
    """Long puts are in packets, so that they are under way when the call returns."""
    job("data.py", 2, "2", env={"LAPI_SHM_ATTACH": "no"}).ok()


@pytest.mark.parametrize("procs", [1, 2, 4])
def test_atomics(job, procs):
    assert job("atomics.py", procs).ok().out.count("are right") == procs


@pytest.mark.parametrize("procs", [1, 2, 4])
def test_messages(job, procs):
    assert job("messages.py", procs).ok().out.count("were handled") == procs


@pytest.mark.parametrize("procs", [1, 2])
def test_threads(job, procs):
    assert job("threads.py", procs).ok().out.count("took turns") == procs


def test_threads_take_turns_in_collective_calls(job):
    job("turns.py", 2).ok()


def test_the_example_of_the_package(job, tmp_path):
    source = openlapi.__doc__.split("::\n")[1].split("\nStart it by")[0]
    (tmp_path / "example.py").write_text(textwrap.dedent(source))
    lines = job(tmp_path / "example.py", 2).ok().out.splitlines()
    assert sorted(lines) == ["0 [0. 1.]", "1 [0. 1.]"]


@pytest.mark.parametrize("procs", [1, 3])
def test_a_task_leaves_and_comes_back(job, procs):
    # The library reports what it has refused.
    left = job("leaves.py", procs)
    assert left.status == 0 and left.out.count("nothing is lost") == procs, left


def test_refused_collective_calls_leave_nothing_behind(job):
    # Long enough in flight to come after a fence that did not wait for it. The library reports what
    # it has refused.
    recovered = job("recovers.py", 2, env={"LAPI_SHM_ATTACH": "no"})
    assert recovered.status == 0 and recovered.out.count("all is well") == 2, recovered


FAILURES = {
    "exception": "KeyError: 'not caught'",
    "thread": "KeyError: 'not caught by a thread'",
    "handler": "task 1: this exception left handler \"fail\"",
    "small": "the buffer that `into` returns has 7 bytes; the message has 8",
    "calls": "fence in `into` of a handler, which must not call LAPI",
    "order": "another task registers a function of another name",
    "kind": "another task is in another collective call",
}


@pytest.mark.parametrize("how", FAILURES)
def test_a_task_that_fails_ends_the_job(job, how):
    outcome = job("fails.py", 2, how)
    assert outcome.status == 134 and FAILURES[how] in outcome.err, outcome


@pytest.mark.parametrize("procs", [1, 2, 3, 5])
def test_collectives(job, procs):
    assert job("collectives.py", procs).ok().out.count("all results are right") == procs
