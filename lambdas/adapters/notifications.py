"""One message, twice: plain text for people's mail, and what Amazon Q Developer turns into a card in the channel.

Both listen to one topic. SNS sends each protocol its own version: mail gets `default`, and Amazon Q, which subscribes
by HTTPS, gets a custom notification (https://docs.aws.amazon.com/chatbot/latest/adminguide/custom-notifs.html).
Otherwise Amazon Q would drop what it does not know, or mail would show JSON.
"""

import json
import unicodedata
from bisect import bisect_left
from typing import Any, Final

from genai_finops.operations.messages import Message, to_chat, to_text

MOST_BYTES: Final = 256 * 1024
"""Of a message with all its versions: https://docs.aws.amazon.com/sns/latest/api/API_Publish.html."""

SUBJECT_CHARACTERS: Final = 100
TITLE_CHARACTERS: Final = 150
DESCRIPTION_CHARACTERS: Final = 3000
"""Slack's limits of a header and of a section: https://api.slack.com/reference/block-kit/blocks."""

STEPS: Final = 10
STEP_CHARACTERS: Final = 300
"""Ours: more is not read."""

CUT: Final = "\n[cut: too long]"
_ASCII: Final = str.maketrans({"–": "-", "—": "-", "−": "-", "×": "x", "→": "->", "€": "EUR", "’": "'"})


class Notifier:
    """Publishes to the alerts topic, or nowhere when the platform names nobody to notify.

    Args:
        sns: boto3 client; the role needs sns:Publish on the topic, and kms:GenerateDataKey and kms:Decrypt on its key.
    """

    def __init__(self, sns: Any, topic_arn: str | None) -> None:
        self._sns = sns
        self._topic_arn = topic_arn

    def publish(self, message: Message, *, thread: str = "") -> str | None:
        """Send it; the id that SNS gives it, or None when there is nobody to tell.

        Args:
            thread: messages with the same one belong together in the channel, such as those of an incident.

        Raises:
            botocore.exceptions.ClientError: as SNS gives it.
        """
        if not self._topic_arn:
            return None
        answer = self._sns.publish(
            TopicArn=self._topic_arn,
            Subject=subject(message.title),
            Message=both_versions(message, thread=thread),
            MessageStructure="json",
        )
        return str(answer["MessageId"])


def subject(title: str) -> str:
    """At most 100 printable ASCII characters in one line, for that is all that SNS takes."""
    plain = unicodedata.normalize("NFKD", title.translate(_ASCII)).encode("ascii", "ignore").decode()
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in plain).split())
    return _short(line, SUBJECT_CHARACTERS) or "genai-finops"


def both_versions(message: Message, *, thread: str = "") -> str:
    """Mail and card, cut so that SNS takes them."""
    card = json.dumps(chat_card(message, thread=thread), ensure_ascii=False)
    text = to_text(message)
    if _fits(text, card):
        return _versions(text, card)
    # A character takes one to six bytes, and only JSON itself knows: look for the longest beginning that fits.
    kept = bisect_left(range(len(text)), True, key=lambda length: not _fits(text[:length] + CUT, card)) - 1
    return _versions(text[:kept] + CUT, card)


def chat_card(message: Message, *, thread: str = "") -> dict[str, Any]:
    """A custom notification of Amazon Q Developer, cut to what a channel shows."""
    card = to_chat(message)
    content = card["content"]
    content["title"] = _short(content["title"], TITLE_CHARACTERS)
    content["description"] = _short(content["description"], DESCRIPTION_CHARACTERS)
    if "nextSteps" in content:
        content["nextSteps"] = [_short(step, STEP_CHARACTERS) for step in content["nextSteps"][:STEPS]]
    if thread:
        card["metadata"] = {"threadId": thread, "summary": content["title"]}
    return card


def _versions(text: str, card: str) -> str:
    return json.dumps({"default": text, "https": card}, ensure_ascii=False)


def _fits(text: str, card: str) -> bool:
    return len(_versions(text, card).encode()) <= MOST_BYTES


def _short(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[: characters - 3].rstrip() + "..."
