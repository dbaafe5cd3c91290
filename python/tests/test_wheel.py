"""The wheel: what its name and its rules promise, and that it is enough beside the library."""

import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest
from conftest import launcher, seconds

PROGRAM = """
import openlapi
with openlapi.init() as lapi:
    window = lapi.window(memory := bytearray(8))
    lapi.put(bytes([lapi.task + 1] * 8), 1 - lapi.task, window, 0)
    lapi.gfence()
    assert memory == bytes([2 - lapi.task] * 8), memory
    print(f"task {lapi.task}: {openlapi.__file__}", flush=True)
"""


@pytest.fixture
def wheel():
    """The wheel that ci/python.sh has built."""
    if "OPENLAPI_WHEEL" not in os.environ:
        pytest.skip("OPENLAPI_WHEEL names no wheel")
    return pathlib.Path(os.environ["OPENLAPI_WHEEL"])


def test_its_name_is_what_the_module_needs(wheel):
    tag = re.fullmatch(rf"openlapi-[\d.]+-cp311-abi3-manylinux_2_(\d+)_{os.uname().machine}\.whl", wheel.name)
    assert tag, wheel
    with zipfile.ZipFile(wheel) as files:
        (module,) = [name for name in files.namelist() if name.endswith(".so")]
        assert module == "openlapi/_core.abi3.so"
        versions = {int(version) for version in re.findall(rb"GLIBC_2\.(\d+)", files.read(module))}
    assert versions and max(versions) <= int(tag[1]), (wheel.name, versions)


def test_it_has_its_licences_and_no_library(wheel):
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        assert "License-Expression: Apache-2.0 OR MIT" in files.read(metadata).decode()
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"]:
        assert any(name.endswith(f".dist-info/licenses/{licence}") for name in names), names
    assert not any("liblapi" in name for name in names), names


def test_it_names_no_folder_of_the_build(wheel):
    sources = str(pathlib.Path(__file__).parents[2]) + "/"
    with zipfile.ZipFile(wheel) as files:
        named = [name for name in files.namelist() if sources.encode() in files.read(name)]
    assert named == [], named


def test_a_fresh_environment_needs_nothing_else(wheel, tmp_path):
    environment = tmp_path / "environment"
    python = str(environment / "bin/python")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True, timeout=seconds(60))
    install = ["-m", "pip", "--disable-pip-version-check", "--python", python, "install", "--quiet", "--no-index", wheel]
    subprocess.run([sys.executable, *install], check=True, timeout=seconds(60))
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [launcher(), python, "program.py", "-procs", "2"]
    ran = subprocess.run(command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds(60))
    assert (ran.returncode, ran.stderr) == (0, ""), ran
    assert sorted(line.split(":")[0] for line in ran.stdout.splitlines()) == ["task 0", "task 1"], ran
    assert ran.stdout.count(str(environment)) == 2, ran
    # Without the library, too: what is missing is said where it is needed.
    variables = {**os.environ, "OPENLAPI_LIBRARY": "/nowhere/liblapi_r.so.1"}
    ran = subprocess.run([python, "-c", "import openlapi; print('imported'); openlapi.init()"], env=variables, capture_output=True, text=True)
    assert ran.returncode == 1 and ran.stdout == "imported\n", ran
    assert "OSError: OPENLAPI_LIBRARY: /nowhere/liblapi_r.so.1: cannot open shared object file" in ran.stderr, ran
