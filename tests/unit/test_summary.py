"""What `make synth` prints stays whole and true at every width, in colour and without, in UTF-8 and ASCII."""

import io
import os
import re
import subprocess
import sys
from datetime import date
from decimal import Decimal

import pytest
from syrupy.assertion import SnapshotAssertion

from genai_finops.catalog import instance_type
from genai_finops.planner.cold_start import cold_start
from genai_finops.planner.compare import article_load, as_it_is
from genai_finops.planner.fixed_cost import dollars, fixed_monthly_cost, serving_cost
from genai_finops.spec import Platform, problems, warnings
from genai_finops.spec.platform import Budget
from genai_finops.summary import Synthesis, print_summary, render
from tests.platform_files import ROOT, platform

TODAY = date(2026, 12, 1)
PLATFORMS = ("default", "minimal", "rich")
WIDTHS = (60, 80, 100, 120)
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def synthesis(of: Platform, file: str = "platform.yaml") -> Synthesis:
    parts = {"network": 31, "cluster": 1058, "karpenter": 12, "addons": 24, "serving": 19}
    return Synthesis(
        stacks={f"{of.name}-{part}": count for part, count in parts.items()},
        charts={"karpenter": 4, "vllm": 11, "keda": 2, "monitoring": 6, "gateway": 5},
        outputs={"CloudFormation templates": "cdk.out", "Kubernetes manifests": "dist/manifests"},
        platform_file=file,
    )


def summary(of: Platform, width: int = 100, *, color: bool = False, noted: list[problems.Warning] | None = None) -> str:
    found = list(warnings(of, TODAY)) if noted is None else noted
    return render(of, synthesis(of), found, today=TODAY, console_width=width, color=color)


def words(text: str) -> str:
    """The text as one line, so that what was wrapped can be found."""
    return " ".join(text.split())


def renamed(name: str) -> Platform:
    default = platform("default")
    return default.model_copy(update={"models": (default.models[0].model_copy(update={"name": name}),)})


@pytest.mark.parametrize("name", ["default", "rich"])
@pytest.mark.parametrize("width", [80, 120])
def test_rendered(name: str, width: int, snapshot: SnapshotAssertion) -> None:
    assert summary(platform(name), width) == snapshot


@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PLATFORMS)
def test_no_line_is_wider_than_the_window_and_nothing_is_cut(name: str, width: int, color: bool) -> None:
    text = ESCAPE.sub("", summary(platform(name), width, color=color))
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert "..." not in text
    assert text.endswith("changes it.\n") or color


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PLATFORMS)
def test_every_figure_is_there_at_every_width(name: str, width: int) -> None:
    of = platform(name)
    text = summary(of, width)
    fixed = fixed_monthly_cost(of, TODAY)
    for line in fixed.lines:
        assert dollars(line.monthly_usd) in text
        assert f"{line.price.usd.normalize():f}" in text
        assert line.price.source in words(text)
        assert str(line.price.checked) in text
    assert dollars(fixed.monthly_usd) in text
    for cost in serving_cost(of):
        assert cost.model in text
        for usd in (cost.at_min_usd("spot"), cost.at_min_usd("on-demand"), cost.ceiling_usd):
            assert usd is not None
            assert dollars(usd) in text
        for instance in cost.instances:
            assert instance in text
    for warning in warnings(of, TODAY):
        for part in (warning.path, warning.message, warning.remedy):
            assert words(part) in words(text)
    for part in ("31", "1,058", "1,144", "28", "cdk.out", "dist/manifests"):
        assert part in text


def test_each_item_stands_on_the_line_of_its_figures_and_source_when_the_window_is_wide() -> None:
    text = summary(platform("default"), 120)
    assert re.search(
        r"^System nodes, 2 × m7g.large +1,460 +h +\$0\.0816 +\$119\.14 +AWS price list, 2026-07-20$",
        text,
        re.M,
    )
    assert re.search(r"^TOTAL +\$268\.65$", text, re.M)


def test_a_narrow_window_numbers_the_sources() -> None:
    text = summary(platform("default"), 80)
    number = re.search(r"^System nodes.* (\[\d+\])$", text, re.M)
    assert number
    assert f"Prices of 2026-07-20: {number[1]} AWS price list." in text


