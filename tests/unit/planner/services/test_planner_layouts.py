"""Ways to place a model: each is one the platform file takes, or says why it is not."""

import pytest

from genai_finops.catalog import families, instance_type
from genai_finops.planner.layouts import fits, placed
from genai_finops.planner.search import with_model
from genai_finops.spec import checks, placement
from genai_finops.spec.model import Compile, Shape
from tests.platform_files import platform

MODEL = platform("default").models[0]


def test_every_family_of_the_catalog_is_looked_at():
    assert {each.instance.family for each in fits(MODEL)} == set(families())


@pytest.mark.parametrize("name", ["default", "minimal", "rich"])
def test_what_fits_passes_every_check_of_the_file(name):
    of = platform(name)
    for index, model in enumerate(of.models):
        for each in fits(model):
            if each.fits:
                pools = with_model(of, index, each.model)
                found = [problem for problem in checks.problems(pools) if problem.path.startswith(f"models[{index}]")]
                assert found == []
                assert each.replicas_per_node == placement.replicas_per_node(each.model, each.instance) > 0


def test_what_does_not_fit_has_a_reason_and_takes_no_replica():
    found = [each for each in fits(MODEL) if not each.fits]
    assert found
    assert all(each.reason and each.replicas_per_node == 0 for each in found)


def test_heads_that_a_split_does_not_divide_are_not_tried():
    seven = MODEL.model_copy(
        update={
            "shape": Shape(
                parameters=7_615_616_512, layers=28, attention_heads=28, key_value_heads=4, head_dimension=128,
                max_position_embeddings=32768,
            )
        }
    )  # fmt: skip
    assert {each.tensor_parallel_size for each in fits(seven)} == {1, 2, 4}


def test_from_one_vendor_to_the_other_settings_that_mean_nothing_there_go():
    engine = placed(MODEL, instance_type("g6e.xlarge"), 1).engine
    assert engine.buckets.context_encoding == ()
    assert engine.max_num_seqs is None
    assert engine.max_model_len == MODEL.engine.max_model_len


def test_where_graphs_are_compiled_is_a_size_of_the_family_and_goes_with_it():
    model = MODEL.model_copy(update={"compile": Compile(size="24xlarge")})
    assert placed(model, instance_type("inf2.48xlarge"), 4).compile.size == "24xlarge"
    assert placed(model, instance_type("trn1.2xlarge"), 2).compile.size is None
