"""One library in a process, whose calls a preloaded profiler sees."""

import json
import os
import pathlib
import subprocess
import sys

import openlapi
import pytest
from conftest import launcher

LIBRARY = pathlib.Path(launcher()).parent.parent / "lib"

ONE = """
import ctypes, sys
def other():
    return ctypes.CDLL({file!r})
{first}
import openlapi
with openlapi.init() as lapi:
    library = other()
    text = ctypes.create_string_buffer(160)
    assert library.LAPI_Msg_string(428, text) == 0 and b"LAPI_ERR_TGT" in text.value
    files = {{line.split()[-1] for line in open("/proc/self/maps") if "liblapi_r" in line}}
    assert len(files) == 1, files
"""


@pytest.mark.parametrize("file", ["liblapi_r.so.1", str(LIBRARY / "liblapi_r.so")])
@pytest.mark.parametrize("first", ["", "other()"])
def test_there_is_one_library(file, first):
    code = ONE.format(file=file, first=first)
    # A C extension that is linked with the library finds it by its name.
    environment = {**os.environ, "LD_LIBRARY_PATH": str(LIBRARY)}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=30)
    assert (ran.returncode, ran.stderr) == (0, ""), ran


def test_a_profiler_sees_the_calls(job, tmp_path):
    environment = {"LD_PRELOAD": str(LIBRARY / "liblapiprof.so"), "LAPIPROF_OUT": str(tmp_path / "prof")}
    job("data.py", 2, "2", env=environment)
    report = (tmp_path / "prof" / "report.html").read_text()
    assert "LAPI_Put" in report and "LAPI_Get" in report


def test_a_profiler_knows_the_lines_of_the_program(job, tmp_path):
    environment = {"LD_PRELOAD": str(LIBRARY / "liblapiprof.so"), "LAPIPROF_OUT": str(tmp_path / "prof")}
    job("lines.py", 2, env=environment)
    source = (pathlib.Path(__file__).parent / "jobs" / "lines.py").read_text().splitlines()
    # The line whose comment says so.
    at = {line.split("# ")[1]: f"lines.py:{number}" for number, line in enumerate(source, 1) if "# line of" in line}
    rows = json.loads((tmp_path / "prof" / "report.json").read_text())["sites"]
    found = {(row["call"], row["site"], row["line"]): row["count"] for row in rows}
    for call, function, line, count in [
        ("LAPI_Put", "send", "line of the put", 20),
        ("LAPI_Put", "send", "line of the other put", 6),
        ("LAPI_Get", "Program.fetch", "line of the get", 2),
        # In a handler, which a thread of the library runs.
        ("LAPI_Rmw64", "answer", "line of the addition", 2),
    ]:
        assert found.get((call, function, at[line])) == count, (call, found)
    # What a collective call does inside of this package is done by the line that calls it.
    barrier = [row for row in rows if row["line"] == at["line of the barrier"]]
    assert {"LAPI_Put", "LAPI_Waitcntr"} <= {row["call"] for row in barrier}, rows
    assert all(not row["line"].startswith(("collectives.py", "__init__.py")) for row in rows), rows
    assert all(pathlib.Path(row["object"]).name == "lines.py" for row in rows if row["call"] != "LAPI_Init"), rows


def test_the_module_shows_versions_and_transports():
    shown = subprocess.run([sys.executable, "-m", "openlapi"], capture_output=True, text=True)
    lines = shown.stdout.splitlines()
    assert shown.returncode == 0, shown
    assert lines[0].startswith(f"openlapi for Python {openlapi.__version__}, Python 3."), shown
    assert lines[1].startswith("library: ") and "liblapi_r.so" in lines[1], shown
    assert any(line.startswith("shared memory: usable: ") for line in lines), shown
