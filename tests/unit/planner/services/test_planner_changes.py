"""Changes of a platform file: made to the file's text, they give the platform that was meant."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from genai_finops.planner.changes import applied, changes, fragment
from genai_finops.planner.layouts import fits
from genai_finops.planner.search import with_model
from genai_finops.spec import parse_platform
from genai_finops.spec.document import read
from tests.platform_files import FILES, platform
from tests.unit.planner.services.service_worlds import scaled


def values_of(name):
    return read(FILES[name].read_text(encoding="utf-8"), name).values


def parsed(document):
    return parse_platform(yaml.safe_dump(document, sort_keys=False))


PLACED = {
    name: [each for each in fits(platform(name).models[index]) if each.fits]
    for name, index in (("default", 0), ("minimal", 0), ("rich", 0))
}


@given(st.sampled_from(sorted(PLACED)), st.data())
@settings(max_examples=60, deadline=None)
def test_changes_made_to_the_file_give_the_platform_that_was_meant(name, data):
    before = platform(name)
    model = data.draw(st.sampled_from(PLACED[name])).model
    counts = {"min_replicas": 1, "max_replicas": data.draw(st.integers(1, 9))}
    model = model.model_copy(
        update={
            "scaling": model.scaling.model_copy(update=counts),
            "spot": data.draw(st.sampled_from(["prefer", "never"])),
            "schedule": data.draw(st.sampled_from([None, platform("rich").models[0].schedule])),
        }
    )
    after = with_model(before, 0, model)
    found = parsed(applied(values_of(name), changes(before, after)))
    assert found.model_dump() == after.model_dump()


def test_without_a_difference_there_is_nothing_to_change():
    assert changes(platform("rich"), platform("rich")) == ()
    assert fragment(platform("rich"), ()) == ""


def test_a_change_says_where_what_stands_there_and_what_shall():
    (change,) = changes(platform("default"), scaled(min_replicas=3))
    assert (change.path, change.old, change.new) == ("models[0].scaling.min_replicas", 1, 3)


def test_what_gets_its_default_back_is_taken_out():
    (change,) = changes(scaled(max_replicas=7), platform("default"))
    assert (change.path, change.old, change.new) == ("models[0].scaling.max_replicas", 7, None)
    document = applied({"models": [{"name": "a", "scaling": {"max_replicas": 7}}]}, [change])
    assert document == {"models": [{"name": "a"}]}


def test_the_file_that_is_changed_stays_as_it_is():
    document = values_of("default")
    again = values_of("default")
    applied(document, changes(platform("default"), scaled(min_replicas=3)))
    assert document == again


def test_a_pool_that_no_model_uses_any_more_goes():
    before = platform("default")
    moved = next(each.model for each in PLACED["default"] if each.instance.family == "g6e")
    paths = {change.path: change.new for change in changes(before, with_model(before, 0, moved))}
    assert paths["node_pools.inf2"] is None
    assert paths["models[0].accelerator.family"] == "g6e"


def test_the_fragment_is_yaml_that_names_the_model_and_what_goes():
    before = platform("default")
    moved = next(each.model for each in PLACED["default"] if each.instance.family == "g6e")
    text = fragment(before, changes(before, with_model(before, 0, moved)))
    assert "# Take out node_pools.inf2." in text
    (model,) = yaml.safe_load(text)["models"]
    assert model["name"] == "llama3-8b"
    assert model["accelerator"]["family"] == "g6e"


def test_platforms_with_other_models_are_refused():
    with pytest.raises(ValueError, match="same models"):
        changes(platform("default"), platform("rich"))
