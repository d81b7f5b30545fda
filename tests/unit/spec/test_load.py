"""Reading a file: every mistake at once, in the order of the file, and never a traceback."""

import time
import tracemalloc
from pathlib import Path

import pytest

from genai_finops.spec import PlatformError, load_platform, parse_platform
from genai_finops.spec.problems import steps
from tests.platform_files import FILES, ROOT
from tests.unit.spec.files import SMALL, accepted, changed, only, problems_in, refused, text_of

SMALL_TEXT = text_of(SMALL)

HANGS = 10
"""Seconds after which a user would think that it hangs; all of this takes less than one on an idle core."""


def told(text):
    """What is said of the file as a whole."""
    return only(problems_in(text))


class TestAFileThatIsNone:
    def test_a_missing_file_names_itself_and_the_way_to_name_another(self, tmp_path):
        with pytest.raises(PlatformError) as caught:
            load_platform(tmp_path / "none.yaml")
        assert str(caught.value) == (
            f"{tmp_path}/none.yaml does not exist\n"
            "  Give another file with PLATFORM=<file>, or write this one.\n\n"
            f"1 problem in {tmp_path}/none.yaml; nothing was written."
        )

    def test_a_directory_cannot_be_read(self, tmp_path):
        with pytest.raises(PlatformError, match="Is a directory"):
            load_platform(tmp_path)

    @pytest.mark.parametrize("content", [b"name: d\xe4mo", "name: demo".encode("utf-16"), b"\x89PNG\r\n\x1a\n"])
    def test_a_file_that_is_not_utf_8_says_so(self, tmp_path, content):
        file = tmp_path / "platform.yaml"
        file.write_bytes(content)
        with pytest.raises(PlatformError, match="Save it as UTF-8"):
            load_platform(file)

    def test_a_byte_order_mark_does_no_harm(self, tmp_path):
        file = tmp_path / "platform.yaml"
        file.write_text(SMALL_TEXT, encoding="utf-8-sig")
        assert load_platform(file).name == "demo"

    def test_windows_line_ends_do_no_harm(self):
        assert parse_platform(SMALL_TEXT.replace("\n", "\r\n")).name == "demo"

    @pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n", "null", "{}"])
    def test_an_empty_file_is_told_where_to_start(self, text):
        problem = told(text)
        assert problem.found == "has no settings"
        assert problem.fix == "Start with name, region, zones and models; see docs/platform.md."

    def test_a_list_at_the_top_is_not_a_platform(self):
        assert told("- name: demo\n").found == "is a list"

    @pytest.mark.parametrize("text", ["demo", "5", "true", '"name: demo"'])
    def test_a_single_value_is_not_a_platform(self, text):
        assert told(text).found == "is a single value"


