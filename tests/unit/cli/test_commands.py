"""What each command asks its service for, and what it makes of the answer; the services are stood in for."""

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from genai_finops import cli
from genai_finops.planner import compare, difference, evaluate, plan
from genai_finops.planner.performance import calibrate
from genai_finops.planner.report import build
from genai_finops.planner.report.page import Report
from genai_finops.planner.traffic import files as traffic_files
from tests.platform_files import FILES
from tests.unit.planner.present import samples

DEFAULT, RICH = str(FILES["default"]), str(FILES["rich"])


class Asked:
    """Stands in for a service: remembers what it was asked, and answers what it was given."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.arguments, self.options = answer, (), {}

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.arguments, self.options = arguments, options
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture(autouse=True)
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Traffic is not read; what would have been is listed."""
    found: list[tuple[str, int]] = []

    def open_traffic(file: str, seed: int) -> str:
        found.append((str(file), seed))
        return f"traffic of {file}"

    monkeypatch.setattr(traffic_files, "open_traffic", open_traffic)
    return found


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> Asked:
    service = Asked(samples.simulation())
    monkeypatch.setattr(evaluate, "simulate_platform", service)
    return service


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.main, list(arguments), catch_exceptions=False)


def test_a_simulation_is_shown_and_fine(simulated):
    done = run("simulate", DEFAULT)
    assert done.exit_code == 0
    assert "What would happen: eks-genai-cluster" in done.stdout


def test_an_objective_that_does_not_hold_ends_with_2(simulated):
    simulated.answer = samples.simulation(replace(samples.model(), verdict="does not hold"))
    done = run("simulate", DEFAULT, "--format", "json")
    assert done.exit_code == 2
    assert json.loads(done.stdout)["exit_code"] == 2


def test_a_budget_that_is_exceeded_ends_with_2(simulated):
    simulated.answer = samples.simulation(budget="1")
    assert run("simulate", DEFAULT).exit_code == 2


def test_without_traffic_each_model_gets_the_articles(simulated, opened):
    run("simulate", RICH, "--seed", "5")
    assert list(simulated.arguments[1]) == ["llama3-8b", "llama3-70b", "mistral-7b"]
    assert opened == [("article", 5)] * 3


def test_traffic_goes_to_the_model_it_is_for(simulated, opened):
    run("simulate", RICH, "--traffic", "mistral-7b=a.csv", "--traffic", "llama3-8b=b=c.csv")
    assert simulated.arguments[1] == {"mistral-7b": "traffic of a.csv", "llama3-8b": "traffic of b=c.csv"}


def test_the_only_model_needs_no_name(simulated):
    run("simulate", DEFAULT, "--traffic", "a.csv")
    assert simulated.arguments[1] == {"llama3-8b": "traffic of a.csv"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["a.csv"], "there are 3 models. Say whose traffic it is: llama3-8b=a.csv"),
        (["nobody=a.csv"], "there is no model 'nobody'"),
        (["mistral-7b=a.csv", "mistral-7b=b.csv"], "mistral-7b has traffic already, a.csv"),
    ],
)
def test_traffic_of_unclear_use_is_refused(simulated, given, message):
    done = run("simulate", RICH, *(part for file in given for part in ("--traffic", file)))
    assert done.exit_code == 1
    assert message in " ".join(done.stderr.split())
    assert simulated.options == {}


def test_options_reach_the_service(simulated):
    run("simulate", DEFAULT, "--seed", "7", "--inter-token-seconds", "0.05")
    assert simulated.options["seed"] == 7
    assert simulated.options["inter_token_seconds"] == 0.05
    assert simulated.options["spot_series"] is None


def test_what_a_service_refuses_is_told_without_a_traceback(simulated, tmp_path):
    simulated.answer = ValueError("trace.csv, line 7: ContextTokens is -3. Give a number above 0.")
    done = run("simulate", DEFAULT, "--out-file", str(tmp_path / "x"))
    assert done.exit_code == 1
    assert done.stderr == "trace.csv, line 7: ContextTokens is -3. Give a number above 0.\n"
    assert list(tmp_path.iterdir()) == []


def test_a_bug_is_not_dressed_up_as_a_mistake_of_the_user(simulated):
    simulated.answer = KeyError("bug")
    with pytest.raises(KeyError):
        run("simulate", DEFAULT)


def test_what_is_not_installed_is_told(simulated):
    simulated.answer = ModuleNotFoundError("No module named 'numba'", name="numba")
    done = run("simulate", DEFAULT)
    assert done.exit_code == 1
    assert "genai-finops[planner]" in done.stderr


def test_the_cost_can_be_exported_for_focus(simulated, tmp_path):
    done = run("simulate", DEFAULT, "--focus", str(tmp_path / "focus.csv"))
    assert done.exit_code == 0
    assert (tmp_path / "focus.csv").read_text(encoding="utf-8").startswith("BilledCost,")