def test_room_that_is_kept_warm_says_what_it_costs() -> None:
    cost = serving_cost(platform("rich"))[0]
    spot, on_demand = cost.warm_usd("spot"), cost.warm_usd("on-demand")
    assert spot
    assert on_demand
    text = words(summary(platform("rich")))
    paid = f"{dollars(spot)} on Spot or {dollars(on_demand)} on demand of it."
    assert f"llama3-8b keeps room for 2 more replicas warm: {paid}" in text
    assert "mistral-7b keeps room for 1 more replica warm" in text
    assert "keeps room" not in summary(platform("default"))


def test_money_ends_under_money() -> None:
    lines = summary(platform("default"), 80).splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("Item "))
    table = [line for line in lines[start + 2 : start + 18] if "$" in line]
    ends = {line.rindex(amount) + len(amount) for line in table for amount in re.findall(r"\$[\d,.]+", line)[-1:]}
    assert len(table) == 15
    assert len(ends) == 1


def test_a_schedule_shows_the_hours_asleep_and_what_they_save() -> None:
    cost = serving_cost(platform("rich"))[0]
    spot, on_demand = cost.asleep_saves_usd("spot"), cost.asleep_saves_usd("on-demand")
    assert spot
    assert on_demand
    saved = f"{dollars(spot)} on Spot or {dollars(on_demand)} on demand saved."
    text = words(summary(platform("rich")))
    assert f"llama3-8b is asleep 378 h a month by its schedule: {saved}" in text
    assert "asleep 378" not in summary(platform("default"))


def test_models_that_do_not_use_a_way_to_buy_say_so() -> None:
    text = summary(platform("rich"), 120)
    assert re.search(r"^llama3-70b .* \$1,968\.04 +not used +\$3,936\.09$", text, re.M)
    assert re.search(r"^mistral-7b .* not used +\$2,799\.06 +\$15,394\.83$", text, re.M)


def test_an_unknown_price_makes_the_sums_unknown_rather_than_small() -> None:
    model = platform("default").models[0]
    accelerator = model.accelerator.model_copy(update={"family": "trn2", "sizes": ("48xlarge",)})
    unpriced = model.model_copy(update={"name": "unpriced", "accelerator": accelerator})
    of = platform("default").model_copy(update={"models": (model, unpriced)})
    text = summary(of, noted=[])
    assert re.search(r"^unpriced .* unknown +unknown +unknown$", text, re.M)
    assert re.search(r"^Min replicas, on Spot where allowed +unknown$", text, re.M)
    assert re.search(r"^Ceiling +unknown$", text, re.M)


def test_prices_of_another_region_are_flagged() -> None:
    assert "All prices are of us-east-1; us-west-2 differs." in summary(platform("minimal"))
    assert "differs" not in summary(platform("default"))


def test_the_budget_shows_what_the_fixed_cost_takes_of_it() -> None:
    of = platform("default").model_copy(update={"budget": Budget(monthly_usd=Decimal(1000))})
    assert re.search(r"^Budget, 27% of it taken by the fixed cost +\$1,000\.00$", summary(of), re.M)


def test_warnings_are_numbered_and_none_leaves_no_heading() -> None:
    noted = [problems.Warning("a.b", "Costs.", "Mend."), problems.Warning("c", "Too.", "Leave.")]
    assert "2 warnings\n1. a.b\n   Costs.\n   → Mend.\n2. c\n   Too.\n   → Leave.\n" in summary(
        platform("default"), noted=noted
    )
    assert "warning" not in summary(platform("default"), noted=[])


def test_a_long_path_and_a_long_name_are_wrapped_whole() -> None:
    path, name = "models[0]." + "deep." * 30 + "end", "a-model-with-a-name-of-exactly-forty-nine-letters"
    text = summary(renamed(name), 60, noted=[problems.Warning(path, "Costs.", "Mend.")])
    assert path in "".join(text.split())
    assert name in text
    assert max(map(len, text.splitlines())) <= 60


def test_brackets_are_text_and_not_markup() -> None:
    noted = [problems.Warning("models[0].x", "[bold]is[/bold] kept :smile:", "[red]")]
    text = summary(platform("default"), noted=noted)
    assert "models[0].x" in text
    assert "[bold]is[/bold] kept :smile:" in text
    assert "→ [red]" in text


