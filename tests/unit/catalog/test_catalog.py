"""The catalog: every fact is sane, and the facts that decisions rest on are pinned with their source."""

import csv
import os
from collections import Counter
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from genai_finops import catalog
from genai_finops.catalog import _files
from genai_finops.catalog.instances import GIB
from genai_finops.spec import parse_platform, placement
from tests.platform_files import ROOT
from tests.unit.spec.files import changed, text_of

SHARED_DATA = Path(os.environ.get("GENAI_FINOPS_SHARED_DATA", ROOT.parent / "shared" / "data"))
SHARED_INSTANCES = SHARED_DATA / "instances_us_east_1.csv"

INSTANCES = [pytest.param(instance, id=name) for name, instance in catalog.instance_types().items()]
SHAPES = [pytest.param(shape, id=shape.name) for shape in catalog.model_shapes()]
PRICES = sorted(_files.document("prices.yaml")["prices"])


class TestInstanceTypes:
    @pytest.mark.parametrize("instance", INSTANCES)
    def test_what_pods_get_is_less_than_what_there_is(self, instance):
        assert 0 < instance.allocatable_cpu_millis < instance.vcpu * 1000
        assert 0 < instance.allocatable_memory_mib < instance.memory_mib

    @pytest.mark.parametrize("instance", INSTANCES)
    def test_the_system_pods_leave_room_for_a_model(self, instance):
        assert sum(pod.cpu_millis for pod in catalog.system_pods()) < instance.allocatable_cpu_millis / 2
        assert sum(pod.memory_mib for pod in catalog.system_pods()) < instance.allocatable_memory_mib / 2

    @pytest.mark.parametrize("instance", INSTANCES)
    def test_prices_are_positive_and_spot_is_cheaper(self, instance):
        on_demand, spot = instance.on_demand_usd_hour, instance.spot_usd_hour
        assert on_demand is None or on_demand > 0
        assert spot is None or (on_demand is not None and 0 < spot < on_demand)

    @pytest.mark.parametrize("instance", INSTANCES)
    def test_an_accelerator_has_devices_cores_and_memory(self, instance):
        if instance.accelerator is None:
            assert (instance.devices, instance.cores) == (0, 0)
            return
        assert instance.devices >= 1
        assert instance.cores == instance.devices * instance.accelerator.cores
        assert instance.accelerator.core_memory_bytes * instance.accelerator.cores == instance.accelerator.memory_bytes
        assert 12 * GIB <= instance.accelerator.core_memory_bytes <= 80 * GIB

    @pytest.mark.parametrize("instance", INSTANCES)
    def test_a_name_is_a_family_and_a_size(self, instance):
        assert f"{instance.family}.{instance.size}" == instance.name
        assert catalog.instance_type(instance.name) is instance

    def test_rows_are_not_repeated(self):
        lines = [line for line in _files.text("instances.csv").splitlines() if not line.startswith("#")]
        assert not [name for name, count in Counter(line.split(",")[0] for line in lines).items() if count > 1]

    def test_the_hardware_of_one_accelerator_is_the_same_everywhere(self):
        by_name: dict[str, set[catalog.Accelerator]] = {}
        for instance in catalog.instance_types().values():
            if instance.accelerator and instance.accelerator.name != "a100":  # 40 GB and 80 GB
                by_name.setdefault(instance.accelerator.name, set()).add(instance.accelerator)
        assert {name: len(kinds) for name, kinds in by_name.items()} == dict.fromkeys(by_name, 1)

    def test_an_unknown_type_is_a_key_error(self):
        with pytest.raises(KeyError, match=r"inf9\.xlarge"):
            catalog.instance_type("inf9.xlarge")

    def test_families_are_those_with_accelerators_from_the_smallest_size_up(self):
        assert set(catalog.families()) == {"inf2", "trn1", "trn1n", "trn2", "g5", "g6", "g6e", "p4d", "p4de", "p5"}
        for family, instances in catalog.families().items():
            assert {instance.family for instance in instances} == {family}
            assert [(i.devices, i.vcpu) for i in instances] == sorted((i.devices, i.vcpu) for i in instances)
        assert [i.size for i in catalog.families()["inf2"]] == ["xlarge", "8xlarge", "24xlarge", "48xlarge"]

    def test_facts_cannot_be_changed_by_who_reads_them(self):
        with pytest.raises(TypeError):
            catalog.instance_types()["x"] = None
        with pytest.raises(AttributeError):
            catalog.instance_type("inf2.xlarge").vcpu = 8

    @pytest.mark.skipif(not SHARED_INSTANCES.exists(), reason=f"there is no {SHARED_INSTANCES}")
    def test_the_table_is_the_published_one(self):
        ours = [line for line in _files.text("instances.csv").splitlines() if not line.startswith("#")]
        with SHARED_INSTANCES.open(encoding="utf-8", newline="") as file:
            published = list(csv.DictReader(file))
        assert list(csv.DictReader(ours)) == published


