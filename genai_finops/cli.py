"""The command `genai-finops`: what it will cost, whether it will hold, what is cheaper.

Thin: each command reads its options, asks one service, and shows the answer. What is heavy (the platform's types, the
simulator, the charts) is imported inside the commands, so that `--help` answers at once.

Exit codes: 0 fine, 1 an error, 2 an objective or the budget is violated. So a pipeline can tell them apart.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from genai_finops.planner.present.output import FORMATS, Format

if TYPE_CHECKING:
    from datetime import date

    from genai_finops.planner.money import PriceOverTime
    from genai_finops.planner.performance.model import MeasuredProfile
    from genai_finops.planner.present.document import Document
    from genai_finops.planner.traffic.requests import Traffic
    from genai_finops.spec import Model, Platform

ARTICLE: Final = "article"
"""Names the built-in profile wherever a file of traffic is asked for."""


class _Commands(click.Group):
    """Turns what can go wrong into a message and exit code 1; a traceback is for bugs."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with _errors_told():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> None:
        with _errors_told():
            code = super().invoke(ctx)
        ctx.exit(code or 0)


@contextmanager
def _errors_told() -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        raise _Usage(error.format_message(), error.ctx) from None
    except (click.exceptions.Exit, click.Abort, click.ClickException, BrokenPipeError):
        raise  # click knows; a reader that has seen enough is none of our business
    except ModuleNotFoundError as error:
        if error.name == "boto3":
            raise click.ClickException("This command needs boto3: install genai-finops[supply].") from None
        if error.name not in ("numpy", "numba", "vl_convert"):
            raise
        raise click.ClickException(
            f"This command needs {error.name}, which is not installed.\n"
            "  Install genai-finops[planner]; here `make plan`, `make simulate` and `make report` bring it along."
        ) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise click.ClickException(f"{where}{error.strerror or error}. Nothing was written.") from None
    except Exception as error:
        if not _is_told(error):
            raise
        raise _Told(str(error)) from None


def _is_told(error: Exception) -> bool:
    """Errors whose message says all that the user needs: of what was read, or of what was asked for."""
    from genai_finops.spec.problems import PlatformError

    return isinstance(error, PlatformError | ValueError) or type(error) is LookupError


class _Usage(click.UsageError):
    exit_code = 1  # 2 is for violated objectives


class _Told(click.ClickException):
    """An error that says itself what it is about."""

    def show(self, file: Any = None) -> None:
        click.echo(self.format_message(), file=file or sys.stderr)


@dataclass(frozen=True, slots=True)
class Output:
    """How and where an answer is shown.

    Attributes:
        file: None is standard output.
    """

    form: Format
    file: Path | None
    color: bool

    def show(self, command: str, result: Any, page: Callable[[], "Document"], *, charts: bool = False) -> None:
        """Writes the answer, whole or not at all."""
        from genai_finops.planner.present.output import rendered, write

        if self.form == "json":
            from genai_finops.planner.present import as_json

            text = as_json.render(command, result)
        else:
            stream = sys.stdout if self.file is None else None
            text = rendered(page(), self.form, stream=stream, color=self.color, charts=charts)
        write(text, self.file)
        if self.file is not None:
            click.echo(f"{self.file}: {len(text.encode()):,} bytes", err=True)


