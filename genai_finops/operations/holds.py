"""A person says: awake, or asleep, until then. Obeyed until it expires, and not a second longer.

A hold is an annotation on the model's ScaledObject, so that it needs no tool, is seen by everyone who looks at the
model, and outlives a deploy.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

HOLD: Final = "genai-finops/hold"
"""The annotation."""

_FORM: Final = re.compile(r"(awake|asleep)\s+until\s+(\S+)")


@dataclass(frozen=True, slots=True)
class Hold:
    """What was asked for, and until when (UTC)."""

    state: Literal["awake", "asleep"]
    until: datetime

    def holds(self, now: datetime) -> bool:
        return now < self.until

    def annotation(self) -> str:
        """The value to set; `parse` reads it back."""
        return f"{self.state} until {self.until.isoformat()}"


class HoldError(ValueError):
    """An annotation that cannot be obeyed; the message says what is wrong and what is right."""


def parse(text: str) -> Hold:
    """The hold that an annotation's value describes: `awake until 2026-12-24T18:00:00+01:00`, or `asleep until ...`.

    Raises:
        HoldError: when it is something else, or its time has no zone, so that it would end at an unknown moment.
    """
    match = _FORM.fullmatch(text.strip())
    if not match:
        raise HoldError(
            f"{HOLD} is {text!r}; use 'awake until 2026-12-24T18:00:00+01:00' or 'asleep until ...', or remove it"
        )
    try:
        until = datetime.fromisoformat(match[2])
    except ValueError:
        raise HoldError(f"{HOLD}: {match[2]!r} is not a time; write it like 2026-12-24T18:00:00+01:00") from None
    if until.utcoffset() is None:
        raise HoldError(f"{HOLD}: {match[2]!r} has no zone; add one, such as {match[2]}+01:00 or {match[2]}Z")
    try:
        return Hold("awake" if match[1] == "awake" else "asleep", until.astimezone(UTC))
    except OverflowError:
        raise HoldError(f"{HOLD}: {match[2]!r} is beyond the calendar; use an earlier or later time") from None


def read(annotations: Mapping[str, str]) -> Hold | HoldError | None:
    """The hold on a ScaledObject, expired or not; a bad one as its error, to be reported and not obeyed."""
    text = annotations.get(HOLD)
    if text is None:
        return None
    try:
        return parse(text)
    except HoldError as error:
        return error
