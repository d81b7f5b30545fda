"""Numba without types of its own would take them from everything it decorates: this is the one place that knows it."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Machine code at the first call, without the interpreter's lock; division by zero gives infinity, as in numpy."""
    return cast(Function, numba.njit(nogil=True, error_model="numpy")(function))


def compiled_and_kept(function: Function) -> Function:
    """The same, kept on disk for the next process with all that it calls.

    Numba looks at the file of this function alone to tell whether what it kept is still true. Whoever uses this for a
    function that calls into other files closes over something that changes with them.
    """
    try:
        return cast(Function, numba.njit(nogil=True, error_model="numpy", cache=True)(function))
    except RuntimeError:  # neither this folder nor the user's cache can be written to
        return compiled(function)
