"""The programs of samples/python: what they print is what their README shows."""

import pathlib
import re

import pytest

SAMPLES = pathlib.Path(__file__).parents[2] / "samples" / "python"
README = [line.strip() for line in (SAMPLES / "README").read_text().splitlines()]


@pytest.mark.parametrize("procs", [1, 2, 3, 4])
def test_heat2d(job, procs):
    printed = job(SAMPLES / "heat2d.py", procs).ok().out.splitlines()
    assert printed == [line for line in README if "steps the heat" in line or "cell" in line and "task 0:" in line]
    assert len(printed) == 3 and "every cell is that of one task" in printed[2]


def test_heat2d_with_unequal_blocks(job):
    outcome = job(SAMPLES / "heat2d.py", 4, "7", "11").ok()
    assert "after 11 steps the heat of 7 x 7 cells" in outcome.out and "every cell is that of one task" in outcome.out


def test_heat2d_refuses_a_square_that_is_too_small(job):
    outcome = job(SAMPLES / "heat2d.py", 2, "3")
    assert outcome.status != 0 and "SIZE is at least 4" in outcome.err


@pytest.mark.parametrize("procs", [1, 2, 4])
def test_stealing(job, procs):
    printed = job(SAMPLES / "stealing.py", procs).ok().out.splitlines()
    worked = [re.fullmatch(r"task (\d+): worked on (\d+) items and stole (\d+)", line) for line in printed]
    counts = {int(match[1]): (int(match[2]), int(match[3])) for match in worked if match}
    assert sorted(counts) == list(range(procs)), printed
    assert sum(count for count, _ in counts.values()) == 1000
    # Those that had none at first have stolen all that they have worked on.
    assert all(stolen >= count for task, (count, stolen) in counts.items() if task > 0), printed
    # Lines of different tasks come in any order: poe reads their outputs side by side.
    steps = [line for line in printed if line.endswith("steps")]
    assert len(steps) == 1 and steps[0] in README, printed


def test_measurements(job):
    printed = job(SAMPLES / "measurements.py", 2).ok().out.splitlines()
    assert len(printed) == 3 and all(line in README for line in printed), printed
    printed = job(SAMPLES / "measurements.py", 3).ok().out.splitlines()
    assert "task 0: measurements by task: [1, 2, 3]" in printed, printed
