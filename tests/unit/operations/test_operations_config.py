"""The configuration that the stack bundles: written and read without loss, and refused with every mistake."""

import json
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given

from genai_finops.operations import codec
from genai_finops.operations.budget import Threshold
from genai_finops.operations.codec import ShapeError
from genai_finops.operations.config import OperationsConfig
from genai_finops.operations.facts import keep_report_until, keep_sign_until
from genai_finops.operations.losses import Sign
from genai_finops.operations.windows import ALL_DAY, Schedule, SpecialDays
from tests.unit.operations.worlds import DAY, HOUR, NOW, OFFICE, budget, config, model, report, sign, signs_of

HOLIDAYS = (
    SpecialDays(date(2026, 12, 24), date(2026, 12, 26)),
    SpecialDays(date(2027, 1, 1), date(2027, 1, 1), (ALL_DAY,)),
)
FULL = config(
    model(schedule=Schedule("Europe/Berlin", OFFICE.windows, HOLIDAYS, 20), critical=True),
    model("code", placeholders=2, placeholder_deployment="code-warm", spot="only"),
    budget=budget(Threshold("actual", 80, "cap_replicas", 3), Threshold("forecast", 100), monthly="1500.50"),
)


def changed(change):
    data = json.loads(FULL.to_json())
    change(data)
    return json.dumps(data)


def test_what_is_written_is_read_back():
    assert OperationsConfig.from_json(FULL.to_json()) == FULL
    assert OperationsConfig.from_json(config().to_json()) == config()


def test_the_same_configuration_is_the_same_text():
    assert OperationsConfig.from_json(FULL.to_json()).to_json() == FULL.to_json()


def test_amounts_keep_their_digits():
    assert json.loads(FULL.to_json())["budget"]["monthly_usd"] == "1500.50"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.pop("platform"), "platform is missing"),
        (lambda data: data.update(surprise=1), "surprise is not known; use platform, region"),
        (lambda data: data.update(models={}), "models is {}; use a list"),
        (
            lambda data: data["models"][0].update(min_replicas="1"),
            r"models\[0\].min_replicas is '1'; use a whole number",
        ),
        (lambda data: data["models"][0].update(min_replicas=True), "is True; use a whole number"),
        (lambda data: data["models"][0].update(critical=1), "critical is 1; use true or false"),
        (lambda data: data["models"][0].update(name=None), r"models\[0\].name is None; use a text"),
        (lambda data: data["models"][1].update(spot="maybe"), "is 'maybe'; use one of prefer, only, never"),
        (lambda data: data["models"][0].update(max_replicas=0), r"models\[0\]: chat: replicas from 1 to 0 are none"),
        (lambda data: data["models"][0]["schedule"].update(zone="Mars"), "schedule: 'Mars' is not an IANA time zone"),
        (lambda data: data["budget"].update(monthly_usd=12), "monthly_usd is 12; use a decimal number in quotes"),
        (lambda data: data["budget"].update(monthly_usd="NaN"), "monthly_usd is 'NaN'; use a decimal number"),
        (lambda data: data["budget"].update(monthly_usd="lots"), "monthly_usd is 'lots'; use a decimal number"),
        (lambda data: data["prices"].update(x=3), "prices.x is 3; use an object"),
        (
            lambda data: data["models"][0]["schedule"]["special_days"][0].update(first="Christmas"),
            "first is 'Christmas'; use a date",
        ),
        (lambda data: data["models"].append(data["models"][0]), "The model chat stands twice"),
    ],
)
def test_what_is_wrong_is_named_with_its_path_and_what_is_right(change, message):
    with pytest.raises(ShapeError, match=message):
        OperationsConfig.from_json(changed(change))


def test_all_mistakes_are_told_at_once():
    def spoil(data):
        data["models"][0]["min_replicas"] = "1"
        data["models"][1]["spot"] = "maybe"
        del data["region"]

    with pytest.raises(ShapeError) as caught:
        OperationsConfig.from_json(changed(spoil))
    assert len(str(caught.value).splitlines()) == 3


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "3"])
def test_what_is_no_configuration_is_refused(text):
    with pytest.raises(ShapeError):
        OperationsConfig.from_json(text)


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_replicas": -1},
        {"min_replicas": 3, "max_replicas": 2},
        {"drain_seconds": -1},
        {"sleep_busy_limit_minutes": 1441},
        {"placeholders": 1},
        {"placeholders": -1, "placeholder_deployment": "x"},
    ],
)
def test_a_model_whose_numbers_contradict_each_other_is_refused(wrong):
    with pytest.raises(ValueError, match="chat: "):
        model(**wrong)


@given(signs_of("i-1"))
def test_signs_are_kept_without_loss(one):
    assert codec.decode(Sign, json.loads(json.dumps(codec.encode(one)))) == one


def test_reports_are_kept_without_loss():
    one = report("12.34", forecast_usd=Decimal("99.5"), forecast_source="aws")
    assert codec.decode(type(one), codec.encode(one)) == one


def test_a_time_without_a_zone_is_not_written():
    with pytest.raises(ValueError, match="has no zone"):
        codec.encode(NOW.replace(tzinfo=None))


def test_what_has_no_json_form_is_not_written():
    with pytest.raises(TypeError, match="complex has no JSON form"):
        codec.encode(1j)


def test_facts_are_kept_as_long_as_they_matter():
    given_config = config()
    kept = keep_sign_until(sign(), given_config.breaker, given_config.prewarm)
    assert kept >= NOW + given_config.breaker.memory
    assert keep_report_until(report(1)) > NOW.replace(month=4, day=1, hour=0) - HOUR
    assert keep_report_until(report(1)) < NOW + 40 * DAY