class TestWhatDecisionsRestOn:
    def test_an_inf2_8xlarge_has_one_device_with_two_cores_and_32_gib(self):
        """The article says 4 NeuronCores and asks for 2 devices (article-corrections.md, rows 8 and 17)."""
        instance = catalog.instance_type("inf2.8xlarge")
        assert (instance.devices, instance.cores) == (1, 2)
        assert instance.accelerator.memory_bytes == 32 * GIB
        assert instance.accelerator.core_memory_bytes == 16 * GIB

    def test_384_is_the_gib_of_hbm_of_an_inf2_48xlarge(self):
        """The article calls it the TFLOPS of an 8xlarge (article-corrections.md, row 17)."""
        instance = catalog.instance_type("inf2.48xlarge")
        assert instance.devices * instance.accelerator.memory_bytes == 384 * GIB

    def test_an_inf2_xlarge_is_the_same_accelerator_at_39_percent_of_the_price(self):
        """platform-facts.md: the largest single cost lever."""
        small, large = catalog.instance_type("inf2.xlarge"), catalog.instance_type("inf2.8xlarge")
        assert (small.accelerator, small.devices) == (large.accelerator, large.devices)
        assert round(small.on_demand_usd_hour / large.on_demand_usd_hour, 2) == Decimal("0.39")

    def test_the_articles_hourly_saving_is_65_percent_and_not_47(self):
        """1 - 1.968 / 5.672, inf2.8xlarge against g5.12xlarge (article-corrections.md, row 16)."""
        inf2, g5 = catalog.instance_type("inf2.8xlarge"), catalog.instance_type("g5.12xlarge")
        assert round(1 - inf2.on_demand_usd_hour / g5.on_demand_usd_hour, 3) == Decimal("0.653")

    def test_llama_3_8b_has_16_gb_of_weights_and_128_kib_of_kv_cache_per_token(self):
        """2 x 32 layers x 8 KV heads x 128 x 2 bytes (platform-facts.md)."""
        shape = catalog.model_shape("meta-llama/Meta-Llama-3-8B-Instruct")
        assert round(shape.weight_bytes(2) / 1e9, 1) == 16.1
        assert shape.key_value_bytes_per_token(2) == 128 * 1024

    @pytest.mark.parametrize(("quantization", "published"), [(None, 3), ("int8", 4)])
    def test_published_points_fit_the_memory_that_we_compute(self, quantization, published):
        """AWS Neuron: Llama-3-8B at TP2 and 8,192 tokens, 3 sequences in bf16, 4 with int8 (platform-facts.md)."""
        engine = {"max_model_len": 8192, "max_num_seqs": published}
        if quantization:
            engine["quantization"] = quantization
        model = parse_platform(text_of(changed({"models[0].engine": engine}))).models[0]
        assert placement.memory_need(model, model.known_shape, catalog.instance_type("inf2.8xlarge")).fits


