"""What people are told, as data; and the same words as plain text, and as a card for Slack by way of Amazon Q."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

Severity = Literal["info", "warning", "critical"]

_MARKS: Final = {"info": ":information_source:", "warning": ":warning:", "critical": ":rotating_light:"}


@dataclass(frozen=True, slots=True)
class Message:
    """One notification.

    Attributes:
        title: one line.
        lines: what is the case, and where.
        next_steps: what happens by itself.
        to_do: what the reader can do.
    """

    title: str
    severity: Severity = "info"
    lines: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    to_do: tuple[str, ...] = ()

    @property
    def _parts(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        parts = (("", self.lines), ("What happens next", self.next_steps), ("What you can do", self.to_do))
        return tuple((heading, lines) for heading, lines in parts if lines)


def to_text(message: Message) -> str:
    """For mail and logs."""
    blocks = [message.title]
    for heading, lines in message._parts:
        blocks.append("\n".join([f"{heading}:"] * bool(heading) + [f"- {line}" for line in lines]))
    return "\n\n".join(blocks) + "\n"


def to_chat(message: Message) -> dict[str, Any]:
    """A custom notification of Amazon Q Developer in chat applications (schema 1.0): SNS carries it into Slack.

    Anything else that is published to a topic with a chat channel is dropped there.
    """
    description = "\n".join(f"- {line}" for line in (*message.lines, *message.next_steps))
    content: dict[str, Any] = {
        "textType": "client-markdown",
        "title": f"{_MARKS[message.severity]} {message.title}",
        "description": description or message.title,
    }
    if message.to_do:
        content["nextSteps"] = list(message.to_do)
    return {"version": "1.0", "source": "custom", "content": content}


def listed(items: Iterable[str], *, limit: int = 10) -> str:
    """`a, b and 3 more`: a message about 500 models stays readable."""
    every = list(items)
    shown = ", ".join(every[:limit])
    return f"{shown} and {len(every) - limit} more" if len(every) > limit else shown
