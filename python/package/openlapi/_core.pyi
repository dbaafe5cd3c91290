from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias, final

# collections.abc has it from Python 3.12 on; type checkers know this name everywhere.
from typing_extensions import Buffer

class _Array(Protocol):
    """Arrays of numpy, whose hints have the buffer protocol from Python 3.12 on only."""
    @property
    def __array_interface__(self) -> dict[str, Any]: ...

_Memory: TypeAlias = Buffer | _Array

__version__: str

class Error(Exception):
    code: int
    name: str

@final
class Session:
    @property
    def route(self) -> str: ...
    @property
    def closed(self) -> bool: ...
    def lend(self, memory: _Memory) -> int: ...
    def put(self, data: _Memory, address: int) -> None: ...
    def get(self, into: _Memory, address: int) -> None: ...
    def fetch_add(self, address: int, value: int) -> int: ...
    def fence(self) -> None: ...
    def send(self, data: _Memory, header: bytes | None = None) -> None: ...
    def receive(self, timeout: float | None = None) -> tuple[bytes, bytes] | None: ...
    def fileno(self) -> int: ...
    def arm(self) -> bool: ...
    def progress(self) -> bool: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None = None, value: BaseException | None = None, traceback: TracebackType | None = None) -> None: ...

@final
class Listener:
    @property
    def address(self) -> tuple[str, int] | None: ...
    def accept(self, timeout: float | None = None) -> Session | None: ...
    def fileno(self) -> int: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None = None, value: BaseException | None = None, traceback: TracebackType | None = None) -> None: ...

@final
class Window:
    @property
    def sizes(self) -> list[int]: ...
    def free(self) -> None: ...

@final
class Counter:
    @property
    def value(self) -> int: ...
    @property
    def shared(self) -> bool: ...
    def wait(self, value: int = 1) -> int: ...
    def set(self, value: int) -> None: ...

@final
class Handler:
    @property
    def name(self) -> str: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

@final
class Context:
    @property
    def task(self) -> int: ...
    @property
    def tasks(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    @property
    def interrupts(self) -> bool: ...
    @interrupts.setter
    def interrupts(self, on: bool) -> None: ...
    def fence(self) -> None: ...
    def gfence(self) -> None: ...
    def checkpoint_before(self) -> None: ...
    def checkpoint_after(self) -> None: ...
    def probe(self) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None) -> None: ...
    def window(self, buffer: _Memory) -> Window: ...
    def counter(self, *, shared: bool = False) -> Counter: ...
    def handler(
        self,
        function: Callable[[int, bytes, Any], object],
        *,
        into: Callable[[int, bytes, int], _Memory | None] | None = None,
        name: str | None = None,
    ) -> Handler: ...
    def send(
        self,
        target: int,
        handler: Handler,
        header: _Memory | None = None,
        data: _Memory | None = None,
        *,
        target_counter: Counter | None = None,
        origin_counter: Counter | None = None,
        completion_counter: Counter | None = None,
    ) -> None: ...
    def put(
        self,
        buffer: _Memory,
        target: int,
        window: Window,
        offset: int = 0,
        *,
        target_counter: Counter | None = None,
        origin_counter: Counter | None = None,
        completion_counter: Counter | None = None,
    ) -> None: ...
    def get(
        self,
        buffer: _Memory,
        target: int,
        window: Window,
        offset: int = 0,
        *,
        target_counter: Counter | None = None,
        origin_counter: Counter | None = None,
    ) -> None: ...
    def putv(
        self,
        buffers: Iterable[_Memory],
        target: int,
        window: Window,
        offsets: Sequence[int],
        *,
        target_counter: Counter | None = None,
        origin_counter: Counter | None = None,
        completion_counter: Counter | None = None,
    ) -> None: ...
    def getv(
        self,
        buffers: Iterable[_Memory],
        target: int,
        window: Window,
        offsets: Sequence[int],
        *,
        target_counter: Counter | None = None,
        origin_counter: Counter | None = None,
    ) -> None: ...
    def put_strided(
        self,
        buffer: _Memory,
        target: int,
        window: Window,
        offset: int = 0,
        *,
        block: int,
        count: int,
        stride: int,
        target_stride: int | None = None,
        start: int = 0,
        target_counter: Counter | None = None,
        origin_counter: Counter | None = None,
        completion_counter: Counter | None = None,
    ) -> None: ...
    def get_strided(
        self,
        buffer: _Memory,
        target: int,
        window: Window,
        offset: int = 0,
        *,
        block: int,
        count: int,
        stride: int,
        target_stride: int | None = None,
        start: int = 0,
        target_counter: Counter | None = None,
        origin_counter: Counter | None = None,
    ) -> None: ...
    def fetch_and_add(self, target: int, window: Window, offset: int, value: int, *, bits: int = 64) -> int: ...
    def fetch_and_or(self, target: int, window: Window, offset: int, value: int, *, bits: int = 64) -> int: ...
    def swap(self, target: int, window: Window, offset: int, value: int, *, bits: int = 64) -> int: ...
    def compare_and_swap(
        self, target: int, window: Window, offset: int, expected: int, value: int, *, bits: int = 64
    ) -> bool: ...

def init(*, instance: int = 0, completion_threads: int = 1, interrupts: bool = True) -> Context: ...
def connect(
    address: str | PathLike[str] | tuple[str, int],
    key_file: str | PathLike[str] | None = None,
    *,
    timeout: float = 10.0,
    routes: list[str] | None = None,
) -> Session: ...
def listen(
    address: str | PathLike[str] | tuple[str, int],
    key_file: str | PathLike[str] | None = None,
    *,
    timeout: float = 10.0,
    routes: list[str] | None = None,
) -> Listener: ...
def close_all() -> None: ...
def in_job() -> None: ...
def library_path() -> str: ...