def _output_options(default: Format = "table") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--format`, `--out-file` and `--no-color`, handed to the command as `output`."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_output(*args: Any, form: Format, out_file: Path | None, no_color: bool, **options: Any) -> Any:
            return command(*args, output=Output(form, _file(out_file), not no_color), **options)

        options = (
            click.option("--format", "form", type=click.Choice(FORMATS), default=default, show_default=True),
            click.option("--out-file", type=_PATH, metavar="FILE", help="Write there; - is the terminal."),
            click.option("--no-color", is_flag=True, help="Plain text; as the variable NO_COLOR does."),
        )
        for option in reversed(options):
            with_output = option(with_output)
        return with_output

    return decorate


def _file(given: Path | None) -> Path | None:
    return None if given is None or str(given) == "-" else given


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error, on a terminal only; it is told what is done, and of how much."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    share = TextColumn("{task.percentage:>3.0f}%")
    columns = (TextColumn("{task.description}"), BarColumn(), share, TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


_PATH: Final = click.Path(path_type=Path)
_POSITIVE: Final = click.FloatRange(0, min_open=True)
_PERCENT: Final = click.FloatRange(0, 100, min_open=True, max_open=True)
_TRAFFIC: Final = click.option(
    "--traffic",
    "given_traffic",
    multiple=True,
    metavar="FILE",
    help=f"Trace (.csv) or profile (.yaml); {ARTICLE} is 10M tokens a day. MODEL=FILE for one of several models.",
)
_SEED: Final = click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    metavar="N",
    show_default=True,
    help="Of drawn traffic and of Spot.",
)
_PROFILES: Final = click.option(
    "--profiles", type=_PATH, multiple=True, metavar="FILE", help="Measured performance, as `calibrate` writes it."
)
_INTER_TOKEN: Final = click.option(
    "--inter-token-seconds",
    type=_POSITIVE,
    metavar="SECONDS",
    help="Objective for the mean gap between the tokens of a request; the platform file has none.",
)


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.pass_context
def main(context: click.Context) -> None:
    """What a platform for generative AI will cost, whether it will hold, and what is cheaper.

    Exit codes: 0 fine, 1 an error, 2 an objective or the budget is violated.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@main.command(short_help="What 1M tokens cost on every instance type.")
@click.option("--platform", type=_PATH, metavar="FILE", help="Compare for a model of this platform file.")
@click.option("--model", "name", metavar="NAME", help="Which of its models; the first when left out.")
@_TRAFFIC
@click.option("--first-token-seconds", type=_POSITIVE, metavar="SECONDS", help="Objective; when left out, the model's.")
@_INTER_TOKEN
@click.option("--percent", type=_PERCENT, metavar="PERCENT", help="Of requests that must meet it; likewise.")
@_SEED
@_PROFILES
@_output_options()
def compare(
    output: Output,
    platform: Path | None,
    name: str | None,
    given_traffic: tuple[str, ...],
    first_token_seconds: float | None,
    inter_token_seconds: float | None,
    percent: float | None,
    seed: int,
    profiles: tuple[Path, ...],
) -> int:
    """What 1M tokens cost on every instance type that serves them within the objective.

    Without --traffic: the article's 10M tokens a day. Without --platform: the article's model, Llama 3 8B. Computed,
    not simulated: replicas for the peak, awake all the time.
    """
    from genai_finops.planner import compare as service
    from genai_finops.planner.objectives import target_of
    from genai_finops.planner.present import comparison as page

    found = _load(platform) if platform else None
    model = _model(found, name) if found else service.article_model()
    target = target_of(model, inter_token_seconds)
    target = replace(
        target,
        time_to_first_token_seconds=first_token_seconds or target.time_to_first_token_seconds,
        percent=percent or target.percent,
    )
    if given_traffic:
        from genai_finops.planner.loads import measured

        load = measured(_one_traffic(given_traffic, model.name, seed)).compared()
    else:
        load = service.article_load()
    result = service.compare(
        model,
        load,
        target,
        region=found.region if found else "us-east-1",
        volume=found.node_pool(model.accelerator.family).volume if found else None,
        profiles=_measured_profiles(profiles),
    )
    output.show("compare", result, lambda: page.page(result))
    return result.exit_code


@main.command(short_help="The cheapest configuration that meets the objective.")
@click.argument("platform", type=_PATH)
@_TRAFFIC
@_INTER_TOKEN
@click.option(
    "--candidates",
    type=click.IntRange(1),
    default=200,
    metavar="N",
    show_default=True,
    help="Simulated for each model.",
)
@click.option(
    "--search-seconds", type=_POSITIVE, metavar="SECONDS", help="Begin no candidate of a model after so long."
)
@_SEED
@_PROFILES
@_output_options()
def plan(
    output: Output,
    platform: Path,
    given_traffic: tuple[str, ...],
    inter_token_seconds: float | None,
    candidates: int,
    search_seconds: float | None,
    seed: int,
    profiles: tuple[Path, ...],
) -> int:
    """The cheapest configuration of each model of PLATFORM that meets its objective under its traffic.

    Prints every candidate with the reason it lost, and the change of the platform file. Without --traffic each model
    gets the article's 10M tokens a day.
    """
    found = _load(platform)
    from genai_finops.planner import plan as service
    from genai_finops.planner.present import planning as page

    with _progress("Simulating candidates") as progress:
        result = service.plan(
            found,
            _traffic(found, given_traffic, seed),
            seed=seed,
            profiles=_measured_profiles(profiles),
            inter_token_seconds=inter_token_seconds,
            search=service.Search(candidates, search_seconds),
            progress=progress,
        )
    output.show("plan", result, lambda: page.page(result))
    return result.exit_code


@main.command(short_help="What would happen, hour by hour, and what it costs.")
@click.argument("platform", type=_PATH)
@_TRAFFIC
@_INTER_TOKEN
@click.option("--spot-prices", type=_PATH, metavar="FILE", help="Spot prices over time, not one figure.")
@click.option("--focus", type=_PATH, metavar="FILE", help="Also write the cost as CSV with the columns of FOCUS.")
@_SEED
@_PROFILES
@_output_options()
def simulate(
    output: Output,
    platform: Path,
    given_traffic: tuple[str, ...],
    inter_token_seconds: float | None,
    spot_prices: Path | None,
    focus: Path | None,
    seed: int,
    profiles: tuple[Path, ...],
) -> int:
    """What would happen on PLATFORM, hour by hour: queue, replicas, nodes, Spot, latency, cost.

    Without --traffic each model gets the article's 10M tokens a day.
    """
    found = _load(platform)
    from genai_finops.planner import evaluate as service
    from genai_finops.planner.present import simulation as page

    with _progress("Simulating") as progress:
        result = service.simulate_platform(
            found,
            _traffic(found, given_traffic, seed),
            today=_today(),
            seed=seed,
            profiles=_measured_profiles(profiles),
            inter_token_seconds=inter_token_seconds,
            spot_series=_spot_series(spot_prices),
            progress=progress,
        )
    if focus:
        from genai_finops.planner import focus as export
        from genai_finops.planner.present.output import write_whole

        write_whole(focus, lambda stream: export.write(result, stream))
    output.show("simulate", result, lambda: page.page(result))
    return result.exit_code


@main.command(short_help="What a change of the platform file does to cost.")
@click.argument("old", type=_PATH)
@click.argument("new", type=_PATH)
@_TRAFFIC
@_INTER_TOKEN
@_SEED
@_PROFILES
@_output_options()
def diff(
    output: Output,
    old: Path,
    new: Path,
    given_traffic: tuple[str, ...],
    inter_token_seconds: float | None,
    seed: int,
    profiles: tuple[Path, ...],
) -> int:
    """What the change from platform file OLD to NEW does to cost and objectives, in a month.

    Without --traffic models are priced at min_replicas. --format markdown is a pull-request comment.
    """
    before, after = _load(old), _load(new)
    from genai_finops.planner import difference as service
    from genai_finops.planner.present import differences as page

    with _progress("Simulating both") as progress:
        result = service.difference(
            before,
            after,
            today=_today(),
            traffic=_traffic_of_both(before, after, given_traffic, seed) if given_traffic else None,
            seed=seed,
            profiles=_measured_profiles(profiles),
            inter_token_seconds=inter_token_seconds,
            progress=progress,
        )
    output.show("diff", result, lambda: page.page(result))
    return result.exit_code


@main.command(short_help="One page with everything, and charts.")
@click.argument("platform", type=_PATH)
@_TRAFFIC
@_INTER_TOKEN
@_SEED
@_PROFILES
@_output_options("html")
def report(
    output: Output,
    platform: Path,
    given_traffic: tuple[str, ...],
    inter_token_seconds: float | None,
    seed: int,
    profiles: tuple[Path, ...],
) -> int:
    """One page about PLATFORM under its traffic, with charts: what `simulate` and `compare` say, and what if.

    HTML that needs nothing else; a terminal gets it as report.html. Without --traffic each model gets the
    article's 10M tokens a day.
    """
    found = _load(platform)
    from genai_finops.planner.report import page
    from genai_finops.planner.report.build import build

    with _progress("Simulating") as progress:
        result = build(
            found,
            _traffic(found, given_traffic, seed),
            today=_today(),
            seed=seed,
            profiles=_measured_profiles(profiles),
            inter_token_seconds=inter_token_seconds,
            progress=progress,
        )
    if output.form == "html" and output.file is None and sys.stdout.isatty():
        output = replace(output, file=Path("report.html"))
    output.show("report", result, lambda: page.page(result), charts=output.form == "html")
    return result.exit_code


@main.command(short_help="A measured performance profile from a benchmark.")
@click.argument("results", nargs=-1, required=True, type=_PATH)
@click.option("--model", required=True, metavar="NAME", help="Of the platform file, that was measured.")
@click.option("--instance", required=True, metavar="TYPE", help="That it ran on, such as inf2.xlarge.")
@click.option("--tensor-parallel-size", type=click.IntRange(1), metavar="N", help="When left out, the smallest layout.")
@click.option("--profile", "target", required=True, type=_PATH, metavar="FILE", help="Write the profile there.")
@_output_options()
def calibrate(
    output: Output,
    results: tuple[Path, ...],
    model: str,
    instance: str,
    tensor_parallel_size: int | None,
    target: Path,
) -> int:
    """Fits the step model to RESULTS of `vllm bench serve` or guidellm, of one replica.

    The profile replaces the built-in performance of that model on that instance: give it to the other commands with
    --profiles. Shown is how far it is from each latency that was measured.
    """
    from genai_finops.planner.performance import calibrate as service
    from genai_finops.planner.present import calibrations as page
    from genai_finops.planner.present.output import write_whole

    profile, result = service.calibrate(
        results, model=model, instance=instance, tensor_parallel_size=tensor_parallel_size
    )
    write_whole(target, lambda stream: service.write_profile(profile, stream))
    output.show("calibrate", result, lambda: page.page(result))
    return result.exit_code


@main.command(short_help="What the model store has of each model.")
@click.argument("platform", type=_PATH)
def artifacts(platform: Path) -> int:
    """What the model store of PLATFORM has: weights and compiled graphs of each model, with size and age.

    Asks the account that the AWS credentials are of. What is missing is named with the command that makes it.
    """
    found = _load(platform)
    from genai_finops.supply import listing

    click.echo(listing.listed(found))
    return 0


def _today() -> "date":
    from datetime import UTC, datetime

    return datetime.now(UTC).date()


def _load(file: Path) -> "Platform":
    from genai_finops.spec import load_platform

    return load_platform(file)


def _model(platform: "Platform", name: str | None) -> "Model":
    names = [model.name for model in platform.models]
    if name is not None and name not in names:
        raise _Usage(f"--model {name}: there is no such model. Use {' or '.join(names)}.")
    return platform.models[names.index(name) if name else 0]


def _traffic(platform: "Platform", given: Sequence[str], seed: int) -> dict[str, "Traffic"]:
    """By the name of the model. Without any given, each model gets the article's."""
    return _opened([model.name for model in platform.models], given, seed)


def _traffic_of_both(before: "Platform", after: "Platform", given: Sequence[str], seed: int) -> dict[str, "Traffic"]:
    names = dict.fromkeys(model.name for platform in (before, after) for model in platform.models)
    return _opened(list(names), given, seed)


def _one_traffic(given: Sequence[str], name: str, seed: int) -> "Traffic":
    return _opened([name], given, seed)[name]


def _opened(names: Sequence[str], given: Sequence[str], seed: int) -> dict[str, "Traffic"]:
    from genai_finops.planner.traffic.files import open_traffic

    files = _files(names, given) or dict.fromkeys(names, ARTICLE)
    return {name: open_traffic(file, seed) for name, file in files.items()}


def _files(names: Sequence[str], given: Sequence[str]) -> dict[str, str]:
    """Files by the model that they are for, as `FILE` or `MODEL=FILE`."""
    files: dict[str, str] = {}
    for each in given:
        name, sign, file = each.partition("=")
        if not sign or name not in names:
            if sign and not Path(each).exists():
                raise _Usage(f"--traffic {each}: there is no model {name!r}. Use {' or '.join(names)}.")
            if len(names) > 1:
                ways = ", ".join(f"{other}={each}" for other in names)
                raise _Usage(f"--traffic {each}: there are {len(names)} models. Say whose traffic it is: {ways}.")
            name, file = names[0], each
        if name in files:
            raise _Usage(f"--traffic {each}: {name} has traffic already, {files[name]}. Give one for each model.")
        files[name] = file
    return files


def _measured_profiles(files: Sequence[Path]) -> tuple["MeasuredProfile", ...]:
    if not files:
        return ()
    from genai_finops.planner.performance.calibrate import read_profile

    return tuple(map(read_profile, files))


def _spot_series(file: Path | None) -> Mapping[str, "PriceOverTime"] | None:
    if file is None:
        return None
    from genai_finops.planner.spot import read_prices

    return read_prices(file)
