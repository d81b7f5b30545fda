"""Programs that run together and end together, whatever ends first.

Each is a process group of its own, so that its children end with it, and is told by the kernel when this process dies.
Output goes to one file each, and its last lines are part of every error.
"""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final

_REMEMBERED: Final = 30
_LOOK_SECONDS: Final = 0.05
_PR_SET_PDEATHSIG: Final = 1


class ProcessError(Exception):
    """A program did not start, or ended before its time; with the last lines that it wrote."""


@dataclass(slots=True)
class Program:
    """A running program.

    Attributes:
        log: file with everything that it wrote.
    """

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def last_lines(self, count: int = _REMEMBERED) -> str:
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-count:])

    def stop(self, patience_seconds: float = 5) -> None:
        """Ask, wait, insist; the whole group either way."""
        self._signal(signal.SIGTERM)
        try:
            self.process.wait(patience_seconds)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self.process.wait()
        # What it has started and not ended itself.
        self._signal(signal.SIGKILL)

    def kill(self) -> None:
        """As a crash would end it."""
        self._signal(signal.SIGKILL)
        self.process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


@dataclass(slots=True)
class Programs:
    """All programs of a rehearsal, stopped in the opposite order of their start.

    Attributes:
        folder: for their logs.
    """

    folder: Path
    running: list[Program] = field(default_factory=list)

    def start(self, name: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> Program:
        """Start `command` with no environment but PATH, HOME and what is given."""
        self.folder.mkdir(parents=True, exist_ok=True)
        log = self.folder / f"{name}.log"
        inherited = {key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR") if key in os.environ}
        with log.open("ab") as output:
            process = subprocess.Popen(
                list(map(str, command)),
                env=inherited | dict(environment or {}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,
            )
        program = Program(name, process, log)
        self.running.append(program)
        return program

    def wait_for(self, program: Program, is_ready: Callable[[], bool], within_seconds: float) -> None:
        """Until a program is ready.

        Raises:
            ProcessError: when it ends first, or does not get ready in time.
        """
        deadline = time.monotonic() + within_seconds
        while not is_ready():
            if not program.is_running:
                raise ProcessError(
                    f"{program.name} ended with {program.process.returncode}. Its last words ({program.log}):\n"
                    f"{program.last_lines()}"
                )
            if time.monotonic() > deadline:
                raise ProcessError(
                    f"{program.name} was not ready within {within_seconds:g} s. Its last words ({program.log}):\n"
                    f"{program.last_lines()}"
                )
            time.sleep(_LOOK_SECONDS)

    def stop(self) -> None:
        while self.running:
            self.running.pop().stop()

    def __enter__(self) -> "Programs":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _die_with_parent() -> None:
    """In the child, before it becomes the program: the kernel ends it when this process dies, however it does."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nothing listens on, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def listens(port: int) -> bool:
    with socket.socket() as one:
        one.settimeout(1)
        return one.connect_ex(("127.0.0.1", port)) == 0