class TestYaml:
    def test_a_mistake_in_the_syntax_is_told_with_its_line(self):
        problem = told("name: demo\nzones: [a, b\nregion: x\n")
        assert problem.found.startswith("is not valid YAML at line 3")

    def test_a_tab_is_called_a_tab(self):
        problem = told("name: demo\nnetwork:\n\tcidr: 10.0.0.0/16\n")
        assert problem.found == "is not valid YAML at line 3, column 1"
        assert (problem.why, problem.fix) == ("There is a tab.", "Indent with spaces.")

    def test_a_control_character_is_told_with_its_line(self):
        problem = told("name: demo\nregion: \x00\n")
        assert (problem.found, problem.why) == ("is not valid YAML at line 2", "It has the control character #x0000.")

    @pytest.mark.parametrize(
        "text",
        [
            "region: a\nregion: b\n",
            "models:\n  - name: a\n    name: b\n",
            "tags: {a: 1, 'a': 2}",
            "a: {x: {y: 1, y: 1}}",
        ],
    )
    def test_a_key_given_twice_would_lose_its_first_value(self, text):
        assert "is given twice" in told(text).why

    def test_two_documents_in_one_file_are_refused(self):
        assert "another document" in told(SMALL_TEXT + "---\n" + SMALL_TEXT).why

    @pytest.mark.parametrize(
        "value",
        ["!!python/object/apply:os.system [id]", "!!set {a}", "!!timestamp 2026-01-01", "!!binary aGk=", "!mine x"],
    )
    def test_tags_that_make_objects_are_refused(self, value):
        assert "tag" in told(f"name: {value}\n").why

    @pytest.mark.parametrize("value", ["!!int x", "!!bool perhaps", "!!float x", "!!int '1:2x'"])
    def test_a_tag_that_its_value_does_not_fit_is_refused(self, value):
        assert told(f"name: {value}\n").fix == "Leave such tags out."

    def test_a_key_is_a_text(self):
        assert "key must be a text" in told("? [a, b]\n: c\n").why

    def test_half_a_character_is_refused(self):
        assert "not a character" in told('name: "\\ud800"\n').why

    def test_anchors_and_merge_keys_work(self):
        text = """
name: demo
region: us-east-1
zones: [us-east-1a, us-east-1b]
models:
  - &first
    name: one
    source: hf://Qwen/Qwen3-8B
    revision: 0123456789abcdef0123456789abcdef01234567
    accelerator: &chips {family: inf2, sizes: [8xlarge]}
    engine: {max_num_seqs: 4}
  - <<: *first
    name: two
    accelerator: {<<: *chips, sizes: [24xlarge]}
"""
        first, second = parse_platform(text).models
        assert (second.name, second.source, second.engine) == ("two", first.source, first.engine)
        assert (second.accelerator.family, second.accelerator.sizes) == ("inf2", ("24xlarge",))

    def test_a_merged_section_may_be_merged_again_before_and_after(self):
        """PyYAML unfolds merge keys in place, and then sees its own work as repeated keys."""
        text = SMALL_TEXT + (
            "  engine: &a {max_num_seqs: 4, max_model_len: 2048}\n"
            "  scaling: &b {min_replicas: 1, <<: {max_replicas: 2}, scale_up: &c {<<: {percent: 1}, percent: 2}}\n"
            "- <<: {source: 'hf://Qwen/Qwen3-8B'}\n"
            "  name: two\n"
            "  revision: '0123456789abcdef0123456789abcdef01234567'\n"
            "  accelerator: {family: inf2}\n"
            "  engine: {<<: *a, max_model_len: 1024}\n"
            "  scaling: {<<: *b, scale_up: {<<: *c}}\n"
        )
        one, two = parse_platform(text).models
        assert (two.engine.max_num_seqs, two.engine.max_model_len) == (4, 1024)
        assert one.scaling == two.scaling

    def test_a_value_within_itself_is_refused(self):
        assert "contains itself" in told("models: &m [*m]\n").why
        assert "contains itself" in told("engine: &e {neuron_config: {x: *e}}\n").why

    @pytest.mark.parametrize("depth", [100, 1000, 50_000])
    @pytest.mark.parametrize("bracket", ["[", "{a: "])
    def test_deep_nesting_does_not_hang_or_overflow(self, depth, bracket):
        began = time.perf_counter()
        assert problems_in(SMALL_TEXT + "tags: " + bracket * depth)
        assert time.perf_counter() - began < HANGS

    @pytest.mark.parametrize(
        "line",
        ["l{n}: &l{n} [{refs}]", "l{n}: &l{n} {{a: [{refs}]}}", "l{n}: &l{n} {{<<: [{refs}]}}"],
        ids=["lists", "mappings", "merge keys"],
    )
    def test_a_file_that_unfolds_to_billions_of_values_is_refused_at_once(self, line):
        lines = ["l0: &l0 {x: y}"]
        lines += [line.format(n=n, refs=", ".join([f"*l{n - 1}"] * 10)) for n in range(1, 20)]
        tracemalloc.start()
        began = time.perf_counter()
        problem = told("\n".join(lines))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert "unfold to more than" in problem.why
        assert time.perf_counter() - began < HANGS
        assert peak < 50 * 2**20


