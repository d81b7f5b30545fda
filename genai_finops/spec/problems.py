"""What is wrong with a platform file, in words a person can act on."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: where it is, what was found, why it cannot work, and what to do.

    Attributes:
        path: in the file, such as `models[0].accelerator.tensor_parallel_size`; empty for the file as a whole.
        found: completes the sentence "<path> ...", such as "is 3" or "is missing".
        why: what rules it out.
        fix: what is allowed and what to do.
    """

    path: str
    found: str
    why: str
    fix: str

    def render(self, file: str) -> str:
        subject = f"{file}: {self.path} {self.found}" if self.path else f"{file} {self.found}"
        lines = [subject, *(f"  {line}" for line in (self.why, self.fix) if line)]
        return "\n".join(_UNPRINTABLE.sub(_escaped, line) for line in lines)


@dataclass(frozen=True, slots=True)
class Warning:
    """Something that works but costs: money, time or sleep.

    Attributes:
        path: in the platform file.
        message: what it costs.
        remedy: what to do, or why one may leave it.
    """

    path: str
    message: str
    remedy: str


class PlatformError(Exception):
    """A platform file that cannot be used; carries every problem found, not just the first."""

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        self.file = file
        self.problems = tuple(problems)
        super().__init__(self.render())

    def render(self) -> str:
        count = len(self.problems)
        summary = f"{count} problem{'s' if count != 1 else ''} in {self.file}; nothing was written."
        return "\n\n".join([*(problem.render(self.file) for problem in self.problems), summary])


def one_of(values: Iterable[object]) -> str:
    """`a, b or c`."""
    words = [str(value) for value in values]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def _escaped(match: re.Match[str]) -> str:
    """What is in a file must not steer the terminal that shows a message about it."""
    return repr(match[0])[1:-1]


_PLAIN_KEY: Final = re.compile(r"[\w/:@+-]+")
_STEP: Final = re.compile(r'\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|([^.\[\]]+)')


def path_of(location: Iterable[int | str]) -> str:
    """A location as people write it: `models[0].engine.dtype`; a key with dots or spaces stands in quotes."""
    return "".join(map(_step, location)).removeprefix(".")


def _step(part: int | str) -> str:
    if isinstance(part, str) and _PLAIN_KEY.fullmatch(part):
        return f".{part}"
    return f"[{json.dumps(part)}]"


def steps(path: str) -> list[int | str]:
    """The location that a path stands for: the inverse of `path_of`."""
    return [
        int(index) if index else json.loads(quoted) if quoted else key for index, quoted, key in _STEP.findall(path)
    ]