def test_another_file_is_named_in_what_to_do_next() -> None:
    of = platform("rich")
    text = render(of, synthesis(of, "my platforms/rich.yaml"), [], today=TODAY, console_width=120)
    assert "make diff PLATFORM='my platforms/rich.yaml'" in text
    assert "make deploy PLATFORM='my platforms/rich.yaml'" in text
    assert "PLATFORM" not in summary(of)


def test_color_adds_escape_codes_and_nothing_else() -> None:
    plain, colored = summary(platform("rich"), 80), summary(platform("rich"), 80, color=True)
    assert "\x1b" not in plain
    assert "\x1b[" in colored
    assert [line.rstrip() for line in ESCAPE.sub("", colored).splitlines()] == plain.splitlines()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(stream: io.TextIOBase, monkeypatch: pytest.MonkeyPatch, **environment: str) -> None:
    for name in ("NO_COLOR", "COLUMNS", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    of = platform("default")
    print_summary(of, synthesis(of), [], today=TODAY, stream=stream)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("environment", "colored"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_a_terminal_is_colored_unless_told_otherwise(
    environment: dict[str, str], colored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Terminal()
    printed(stream, monkeypatch, **environment)
    assert ("\x1b[" in stream.getvalue()) == colored


def test_an_ascii_stream_gets_ascii_of_the_same_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    utf8, raw = io.StringIO(), io.BytesIO()
    printed(utf8, monkeypatch, COLUMNS="80")
    stream = io.TextIOWrapper(raw, encoding="ascii", newline="\n")
    printed(stream, monkeypatch, COLUMNS="80")
    stream.flush()
    text = raw.getvalue().decode("ascii")
    assert "?" not in text
    assert "2 x m7g.large" in text
    assert list(map(len, text.splitlines())) == list(map(len, utf8.getvalue().splitlines()))


@pytest.mark.parametrize(("columns", "width"), [("80", 80), ("500", 120), ("10", 60)])
def test_columns_says_how_wide_it_is(columns: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    printed(stream, monkeypatch, COLUMNS=columns)
    assert stream.getvalue() == summary(platform("default"), width, noted=[])


def test_a_pipe_gets_plain_text_of_100_columns() -> None:
    script = (
        "import datetime; from genai_finops.summary import Synthesis, print_summary;"
        "from tests.platform_files import platform;"
        "print_summary(platform('rich'), Synthesis({}, {}, {}), [], today=datetime.date(2026, 12, 1))"
    )
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    piped = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=environment | {"PYTHONIOENCODING": "utf-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    expected = render(platform("rich"), Synthesis({}, {}, {}), [], today=TODAY, console_width=100)
    assert piped.stdout.decode() == expected


def test_importing_it_starts_neither_the_cdk_nor_the_heavy_parts_of_rich() -> None:
    script = "import sys, genai_finops.summary; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"jsii", "aws_cdk", "cdk8s", "rich.markdown", "rich.syntax", "rich.progress", "pygments"} & {*loaded}


def test_what_a_million_tokens_cost_is_there_with_its_error_bar() -> None:
    of = platform("default")
    [model] = of.models
    volume = of.node_pool("inf2").volume
    found = as_it_is(model, instance_type("inf2.8xlarge"), "spot", article_load(), region=of.region, volume=volume)
    line = next(line for line in summary(of).splitlines() if line.startswith(f"{model.name} ") and "spot" in line)
    assert f"{found.replicas} × inf2.8xlarge" in line
    assert found.usd_per_million_total_tokens_low < found.usd_per_million_total_tokens
    for usd in (found.monthly_usd, found.usd_per_million_total_tokens, found.usd_per_million_total_tokens_high):
        assert dollars(usd) in line


def test_a_model_that_cannot_hold_its_objective_says_why() -> None:
    of = platform("default")
    [model] = of.models
    hopeless = model.model_copy(
        update={"objective": model.objective.model_copy(update={"time_to_first_token_seconds": 0.1})}
    )
    text = words(summary(of.model_copy(update={"models": (hopeless,)})))
    assert "llama3-8b on inf2.8xlarge does not hold its objective: " in text


def test_cold_starts_are_shown_beside_the_articles() -> None:
    of = platform("default")
    found = cold_start(of, of.models[0], instance_type("inf2.8xlarge"))
    text = summary(of)
    for seconds in (found.total_seconds, found.with_image_seconds, found.warm_seconds):
        assert f"{seconds:,.0f} s" in text
    assert "the article says 180 to 300 s" in words(text)
