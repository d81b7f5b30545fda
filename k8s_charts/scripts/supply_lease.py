"""One compile at a time per key: an object in the store that its holder keeps renewing.

A holder that dies stops renewing, and after LEASE_SECONDS the next one takes over. A holder that has lost its lease
(it was frozen for longer) must not write any more: two compilers make different bytes from the same recipe.
"""

import json
import os
import socket
import threading
import time
from typing import Self

from supply import Store, SupplyError, log

LEASE_SECONDS = float(os.environ.get("LEASE_SECONDS", "300"))


class Lease:
    """A context manager, to be entered after `acquire` has said True."""

    def __init__(self, store: Store, key: str) -> None:
        self._store = store
        self._key = key
        self._holder = f"{socket.gethostname()}-{os.getpid()}"
        self._etag: str | None = None
        self._renewed = 0.0
        self._over = threading.Event()
        self._writing = threading.Lock()

    def acquire(self) -> bool:
        """False while somebody else has it."""
        found = self._store.read(self._key)
        if found and self._expires(found[0]) > time.time():
            return False
        self._write(replaces=found and found[1], expires=time.time() + LEASE_SECONDS)
        return self._is_held()

    def check(self) -> None:
        """Raises SupplyError unless the lease is held: by the clock, since the renewal may have stood still as well."""
        if not self._is_held():
            raise SupplyError(
                f"The lease {self._store.url(self._key)} was lost: this job stood still for too long and another may "
                "have taken over. Nothing more is written here."
            )

    def __enter__(self) -> Self:
        threading.Thread(target=self._keep, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with self._writing:
            if self._is_held():
                self._write(replaces=self._etag, expires=0.0)

    def _is_held(self) -> bool:
        return self._etag is not None and time.monotonic() - self._renewed < LEASE_SECONDS

    def _keep(self) -> None:
        while not self._over.wait(LEASE_SECONDS / 5):
            with self._writing:
                if self._over.is_set() or not self._etag:
                    return
                try:
                    self._write(replaces=self._etag, expires=time.time() + LEASE_SECONDS)
                except SupplyError as error:
                    log(f"lease not renewed: {error}")

    def _write(self, *, replaces: str | None, expires: float) -> None:
        began = time.monotonic()
        content = json.dumps({"holder": self._holder, "expires": expires})
        self._etag = self._store.write(self._key, content, replaces=replaces)
        self._renewed = began

    @staticmethod
    def _expires(content: bytes) -> float:
        try:
            return float(json.loads(content)["expires"])
        except (KeyError, TypeError, ValueError):
            return 0.0