class TestModelShapes:
    @pytest.mark.parametrize("shape", SHAPES)
    def test_is_one_that_a_model_can_have(self, shape):
        assert shape.attention_heads % shape.key_value_heads == 0
        hidden = shape.attention_heads * shape.head_dimension
        query_and_output = 2 * shape.layers * hidden * hidden
        assert query_and_output < shape.parameters
        assert shape.max_position_embeddings >= 4096

    @pytest.mark.parametrize("shape", SHAPES)
    def test_is_found_by_each_of_its_repositories(self, shape):
        assert shape.repositories
        assert all(catalog.model_shape(repository) is shape for repository in shape.repositories)

    @pytest.mark.parametrize("shape", SHAPES)
    def test_has_the_billions_of_parameters_that_its_name_says(self, shape):
        billions = float(shape.name.split("-")[-1 if shape.name[-1] == "B" else 1].rstrip("B"))
        assert shape.parameters / 1e9 == pytest.approx(billions, rel=0.25)

    def test_names_and_repositories_are_unique(self):
        shapes = catalog.model_shapes()
        assert len({shape.name for shape in shapes}) == len(shapes)
        repositories = [repository for shape in shapes for repository in shape.repositories]
        assert len(set(repositories)) == len(repositories)

    def test_an_unknown_repository_has_none(self):
        assert catalog.model_shape("example/unknown") is None
        assert catalog.model_shape("") is None


class TestPrices:
    @pytest.mark.parametrize("name", PRICES)
    def test_has_a_source_a_day_and_a_region(self, name):
        price = catalog.price(name)
        assert price.usd > 0
        assert price.unit
        assert price.source
        assert price.region == "us-east-1"
        assert date(2026, 1, 1) <= price.checked <= date(2026, 12, 1)

    def test_extended_support_costs_six_times_as_much(self):
        """$0.60 instead of $0.10 per cluster-hour (platform-facts.md)."""
        standard, extended = catalog.price("eks_cluster_hour"), catalog.price("eks_cluster_hour_extended_support")
        assert (standard.usd, extended.usd) == (Decimal("0.10"), Decimal("0.60"))

    @pytest.mark.parametrize("purchase", ["spot", "on-demand"])
    def test_the_price_of_an_instance_has_a_source_and_a_day(self, purchase):
        price = catalog.instance_price(catalog.instance_type("inf2.8xlarge"), purchase)
        assert price.usd > 0
        assert price.source
        assert isinstance(price.checked, date)

    def test_a_price_that_is_not_known_is_none(self):
        assert catalog.instance_price(catalog.instance_type("trn2.48xlarge"), "on-demand") is None

    def test_an_unknown_price_is_a_key_error(self):
        with pytest.raises(KeyError, match="moon"):
            catalog.price("moon")


class TestRegionsAndVersions:
    @pytest.mark.parametrize("region", catalog.regions())
    def test_a_region_has_at_least_three_zones_of_its_own_name(self, region):
        zones = catalog.zones(region)
        assert len(set(zones)) == len(zones) >= 3
        assert all(zone[:-1] == region and zone[-1] in "abcdef" for zone in zones)

    def test_a_zone_that_takes_no_new_subnets_is_left_out(self):
        assert "ap-northeast-1b" not in catalog.zones("ap-northeast-1")

    def test_an_unknown_region_is_a_key_error(self):
        with pytest.raises(KeyError, match="mars-1"):
            catalog.zones("mars-1")

    def test_the_ends_of_standard_support_are_those_of_eks(self):
        """platform-facts.md: 1.34 ends 2026-12-02, 1.35 2027-03-27, 1.36 2027-08-02."""
        ends = {version: catalog.end_of_standard_support(version) for version in catalog.kubernetes_versions()}
        assert ends == {"1.34": date(2026, 12, 2), "1.35": date(2027, 3, 27), "1.36": date(2027, 8, 2)}

    def test_an_unknown_version_is_a_key_error(self):
        with pytest.raises(KeyError, match=r"1\.20"):
            catalog.end_of_standard_support("1.20")


@pytest.mark.parametrize(
    "name", ["instances.csv", "models.yaml", "prices.yaml", "regions.yaml", "kubernetes.yaml", "system_pods.yaml"]
)
def test_every_file_of_data_says_where_it_is_from_and_when_it_was_collected(name):
    comments = "\n".join(line for line in _files.text(name).splitlines() if line.startswith("#"))
    assert "Source" in comments
    assert "202" in comments
