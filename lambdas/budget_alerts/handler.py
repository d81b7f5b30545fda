"""Once a day: ask AWS what it has cost, remember it, let guardrails act, and say what somebody should know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lambdas.adapters.observability import logger, metrics, tracer
from lambdas.budget_alerts.report import report
from lambdas.runtime import runtime

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


@logger.inject_lambda_context(clear_state=True)
@tracer.capture_lambda_handler(capture_response=False)
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """The schedule's event says nothing that the clock does not: a run that is late or doubled reports the present."""
    found = report(runtime())
    return {"gross_usd": str(found.gross_usd), "alerts": list(found.alerts)}
