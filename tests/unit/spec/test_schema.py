"""What is written from the types: the JSON schema for editors, the reference for people."""

import json
import re

import pytest
import yaml
from jsonschema import Draft202012Validator

from genai_finops.spec import schema
from genai_finops.spec.forms import FORMS
from genai_finops.spec.wording import annotation_of, field_of, is_section, words
from tests.platform_files import FILES, ROOT
from tests.unit.spec.files import changed

VALIDATOR = Draft202012Validator(schema.json_schema())


def test_the_schema_in_the_repository_is_current():
    assert (ROOT / schema.SCHEMA_FILE).read_text(encoding="utf-8") == schema.render(), "run `make schema`"


def test_the_reference_in_the_repository_is_current():
    assert (ROOT / schema.REFERENCE_FILE).read_text(encoding="utf-8") == schema.reference(), "run `make schema`"


def test_the_schema_is_one():
    Draft202012Validator.check_schema(schema.json_schema())


@pytest.mark.parametrize("name", FILES)
def test_an_editor_accepts_what_is_valid(name):
    VALIDATOR.validate(yaml.safe_load(FILES[name].read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "changes",
    [
        {"nonsense": 1},
        {"models[0].engine.nonsense": 1},
        {"cluster.version": 1.35},
        {"name": "Demo"},
        {"zones": ["us-east-1a"]},
        {"models": []},
        {"models[0].spot": "maybe"},
        {"models[0].probes.startup_seconds": 5},
        {"budget": {"monthly_usd": 0}},
        {"budget": {}},
    ],
    ids=str,
)
def test_an_editor_marks_what_is_wrong(changes):
    assert not VALIDATOR.is_valid(changed(changes))


def settings(location=()):
    """The location of every setting."""
    for name in annotation_of(location).model_fields:
        here = (*location, name)
        yield here
        for below in (here, (*here, 0), (*here, "any")):
            if is_section(annotation_of(below)):
                yield from settings(below)


@pytest.mark.parametrize("location", list(settings()), ids=str)
def test_every_setting_says_what_it_means_and_what_it_may_be(location):
    field = field_of(location)
    inner = next((at for at in (location, (*location, 0), (*location, "any")) if is_section(annotation_of(at))), None)
    assert field.description or annotation_of(inner).__doc__
    assert words(location)


def test_every_setting_is_in_the_reference():
    reference = schema.reference()
    assert all(f"| `{location[-1]}` | " in reference for location in settings())


def test_links_within_the_reference_lead_somewhere():
    reference = schema.reference()
    anchors = {re.sub(r"[^a-z0-9_-]", "", heading.lower()) for heading in re.findall(r"^## `(.*)`$", reference, re.M)}
    assert set(re.findall(r"\(#(.*?)\)", reference)) == anchors


def test_the_smallest_file_of_the_reference_is_the_tested_one():
    assert FILES["minimal"].read_text(encoding="utf-8") == schema.SMALLEST


def test_every_pattern_has_words_and_an_example_of_its_own():
    patterns = set(re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', schema.render()))
    ours = {json.loads(pattern) for pattern in patterns} & set(FORMS)
    assert ours == set(FORMS)
    for form in FORMS.values():
        assert re.fullmatch(form.pattern, form.example)
        assert not re.fullmatch(form.pattern, f"{form.example}\nx")
