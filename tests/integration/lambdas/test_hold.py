"""A person says awake or asleep until a time, from a terminal; and takes it back."""

from datetime import timedelta

import pytest

from genai_finops.operations.holds import HOLD
from genai_finops.operations.pauses import PAUSED_REPLICAS
from lambdas import hold
from tests.integration.lambdas.world import NIGHTS, NOW, model
from tests.support.kubernetes_api import Answer


@pytest.fixture
def command(world):
    def command(*arguments):
        return hold.main(arguments, configuration=world.config.to_json(), now=world.clock.now)

    return command


def refusal(command, *arguments):
    with pytest.raises(SystemExit) as refused:
        command(*arguments)
    return str(refused.value)


def test_a_model_is_held_awake_until_a_time_and_not_longer(world, command):
    world.start(models=(model(schedule=NIGHTS),))
    said = command("chat", "2026-03-02T12:00:00+01:00")
    assert said == "chat is held awake until 2026-03-02T11:00:00+00:00; it follows within minutes"
    world.tick()
    assert PAUSED_REPLICAS not in world.annotations()
    world.pass_(hours=1)
    world.tick()
    assert world.annotations()[PAUSED_REPLICAS] == "0"


def test_a_model_is_held_asleep_and_let_go(world, command):
    command("chat", "8h", "--asleep")
    world.tick()
    assert world.annotations()[PAUSED_REPLICAS] == "0"
    assert command("chat", "--release").startswith("chat is no longer held")
    assert HOLD not in world.annotations()
    world.tick()
    assert PAUSED_REPLICAS not in world.annotations()


@pytest.mark.parametrize(
    ("until", "length"), [("90m", timedelta(minutes=90)), ("8h", timedelta(hours=8)), ("2d", timedelta(days=2))]
)
def test_a_length_counts_from_now(world, command, until, length):
    command("chat", until)
    assert world.annotations()[HOLD] == f"awake until {(NOW + length).isoformat()}"


@pytest.mark.parametrize(
    ("until", "said"),
    [
        ("2026-03-02T09:00:00Z", "which is over"),
        ("2026-03-02T18:00:00", "has no zone"),
        ("tomorrow", "is not a time"),
        ("0h", "is not a time"),
        ("", "use a time such as"),
    ],
)
def test_a_time_that_cannot_be_meant_is_refused_and_nothing_changes(world, command, until, said):
    assert said in refusal(command, "chat", until)
    assert world.patches() == []


def test_a_model_of_another_name_is_answered_with_those_there_are(command):
    assert refusal(command, "chatt", "8h") == "demo has no model 'chatt'; its models: chat"


def test_without_a_configuration_it_says_so(world):
    with pytest.raises(SystemExit, match="No configuration of a platform came in"):
        hold.main(["chat", "8h"], configuration="", now=world.clock.now)


def test_a_missing_permission_is_named(world, command):
    world.api.inject(Answer(403), verb="patch")
    assert "the role needs patch on scaledobjects.keda.sh in namespace genai-inference" in refusal(
        command, "chat", "8h"
    )


def test_somebody_else_s_change_at_the_same_time_is_kept(world, command):
    other = {"metadata": {"annotations": {"theirs": "1"}}}
    world.api.before_next_patch(lambda: world.change("scaledobjects", other))
    command("chat", "8h")
    assert set(world.annotations()) == {"theirs", HOLD}


def test_the_same_hold_again_writes_nothing(world, command):
    command("chat", "8h")
    command("chat", "8h")
    assert len(world.patches()) == 1