def test_an_export_without_a_price_writes_nothing(simulated, tmp_path):
    interval = samples.model().intervals[0]
    model = samples.unpriced_model()
    cost = samples.unpriced_cost()
    simulated.answer = samples.simulation(replace(model, intervals=(replace(interval, costs=(cost,)),)))
    done = run("simulate", DEFAULT, "--focus", str(tmp_path / "focus.csv"), "--out-file", str(tmp_path / "page"))
    assert done.exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_plan_searches_as_much_as_it_is_told(monkeypatch):
    service = Asked(samples.plan())
    monkeypatch.setattr(plan, "plan", service)
    done = run("plan", DEFAULT, "--candidates", "9", "--search-seconds", "3")
    assert done.exit_code == 0
    assert (service.options["search"].candidates, service.options["search"].seconds) == (9, 3)


def test_a_plan_without_a_winner_ends_with_2(monkeypatch):
    found = samples.plan()
    monkeypatch.setattr(plan, "plan", Asked(replace(found, models=(replace(found.models[0], winner=None),))))
    assert run("plan", DEFAULT).exit_code == 2


def test_compare_takes_the_articles_load_and_the_models_objective(monkeypatch):
    service = Asked(samples.comparison())
    monkeypatch.setattr(compare, "compare", service)
    assert run("compare").exit_code == 0
    model, load, objective = service.arguments
    assert model.source == "hf://meta-llama/Meta-Llama-3-8B-Instruct"
    assert load == compare.article_load()
    assert (objective.time_to_first_token_seconds, objective.inter_token_seconds, objective.percent) == (2.5, None, 95)


def test_compare_takes_another_model_and_objective(monkeypatch):
    service = Asked(samples.comparison())
    monkeypatch.setattr(compare, "compare", service)
    run("compare", "--platform", RICH, "--model", "mistral-7b", "--first-token-seconds", "0.5", "--percent", "90",
        "--inter-token-seconds", "0.02")  # fmt: skip
    model, _, objective = service.arguments
    assert model.name == "mistral-7b"
    assert (objective.time_to_first_token_seconds, objective.inter_token_seconds, objective.percent) == (0.5, 0.02, 90)


def test_compare_refuses_a_model_that_is_not_there():
    done = run("compare", "--platform", RICH, "--model", "gpt")
    assert done.exit_code == 1
    assert "Use llama3-8b or llama3-70b or mistral-7b" in " ".join(done.stderr.split())


def test_diff_simulates_only_with_traffic(monkeypatch):
    service = Asked(replace(samples.difference(), after_budget_usd=None, service=()))
    monkeypatch.setattr(difference, "difference", service)
    assert run("diff", DEFAULT, RICH).exit_code == 0
    assert service.options["traffic"] is None
    run("diff", DEFAULT, RICH, "--traffic", "mistral-7b=a.csv")
    assert service.options["traffic"] == {"mistral-7b": "traffic of a.csv"}


def test_a_difference_that_breaks_an_objective_ends_with_2(monkeypatch):
    monkeypatch.setattr(difference, "difference", Asked(replace(samples.difference(), after_budget_usd=Decimal(10**6))))
    assert run("diff", DEFAULT, RICH).exit_code == 2


def test_a_report_is_html_with_its_charts(monkeypatch, tmp_path):
    answer = Report(samples.simulation(), (samples.comparison(),), samples.sensitivity())
    monkeypatch.setattr(build, "build", Asked(answer))
    target = tmp_path / "report.html"
    done = run("report", DEFAULT, "--out-file", str(target))
    assert done.exit_code == 0
    text = target.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert text.count("<svg") == 12


def test_a_calibration_writes_its_profile_and_shows_its_errors(monkeypatch, tmp_path):
    service = Asked(("profile", samples.calibration()))
    monkeypatch.setattr(calibrate, "calibrate", service)
    monkeypatch.setattr(calibrate, "write_profile", lambda profile, stream: stream.write(profile))
    target = tmp_path / "profile.json"
    done = run("calibrate", "a.json", "b.json", "--model", "llama3-8b", "--instance", "inf2.xlarge",
               "--profile", str(target))  # fmt: skip
    assert done.exit_code == 0
    assert service.arguments == ((Path("a.json"), Path("b.json")),)
    assert service.options == {"model": "llama3-8b", "instance": "inf2.xlarge", "tensor_parallel_size": None}
    assert target.read_text(encoding="utf-8") == "profile"
    assert "Furthest off" in done.stdout


def test_measured_profiles_reach_the_service(simulated, monkeypatch):
    monkeypatch.setattr(calibrate, "read_profile", lambda file: f"profile of {file}")
    run("simulate", DEFAULT, "--profiles", "a.json", "--profiles", "b.json")
    assert simulated.options["profiles"] == ("profile of a.json", "profile of b.json")


def test_no_color_and_dumb_terminals_are_honoured(simulated, monkeypatch):
    monkeypatch.setattr("genai_finops.planner.present.terminal.shows_color", lambda stream: True)
    assert "\x1b" in run("simulate", DEFAULT).stdout
    assert "\x1b" not in run("simulate", DEFAULT, "--no-color").stdout


def test_progress_is_for_terminals(simulated):
    assert run("simulate", DEFAULT).stderr == ""


@pytest.mark.parametrize("form", ["table", "json", "html", "markdown"])
def test_every_format_can_be_written_to_a_file(simulated, tmp_path: Path, form):
    target = tmp_path / "page"
    assert run("simulate", DEFAULT, "--format", form, "--out-file", str(target)).exit_code == 0
    text = target.read_text(encoding="utf-8")
    assert "eks-genai-cluster" in text
    assert "\x1b" not in text