class TestValuesThatYamlReadsAsSomethingElse:
    @pytest.mark.parametrize(
        ("written", "found"),
        [
            ("1.35", "is the number 1.35"),
            ("1.30", "is the number 1.30"),
            ("2", "is the number 2"),
            ("1e3", "is the number 1e3"),
        ],
    )
    def test_a_version_without_quotes_is_shown_as_it_is_written(self, written, found):
        problem = told(SMALL_TEXT + f"cluster: {{version: {written}}}\n")
        assert (problem.path, problem.found) == ("cluster.version", found)
        assert problem.fix == f'Write it in quotes: "{written}".'

    @pytest.mark.parametrize(
        "word", ["on", "off", "yes", "no", "y", "n", "NO", "22:00", "2026-01-01", "0123", "0x1F", "1_000", "007"]
    )
    def test_words_that_yaml_used_to_turn_into_something_else_are_texts(self, word):
        platform = parse_platform(SMALL_TEXT + f"tags: {{{word}: {word}}}\n")
        assert platform.tags == {word: word}

    def test_a_time_needs_no_quotes(self):
        text = SMALL_TEXT + "  schedule: {time_zone: UTC, awake: [{days: Mon, start: 10:00, end: 22:30}]}\n"
        assert parse_platform(text).models[0].schedule.awake[0].window().length_minutes == 750

    @pytest.mark.parametrize("value", ["on", "yes", '"true"', "1", "True false"])
    def test_only_true_and_false_are_switches(self, value):
        problem = told(SMALL_TEXT + f"termination_protection: {value}\n")
        assert (problem.path, problem.why) == ("termination_protection", "It must be true or false.")

    @pytest.mark.parametrize("value", ["true", "false", "True", "FALSE"])
    def test_a_switch_may_be_written_in_capitals(self, value):
        platform = parse_platform(SMALL_TEXT + f"termination_protection: {value}\n")
        assert platform.termination_protection is (value.lower() == "true")

    @pytest.mark.parametrize(
        "value", ['"2"', "true", "2.5", "2.0", "two", "[2]", "{two: 2}", ".inf", "1" * 30, "1" * 5000]
    )
    def test_a_count_is_a_whole_number(self, value):
        problem = told(SMALL_TEXT + f"  scaling: {{max_replicas: {value}}}\n")
        assert problem.path == "models[0].scaling.max_replicas"
        assert problem.why == "It must be a whole number from 1 to 10,000."
        assert "Left out, it is 10." in problem.fix
        assert len(problem.found) < 120

    def test_a_commit_of_digits_only_needs_no_quotes(self):
        digits = "1234567890" * 4
        text = SMALL_TEXT.replace(SMALL["models"][0]["revision"], digits)
        assert parse_platform(text).models[0].revision == digits

    def test_letters_of_any_language_are_texts(self):
        platform = parse_platform(SMALL_TEXT + "tags: {Größe: 大きい, emoji: x}\n")
        assert platform.tags == {"Größe": "大きい", "emoji": "x"}


class TestEmptySections:
    def test_no_models_is_not_a_platform(self):
        for text in ("models:", "models: []", "models: {}"):
            problem = only(problems_in(text_of({**SMALL, "models": []}).replace("models: []", text)))
            assert problem.path == "models"
            assert "At least one" in problem.fix or "each entry a section" in problem.why

    @pytest.mark.parametrize("section", ["network", "cluster", "gateway", "monitoring", "tags", "node_pools"])
    def test_a_section_without_settings_is_pointed_at(self, section):
        problem = told(SMALL_TEXT + f"{section}:\n")
        assert (problem.path, problem.found) == (section, "is empty")
        assert problem.fix.endswith("Or leave it out.")

    def test_an_empty_value_of_a_mapping_is_pointed_at(self):
        problem = only(refused({"tags": {"team": None}}))
        assert (problem.path, problem.found, problem.fix) == ("tags.team", "is empty", "Give a text.")

    def test_an_empty_budget_is_no_budget(self):
        assert parse_platform(SMALL_TEXT + "budget:\n").budget is None

    def test_an_empty_section_of_a_model_hides_no_other_mistake(self):
        problems = refused({"models[0].engine": None, "models[0].drain_seconds": 300})
        assert [problem.path for problem in problems] == ["models[0].engine", "models[0].drain_seconds"]


