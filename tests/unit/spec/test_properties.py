"""What holds for every platform file there could be."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from genai_finops.catalog import families
from genai_finops.spec import Platform, PlatformError, engine, names, placement
from genai_finops.spec.problems import path_of, steps
from genai_finops.spec.schema import json_schema
from genai_finops.spec.wording import annotation_of
from tests import strategies
from tests.unit.spec.files import SMALL, changed

VALIDATOR = Draft202012Validator(json_schema())


def examples(count):
    """So many; the first one also works out which model fits where, which takes a moment."""
    return settings(max_examples=count, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@examples(150)
@given(strategies.documents())
def test_what_is_derived_from_a_valid_file_is_consistent(document):
    platform = strategies.load(document)
    VALIDATOR.validate(document)
    assert all(name.excess <= 0 for name in names.derived(platform))
    for model in platform.models:
        assert_is_placed(model)
        assert_is_told_what_it_can_do(model)


def assert_is_placed(model):
    assert placement.sizes(model)
    assert model.known_shape
    for instance in placement.instances(model):
        assert instance.cores >= model.tensor_parallel_size
        assert placement.memory_need(model, model.known_shape, instance).fits
        replicas = placement.replicas_per_node(model, instance)
        assert replicas >= 1
        assert replicas * placement.devices_per_replica(model, instance) <= instance.devices
        assert replicas * placement.cpu(model) * 1000 <= instance.allocatable_cpu_millis
        assert replicas * placement.memory_gib(model) * 1024 <= instance.allocatable_memory_mib
    assert placement.memory_gib(model) > model.resources.shared_memory_gib


def assert_is_told_what_it_can_do(model):
    arguments = engine.serve_arguments(model)
    flags = [argument for argument in arguments if argument.startswith("--")]
    assert len(flags) == len(set(flags))
    assert all(isinstance(argument, str) for argument in arguments)
    if model.is_neuron:
        for buckets in (engine.context_encoding_buckets(model), engine.token_generation_buckets(model)):
            assert list(buckets) == sorted(set(buckets))
            assert buckets[-1] == model.engine.max_model_len


@examples(120)
@given(strategies.invalid_platforms())
def test_one_mistake_is_refused_at_its_path(invalid):
    document, path = invalid
    with pytest.raises(PlatformError) as caught:
        strategies.load(document)
    assert path in {problem.path for problem in caught.value.problems}
    assert_can_be_acted_on(caught.value, document)


@pytest.mark.parametrize("mistake", sorted(strategies.MISTAKES))
def test_each_mistake_alone_is_said_once(mistake):
    document = changed()
    expected = strategies.MISTAKES[mistake](document)
    expected = strategies._REFUSED_DEEPER.get(mistake, expected)
    with pytest.raises(PlatformError) as caught:
        strategies.load(document)
    at_path = [problem for problem in caught.value.problems if problem.path == expected]
    assert len(at_path) == 1


def test_the_strategy_covers_every_family_and_vendor():
    for family, instances in families().items():
        layouts = strategies._layouts(family)
        assert layouts
        assert {size for layout in layouts for size in layout.sizes} == {instance.size for instance in instances}


ANYTHING = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1,
        10**9,
        10**30,
        0.5,
        float("nan"),
        float("inf"),
        "",
        "x",
        "8",
        "a\nb",
        [],
        [1],
        ["x"],
        {},
        {"x": 1},
    ]
).map(deepcopy)


@st.composite
def mutilated(draw: st.DrawFn) -> Any:
    """A valid document in which keys are deleted, added, or have other values."""
    document = deepcopy(draw(strategies.documents(most_models=2) | st.just(dict(SMALL))))
    for _ in range(draw(st.integers(1, 3))):
        location = draw(st.sampled_from(list(_locations(document)) or [()]))
        if not location:
            continue
        parent = document
        for part in location[:-1]:
            parent = parent[part]
        match draw(st.sampled_from(["delete", "replace", "add"])):
            case "delete":
                del parent[location[-1]]
            case "replace":
                parent[location[-1]] = draw(ANYTHING)
            case "add" if isinstance(parent, dict):
                parent[draw(st.sampled_from(["nonsense", "nam", "a.b", "[0]", "1", "name", "engine"]))] = draw(ANYTHING)
            case _:
                parent.append(draw(ANYTHING))
    return document


def _locations(node, location=()):
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for part, child in children:
        yield (*location, part)
        yield from _locations(child, (*location, part))


@examples(300)
@given(mutilated())
def test_a_mutilated_file_is_a_platform_or_refused_in_words(document):
    try:
        assert isinstance(strategies.load(document), Platform)
    except PlatformError as error:
        assert_can_be_acted_on(error, document)


def assert_can_be_acted_on(error, document):
    assert error.problems
    for problem in error.problems:
        assert problem.found
        assert problem.fix.strip().endswith((".", ")", "].")), problem
        assert not any(
            word in problem.render("f") for word in ("Input should", "pydantic", "Traceback", "tuple", "dict")
        )
        assert (not document and not problem.path) or is_real(problem.path, document), problem
    assert len({(problem.path, problem.found, problem.why) for problem in error.problems}) == len(error.problems)


def is_real(path, document):
    """Whether a path is in the document, or is a setting that the document could have."""
    location = steps(path)
    assert path_of(location) == path
    if annotation_of(location) is not None:
        return True
    node = document
    for part in location:
        try:
            node = node[part]
        except (KeyError, IndexError, TypeError):
            return False
    return True


@examples(50)
@given(st.lists(st.integers(0, 99) | st.text(max_size=5), min_size=1, max_size=4))
def test_a_path_can_be_read_back(location):
    if isinstance(location[0], str):
        assert steps(path_of(location)) == location
