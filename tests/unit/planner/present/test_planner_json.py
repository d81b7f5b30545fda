"""JSON says what the schema says, with every amount exact and no number that JSON does not have."""

import json
import math
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from genai_finops.planner.present import as_json, schema
from genai_finops.planner.report.page import Report
from tests.platform_files import ROOT
from tests.unit.planner.present import samples

ANSWERS = {
    "compare": samples.comparison,
    "plan": samples.plan,
    "simulate": samples.simulation,
    "diff": samples.difference,
    "calibrate": samples.calibration,
    "report": lambda: Report(samples.simulation(), (samples.comparison(),), samples.sensitivity()),
}


def committed() -> dict:
    return json.loads((ROOT / schema.SCHEMA_FILE).read_text(encoding="utf-8"))


def validator() -> Draft202012Validator:
    return Draft202012Validator(committed())


def test_the_schema_in_the_documentation_is_that_of_the_types():
    assert committed() == json.loads(json.dumps(schema.schema()))


def test_the_schema_is_one():
    Draft202012Validator.check_schema(committed())


def test_every_command_with_an_answer_has_a_schema():
    assert set(schema.ANSWERS) == set(ANSWERS)


@pytest.mark.parametrize("command", ANSWERS)
def test_an_answer_is_valid_by_the_schema_and_by_no_other_commands(command):
    written = json.loads(as_json.render(command, ANSWERS[command]()))
    assert list(validator().iter_errors(written)) == []
    for other in set(ANSWERS) - {command}:
        assert not validator().is_valid({**written, "schema": f"genai-finops/{other}/{as_json.SCHEMA_VERSION}"})


@pytest.mark.parametrize("broken", ["missing", "unknown", "type"])
def test_the_schema_refuses_what_is_not_an_answer(broken):
    written = json.loads(as_json.render("diff", samples.difference()))
    if broken == "missing":
        del written["result"]["lines"]
    elif broken == "unknown":
        written["result"]["other"] = 1
    else:
        written["result"]["before_usd"] = 1405.85
    assert not validator().is_valid(written)


@pytest.mark.parametrize("model", [samples.idle_model, samples.unpriced_model])
def test_nothing_served_and_unknown_prices_have_the_same_form(model):
    text = as_json.render("simulate", samples.simulation(model()))
    assert list(validator().iter_errors(json.loads(text))) == []


def test_what_is_unknown_spreads_and_is_never_zero():
    written = json.loads(as_json.render("simulate", samples.simulation(samples.unpriced_model())))
    assert written["result"]["total_monthly_usd"] is None
    assert written["result"]["models"][0]["nominal"]["monthly"]["busy_usd"] is None


@given(st.decimals(allow_nan=False, allow_infinity=False, places=12, min_value=-(10**12), max_value=10**12))
def test_amounts_stay_exact(amount):
    found = replace(samples.difference(), change_usd=amount)
    written = json.loads(as_json.render("diff", found))
    assert Decimal(written["result"]["change_usd"]) == amount


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_no_number_that_json_does_not_have(value):
    assert as_json.encoded({"x": [value]}) == {"x": [None]}


def test_any_locale_can_hold_it():
    assert as_json.render("diff", replace(samples.difference(), before="π–模型")).isascii()


def test_what_has_no_form_is_refused():
    with pytest.raises(TypeError, match="object has no form"):
        as_json.encoded(object())


def test_the_exit_code_is_in_it():
    assert json.loads(as_json.render("diff", samples.difference()))["exit_code"] == 2
    assert json.loads(as_json.render("compare", samples.comparison()))["exit_code"] == 0
