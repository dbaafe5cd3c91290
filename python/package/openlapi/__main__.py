"""python -m openlapi: versions, the library and its transports."""

import os
import platform
import subprocess
import sys

from . import __version__
from ._core import library_path


def main():
    print(f"openlapi for Python {__version__}, Python {platform.python_version()} at {sys.executable}")
    try:
        library = library_path()
    except OSError as why:
        print(f"library: {why}")
        return 1
    print(f"library: {library}")
    # Of the same installation: it tries what this machine allows.
    info = os.path.join(os.path.dirname(os.path.dirname(library)), "bin", "lapi_info")
    if not os.access(info, os.X_OK):
        print(f"transports: not known: there is no {info}")
        return 1
    sys.stdout.flush()
    return subprocess.run([info, "--short"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
