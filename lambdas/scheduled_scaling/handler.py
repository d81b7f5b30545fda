"""Woken at each boundary of a schedule, every few minutes, or by hand: what it finds decides, not what woke it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.parser import BaseModel, ValidationError, parse

from lambdas.adapters.observability import logger, metrics, tracer
from lambdas.reconcile import reconcile
from lambdas.runtime import runtime


class Occasion(BaseModel):
    """What the schedule's `Input` says, for the log; Scheduler's own envelope has none of it but the time.

    Attributes:
        scheduled_time: of the occurrence; later ones of the same are late or repeated.
    """

    action: str = "look"
    model: str = ""
    scheduled_time: str = ""
    time: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.action, self.model, self.scheduled_time or self.time)))


if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


@logger.inject_lambda_context(clear_state=True)
@tracer.capture_lambda_handler(capture_response=False)
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Look, and do what is due."""
    found = reconcile(runtime(), because=str(_occasion(event)))
    return {"changed": [f"{patch.kind} {patch.name}" for patch in found.done]}


def _occasion(event: dict[str, Any]) -> Occasion:
    """Whatever it is, there is reason to look."""
    try:
        return parse(event=event, model=Occasion)
    except ValidationError as error:
        logger.warning("an event of no known form", error=str(error))
        return Occasion()
