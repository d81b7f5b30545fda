"""Whatever the message, SNS takes it, mail can be read, and the channel gets a card."""

import json
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genai_finops.operations.messages import Message, to_text
from lambdas.adapters.notifications import MOST_BYTES, Notifier, both_versions, chat_card, subject
from tests.support.aws_api import REGION, client

_numbers = count()

BUDGET = Message(
    title="genai: 80 % of the month’s budget is spent – $800 of $1,000",
    severity="warning",
    lines=("llama: $700",),
    to_do=("Raise `budget.monthly_usd`", "Or sleep a model"),
)


@pytest.fixture
def topic(moto_url):
    """A topic with two queues behind it: one as mail would see it. moto delivers to queues only."""
    sns, sqs = client("sns", moto_url), client("sqs", moto_url)
    name = f"alerts-{next(_numbers)}"
    topic = sns.create_topic(Name=name)["TopicArn"]
    queue = sqs.create_queue(QueueName=name)["QueueUrl"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=f"arn:aws:sqs:{REGION}:123456789012:{name}")
    return sns, topic, lambda: json.loads(sqs.receive_message(QueueUrl=queue)["Messages"][0]["Body"])


def test_mail_gets_plain_text_and_a_subject(topic):
    sns, arn, received = topic
    assert Notifier(sns, arn).publish(BUDGET)
    mail = received()
    assert mail["Subject"] == "genai: 80 % of the month's budget is spent - $800 of $1,000"
    assert mail["Message"] == to_text(BUDGET)


def test_the_channel_gets_a_custom_notification_in_its_thread():
    card = json.loads(json.loads(both_versions(BUDGET, thread="budget-2026-03"))["https"])
    assert (card["version"], card["source"]) == ("1.0", "custom")
    assert card["content"]["textType"] == "client-markdown"
    assert card["content"]["title"].endswith(BUDGET.title)
    assert "llama: $700" in card["content"]["description"]
    assert card["content"]["nextSteps"] == list(BUDGET.to_do)
    assert card["metadata"] == {"threadId": "budget-2026-03", "summary": card["content"]["title"]}


def test_a_message_of_one_line_is_enough_for_both():
    versions = json.loads(both_versions(Message("done")))
    assert versions["default"] == "done\n"
    card = json.loads(versions["https"])
    assert card["content"]["description"] == "done"
    assert "metadata" not in card


def test_with_nobody_to_tell_nothing_is_sent():
    assert Notifier(None, None).publish(BUDGET) is None
    assert Notifier(None, "").publish(BUDGET) is None


def test_a_long_title_is_cut_to_what_sns_takes():
    assert subject("x" * 101) == "x" * 97 + "..."
    assert len(subject("word " * 40)) <= 100


@given(st.text(max_size=200))
def test_every_subject_is_one_line_of_printable_ascii(title):
    found = subject(title)
    assert 0 < len(found) <= 100
    assert found.isascii()
    assert found.isprintable()
    assert found == found.strip()


@pytest.mark.parametrize("text", ["x", "ü", "\x00", "\U0001f525", '"\\\n'])
def test_a_message_of_any_size_fits(topic, text):
    sns, arn, received = topic
    long = Message("long", lines=(text * 300_000,), to_do=(text * 9000,) * 100)
    size = len(both_versions(long).encode())
    assert MOST_BYTES - 10 < size <= MOST_BYTES
    Notifier(sns, arn).publish(long)
    assert received()["Message"].endswith("[cut: too long]")


def test_a_channel_is_not_flooded():
    content = chat_card(Message("t" * 400, lines=("x" * 9000,), to_do=("y" * 900,) * 50))["content"]
    assert len(content["title"]) <= 150
    assert len(content["description"]) <= 3000
    assert len(content["nextSteps"]) == 10
    assert max(map(len, content["nextSteps"])) <= 300


def test_a_message_that_fits_is_not_cut():
    message = Message("t", lines=("x" * 200_000,))
    assert json.loads(both_versions(message))["default"] == to_text(message)
