"""A function that was deployed wrongly says at once what is wrong, all of it."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from lambdas.adapters.settings import Settings, SettingsError

CONFIG = Path(__file__)

COMPLETE = {
    "FACTS_TABLE": "genai-facts",
    "ALERTS_TOPIC_ARN": "arn:aws:sns:us-east-1:123456789012:genai-alerts",
    "CLUSTER_NAME": "genai",
    "AWS_REGION": "us-east-1",
    "PLATFORM_CONFIG": str(CONFIG),
    "MODEL_NAMESPACE": "genai-inference",
    "PATH": "/usr/bin",
}


def without(*names):
    return {name: value for name, value in COMPLETE.items() if name not in names}


def test_settings_come_from_the_environment():
    settings = Settings.of(COMPLETE)
    assert settings.facts_table == "genai-facts"
    assert settings.alerts_topic_arn == COMPLETE["ALERTS_TOPIC_ARN"]
    assert settings.platform_config == CONFIG


def test_they_do_not_change():
    with pytest.raises(ValidationError):
        Settings.of(COMPLETE).region = "eu-west-1"


@pytest.mark.parametrize("environment", [without("ALERTS_TOPIC_ARN"), COMPLETE | {"ALERTS_TOPIC_ARN": ""}])
def test_there_may_be_nobody_to_notify(environment):
    assert Settings.of(environment).alerts_topic_arn is None


def test_every_variable_that_is_missing_is_named_at_once():
    with pytest.raises(SettingsError) as refused:
        Settings.of(without("FACTS_TABLE", "CLUSTER_NAME", "AWS_REGION"))
    assert str(refused.value).splitlines()[1:] == [
        "  FACTS_TABLE is missing",
        "  CLUSTER_NAME is missing",
        "  AWS_REGION is missing",
    ]


@pytest.mark.parametrize("name", ["FACTS_TABLE", "CLUSTER_NAME", "AWS_REGION", "MODEL_NAMESPACE", "PLATFORM_CONFIG"])
@pytest.mark.parametrize("value", ["", "  "])
def test_an_empty_variable_is_as_bad_as_none(name, value):
    with pytest.raises(SettingsError, match=name):
        Settings.of(COMPLETE | {name: value})


def test_a_configuration_that_is_not_in_the_bundle_is_missed_at_once():
    with pytest.raises(SettingsError, match=r"PLATFORM_CONFIG is 'elsewhere\.json': Path does not point to a file"):
        Settings.of(COMPLETE | {"PLATFORM_CONFIG": "elsewhere.json"})


def test_a_topic_that_is_none_is_shown():
    with pytest.raises(SettingsError, match="ALERTS_TOPIC_ARN is 'genai-alerts'"):
        Settings.of(COMPLETE | {"ALERTS_TOPIC_ARN": "genai-alerts"})