class TestUnknownSettings:
    @pytest.mark.parametrize(
        ("path", "meant"),
        [
            ("regoin", "region"),
            ("Network", "network"),
            ("cluster.versoin", "version"),
            ("models[0].sourse", "source"),
            ("models[0].engine.max_model_length", "max_model_len"),
            ("models[0].scaling.scale_up.percentage", "percent"),
            ("node_pools.inf2.volume.throughput", "throughput_mib_s"),
            ("budget.monthly_us", "monthly_usd"),
        ],
    )
    def test_a_misspelt_setting_is_answered_with_the_right_one(self, path, meant):
        problem = next(problem for problem in refused({path: 1}) if problem.path == path)
        assert problem.found == "is not a setting"
        assert problem.fix.startswith(f"Did you mean {meant}? Known here: ")

    @pytest.mark.parametrize(
        ("path", "section"),
        [
            ("models[0].max_model_len", "engine"),
            ("models[0].min_replicas", "scaling"),
            ("nat_gateways", "network"),
            ("accelerator", "an entry of models"),
            ("max_devices", "an entry of node_pools"),
        ],
    )
    def test_a_misplaced_setting_is_answered_with_its_place(self, path, section):
        problem = only(refused({path: 1}))
        assert (problem.path, problem.found) == (path, "is not a setting")
        assert problem.fix == f"Write it under {section}."

    @pytest.mark.parametrize(
        "key", ["a.b", "models[x]", "models[0]", "with space", 'quo"te', "", "1", "ключ", "\u2028"]
    )
    def test_a_strange_key_is_named_so_that_it_can_be_found(self, key):
        problem = only(refused_with_key(key))
        assert problem.found == "is not a setting"
        assert steps(problem.path) == [key]

    def test_an_unknown_setting_does_not_change_what_is_said_of_others(self):
        problems = refused(
            {"nonsense": 1, "models[0].nonsense": 1, "models[0].drain_seconds": 300, "network.cidr": "x"}
        )
        assert [problem.path for problem in problems] == [
            "models[0].nonsense", "models[0].drain_seconds", "nonsense", "network.cidr",
        ]  # fmt: skip


def refused_with_key(key):
    return problems_in(text_of({**changed(), key: 1}))


