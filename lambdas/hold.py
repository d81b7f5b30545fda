"""Keep a model awake or asleep until a time, against schedule and budget; or let go of it.

    python -m genai_finops.spec.automation platform.yaml | python -m lambdas.hold MODEL 2026-12-24T18:00:00+01:00
    ... | python -m lambdas.hold MODEL 8h --asleep
    ... | python -m lambdas.hold MODEL --release

Runs where an operator works, with that person's AWS credentials; who may do it is the cluster's to say. The hold is an
annotation on the model's ScaledObject, and is obeyed from the next evaluation on, minutes later.
"""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

from botocore.exceptions import BotoCoreError, ClientError

from genai_finops.operations import holds
from genai_finops.operations.codec import ShapeError
from genai_finops.operations.config import ModelConfig, OperationsConfig
from genai_finops.operations.holds import HOLD, Hold, HoldError
from lambdas.adapters import kubernetes
from lambdas.adapters.cluster import ScaledObject
from lambdas.adapters.facts import utc_now
from lambdas.adapters.kubernetes import KubernetesClient, Patch
from lambdas.adapters.kubernetes_errors import KubernetesError

State = Literal["awake", "asleep"]

_LENGTH: Final = re.compile(r"([1-9][0-9]{0,3})([mhd])")
_UNITS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


def wanted(state: State, until: str, now: datetime) -> Hold:
    """The hold that was asked for.

    Args:
        until: a time with its zone, or a length from now such as 90m, 8h or 2d.

    Raises:
        HoldError: when it is neither, or over already.
    """
    length = _LENGTH.fullmatch(until)
    if length:
        return Hold(state, now.replace(microsecond=0) + int(length[1]) * _UNITS[length[2]])
    hold = holds.parse(f"{state} until {until}") if until and not re.search(r"\s", until) else None
    if hold is None:
        raise HoldError(f"UNTIL is {until!r}; use a time such as 2026-12-24T18:00:00+01:00, or a length such as 8h")
    if not hold.holds(now):
        raise HoldError(f"UNTIL is {until}, which is over; use a later time, or a length such as 8h")
    return hold


def put(client: KubernetesClient, model: ModelConfig, hold: Hold | None) -> None:
    """Set the hold on a model, or take it away.

    Raises:
        KubernetesError: when it cannot be set.
    """
    value = hold.annotation() if hold else None

    def change(found: ScaledObject) -> Patch | None:
        is_there = found.annotations.get(HOLD) == value
        return None if is_there else {"metadata": {"annotations": {HOLD: value}}}

    found = ScaledObject.of(client.get(ScaledObject.RESOURCE, model.deployment, namespace=model.namespace))
    client.update(ScaledObject.RESOURCE, found, change, view=ScaledObject.of)


def main(
    arguments: Sequence[str],
    *,
    configuration: str,
    now: Callable[[], datetime] = utc_now,
    connect: Callable[[OperationsConfig], KubernetesClient] | None = None,
) -> str:
    """Do what the arguments say; what was done, in words.

    Args:
        configuration: JSON of the platform's OperationsConfig.

    Raises:
        SystemExit: with a message that says what is wrong, or 2 for wrong arguments.
    """
    asked = _parser().parse_args(arguments)
    try:
        config = OperationsConfig.from_json(configuration)
    except ShapeError as error:
        sys.exit(f"No configuration of a platform came in: {error}")
    model = next((model for model in config.models if model.name == asked.model), None)
    if model is None:
        names = ", ".join(model.name for model in config.models)
        sys.exit(f"{config.platform} has no model {asked.model!r}; its models: {names}")
    try:
        hold = None if asked.release else wanted("asleep" if asked.asleep else "awake", asked.until or "", now())
        put((connect or _connect)(config), model, hold)
    except (HoldError, KubernetesError, ClientError, BotoCoreError) as error:
        sys.exit(str(error))
    if hold is None:
        return f"{model.name} is no longer held; schedule and budget decide again within minutes"
    return f"{model.name} is held {hold.state} until {hold.until.isoformat()}; it follows within minutes"


def _connect(config: OperationsConfig) -> KubernetesClient:
    return kubernetes.connect(config.platform, region=config.region)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hold", description="Keep a model awake or asleep until a time.")
    parser.add_argument("model", help="its name in platform.yaml")
    parser.add_argument("until", nargs="?", help="a time with its zone, or a length such as 8h")
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--asleep", action="store_true", help="asleep instead of awake")
    way.add_argument("--release", action="store_true", help="let go of it: schedule and budget decide again")
    return parser


if __name__ == "__main__":
    print(main(sys.argv[1:], configuration=sys.stdin.read()))
