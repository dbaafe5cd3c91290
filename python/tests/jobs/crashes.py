"""Task 1 is ended by a fault in native code; faulthandler is on before LAPI, after it, or never."""

import ctypes
import faulthandler
import sys

import openlapi


def fault():
    ctypes.string_at(64)  # line of the fault


if sys.argv[1] == "before":
    faulthandler.enable()
lapi = openlapi.init()
if sys.argv[1] == "after":
    faulthandler.enable()
lapi.gfence()
if lapi.task == 1:
    fault()
lapi.gfence()