class TestAllAtOnce:
    def test_a_wrong_type_in_one_model_and_a_wrong_value_in_another_come_together_in_file_order(self):
        second = {**SMALL["models"][0], "name": "two", "drain_seconds": 500}
        third = {**SMALL["models"][0], "name": "three", "spot": "maybe"}
        problems = refused(
            {
                "zones": ["us-east-1a", "us-west-2a"],
                "models[0].engine": {"max_model_len": "long"},
                "models[1]": second,
                "models[2]": third,
                "budget": {"monthly_usd": -1},
                "network": {"nat_gateways": 9},
            }
        )
        assert [problem.path for problem in problems] == [
            "zones[1]",
            "models[0].engine.max_model_len",
            "models[1].drain_seconds",
            "models[2].spot",
            "budget.monthly_usd",
            "network.nat_gateways",
        ]

    def test_a_wrong_type_and_a_wrong_value_in_one_model_come_together(self):
        problems = refused(
            {
                "models[0].probes": {"startup_seconds": "soon"},
                "models[0].engine": {"extra_args": ["--port", "1"]},
                "models[0].scaling": {"min_replicas": 5, "max_replicas": 2},
            }
        )
        assert [problem.path for problem in problems] == [
            "models[0].probes.startup_seconds", "models[0].engine.extra_args[0]", "models[0].scaling.min_replicas",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        "changes",
        [
            {"models[0].accelerator": {"family": 5}, "node_pools": {"g6e": {}}},
            {"models[0].accelerator": {"family": "g6e", "sizes": "xlarge"}, "node_pools": {"g6e": {}}},
            {"models[0].engine": {"max_model_len": "x"}, "models[0].accelerator.sizes": ["xlarge"]},
            {"models[0].shape": {"layers": 1}, "models[0].source": "s3://bucket/x"},
            {"zones": "us-east-1a", "network": {"nat_gateways": 3}},
            {"region": 5, "zones": ["eu-west-1a", "eu-west-1b"]},
            {"models[0].source": 5, "models[0].revision": "2026-01-01"},
            {"budget": {"monthly_usd": "much"}},
            {"models": "llama", "node_pools": {"g6e": {}}},
        ],
        ids=str,
    )  # fmt: skip
    def test_what_stands_in_for_a_wrong_value_causes_no_message_of_its_own(self, changes):
        wrong = next(iter(changes))
        assert {problem.path.startswith(wrong) for problem in refused(changes)} == {True}

    @pytest.mark.parametrize("entry", [None, True, "llama", ["llama"]])
    def test_a_model_that_is_no_section_hides_no_other(self, entry):
        problems = refused({"models[0].drain_seconds": 500, "models[1]": entry})
        assert [problem.path for problem in problems] == ["models[0].drain_seconds", "models[1]"]

    def test_a_list_with_a_wrong_entry_is_not_said_to_be_too_short(self):
        """pydantic does not count entries that are wrong themselves."""
        assert only(refused({"models[0].spot": "maybe"})).path == "models[0].spot"
        assert only(refused({"zones": ["us-east-1a", 5]})).path == "zones[1]"

    def test_a_hundred_models_with_a_mistake_each_give_a_hundred_messages(self):
        mistakes = [("drain_seconds", 500), ("spot", "maybe"), ("engine", {"max_model_len": 9999}), ("sourse", "x")]
        models = [
            {**SMALL["models"][0], "name": f"model-{index}", **dict([mistakes[index % len(mistakes)]])}
            for index in range(100)
        ]
        began = time.perf_counter()
        problems = problems_in(text_of({**SMALL, "models": models}))
        assert [steps(problem.path)[1] for problem in problems] == list(range(100))
        assert time.perf_counter() - began < HANGS

    def test_what_is_in_the_file_does_not_steer_the_terminal(self):
        problem = only(refused({"models[0].accelerator.sizes": ["\x1b[2J\n"]}))
        assert r"There is no inf2.\x1b[2J in the catalog" in problem.render("platform.yaml")
        assert not any(ord(character) < 32 for line in problem.render("f").splitlines() for character in line)

    def test_the_rendering_has_every_problem_and_a_count(self):
        with pytest.raises(PlatformError) as caught:
            parse_platform(text_of(changed({"name": "A", "models[0].drain_seconds": 500})), "other.yaml")
        assert str(caught.value) == (
            "other.yaml: name is 'A'\n"
            "  It must be lower-case letters, digits and dashes, starting with a letter and not ending with a dash.\n"
            "  For example llama3-8b.\n\n"
            "other.yaml: models[0].drain_seconds is 500\n"
            "  A Spot instance is gone 120 s after its warning, and 20 s go to noticing it and stopping the "
            "server. The pod's termination grace period is the same limit.\n"
            "  Use at most 100.\n\n"
            "2 problems in other.yaml; nothing was written."
        )


class TestTheFilesOfThisRepository:
    @pytest.mark.parametrize("name", FILES)
    def test_are_valid(self, name):
        load_platform(FILES[name])

    def test_the_smallest_has_fewer_than_fifteen_lines(self):
        assert len(FILES["minimal"].read_text(encoding="utf-8").splitlines()) < 15

    def test_the_default_is_the_articles_scenario(self):
        platform = load_platform(FILES["default"])
        model = platform.models[0]
        assert (platform.name, platform.region) == ("eks-genai-cluster", "us-east-1")
        assert model.repository == "meta-llama/Meta-Llama-3-8B-Instruct"
        assert (model.accelerator.family, model.accelerator.sizes) == ("inf2", ("8xlarge", "24xlarge"))
        assert (model.scaling.queue_per_replica, model.scaling.polling_interval_seconds) == (5, 15)
        assert (model.scaling.scale_down.percent, model.scaling.scale_down.stabilization_seconds) == (10, 300)
        assert platform.node_pool("inf2").max_devices == 64

    def test_are_found_from_anywhere(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert ROOT.is_absolute()
        assert accepted({}).name == "demo"
        assert load_platform(Path(FILES["default"])).name
