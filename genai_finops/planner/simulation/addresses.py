"""The arrays of a world, for compiled code: found through their addresses, which the one state record holds.

A function that is handed two dozen arrays spends more time on passing and counting references to them than on its
work, and they take a minute to compile. So the kernel is handed one record. Whoever starts it keeps the arrays alive,
and writes the addresses anew when one is replaced.
"""

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.numpy_support import carray
from numpy.typing import DTypeLike

from genai_finops.planner.simulation.compiled import compiled
from genai_finops.planner.simulation.layout import (
    COMPLETION,
    EVENT,
    JOURNAL,
    LEVEL,
    NODE,
    NODE_LOG,
    REPLICA,
    REQUEST,
    REQUEST_LOG,
    Array,
    World,
)


def _pointer_code(_typing_context: Any, address: Any) -> Any:
    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(address), code


_pointer: Final = cast(Callable[[int], Any], intrinsic(_pointer_code))


def _rows(name: str, kind: DTypeLike) -> Callable[[Any], Array]:
    """Of the array of that name in the world, in one dimension."""
    address, length, dtype = f"{name}_address", f"{name}_length", np.dtype(kind)

    def rows(state: Any) -> Array:
        return carray(_pointer(state[address]), (state[length],), dtype)

    return compiled(rows)


def _table(name: str, kind: DTypeLike) -> Callable[[Any], Array]:
    address, length, width, dtype = f"{name}_address", f"{name}_length", f"{name}_width", np.dtype(kind)

    def table(state: Any) -> Array:
        return carray(_pointer(state[address]), (state[length], state[width]), dtype)

    return compiled(table)


prompts: Final = _rows("prompts", np.int64)
requests: Final = _rows("requests", REQUEST)
replicas: Final = _rows("replicas", REPLICA)
completions: Final = _rows("completions", COMPLETION)
residues: Final = _rows("residues", np.int64)
journal: Final = _table("journal", JOURNAL)
order: Final = _rows("order", np.int64)
ready_list: Final = _rows("ready_list", np.int64)
edges: Final = _rows("edges", np.float64)
counts: Final = _table("counts", np.int64)
first_token_ring: Final = _table("first_token_ring", np.int64)
gap_ring: Final = _table("gap_ring", np.int64)
nodes: Final = _rows("nodes", NODE)
events: Final = _rows("events", EVENT)
levels: Final = _rows("levels", LEVEL)
areas: Final = _table("areas", np.float64)
bucket_counts: Final = _table("bucket_counts", np.int64)
bucket_quantiles: Final = _table("bucket_quantiles", np.float64)
awake_edges: Final = _rows("awake_edges", np.float64)
recommendations: Final = _table("recommendations", np.float64)
changes: Final = _table("changes", np.float64)
request_log: Final = _rows("request_log", REQUEST_LOG)
node_log: Final = _rows("node_log", NODE_LOG)


def at_hand(world: World) -> World:
    """The same, with its addresses written down: before the kernel is called with arrays that it does not know yet."""
    state = world.state[0]
    for name, array in zip(World._fields[1:], world[1:], strict=True):
        if not array.flags.c_contiguous:
            raise ValueError(f"{name} is not in one piece")
        state[f"{name}_address"] = array.ctypes.data
        state[f"{name}_length"] = len(array)
        if array.ndim == 2:
            state[f"{name}_width"] = array.shape[1]
    return world
