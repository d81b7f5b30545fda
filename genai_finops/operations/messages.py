"""What people are told, as data; and the same words as plain text, as Slack blocks and for Amazon Q in chat."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

Severity = Literal["info", "warning", "critical"]

SUBJECT_LIMIT: Final = 100
"""Characters of an SNS subject: ASCII, no line break (API reference of SNS Publish)."""

HEADER_LIMIT: Final = 150
SECTION_LIMIT: Final = 3000
"""Characters of a Slack header and of a section's text (Block Kit reference)."""

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
    def subject(self) -> str:
        """The title as SNS takes it for a subject."""
        plain = " ".join(self.title.encode("ascii", "replace").decode("ascii").split())
        return plain if len(plain) <= SUBJECT_LIMIT else plain[: SUBJECT_LIMIT - 3] + "..."

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


def to_slack(message: Message) -> list[dict[str, Any]]:
    """Block Kit blocks, for an incoming webhook or `chat.postMessage`."""
    title = {"type": "plain_text", "text": _cut(message.title, HEADER_LIMIT), "emoji": True}
    blocks: list[dict[str, Any]] = [{"type": "header", "text": title}]
    for heading, lines in message._parts:
        text = "\n".join([f"*{heading}*"] * bool(heading) + [f"• {_escaped(line)}" for line in lines])
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": _cut(text, SECTION_LIMIT)}})
    return blocks


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


def _escaped(text: str) -> str:
    """Slack's three control characters."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
