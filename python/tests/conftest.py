"""Jobs for the tests: programs of the folder jobs, each started by poe with a number of tasks."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent


def seconds(uncrowded):
    """A time that only a job which hangs takes: as given where each process has a processor, up to
    four times as long where more want to run than there are processors."""
    crowd = os.getloadavg()[0] / len(os.sched_getaffinity(0))
    return round(uncrowded * min(max(crowd, 1), 4) * int(os.environ.get("TEST_PATIENCE", "1")))


def launcher():
    """The poe of the installation that is tested."""
    stage = os.environ.get("LAPI_STAGE")
    found = f"{stage}/bin/poe" if stage else shutil.which("poe")
    if not found or not os.path.exists(found):
        pytest.exit("there is no poe: set LAPI_STAGE to an installation of OpenLAPI, or put its bin folder on the PATH", 2)
    return found


# Every test finds the library beside this poe.
os.environ["PATH"] = f"{os.path.dirname(launcher())}:{os.environ['PATH']}"
# From Python 3.12 on it warns of each fork beside other threads.
os.environ["PYTHONWARNINGS"] = "ignore::DeprecationWarning"


class Outcome:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def __repr__(self):
        return f"status {self.status}\n--- output\n{self.out}\n--- errors\n{self.err}"

    def ok(self):
        if self.status != 0 or self.err != "":
            pytest.fail(repr(self))
        return self


def run(program, procs=1, *arguments, env=None):
    """Runs a program of the folder jobs, or another one by its path."""
    command = [launcher(), sys.executable, str(HERE / "jobs" / program), *arguments, "-procs", str(procs)]
    # A session of its own: a job that hangs is ended with all that it has started.
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=seconds(60))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        out, err = process.communicate()
        pytest.fail(f"{program} hangs with {procs} tasks\n{Outcome('none', out, err)}")
    return Outcome(process.returncode, out, err)


@pytest.fixture
def job():
    return run


@pytest.fixture
def lapi():
    """A context of one task."""
    import openlapi

    with openlapi.init() as context:
        yield context
