"""Takes EC2's signs from the queue: remember each, then make the cluster ready for what they announce."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.metrics import MetricUnit, single_metric

from genai_finops.operations.losses import Sign
from lambdas import memory
from lambdas.adapters.observability import NAMESPACE, logger, metrics, tracer
from lambdas.reconcile import reconcile
from lambdas.runtime import Runtime, runtime
from lambdas.spot_interruption.events import parse_signs
from lambdas.spot_interruption.signs import Scene

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


@logger.inject_lambda_context(clear_state=True)
@tracer.capture_lambda_handler(capture_response=False)
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Remember the signs of all messages, then reconcile once for all of them.

    A message that cannot be read fails alone. A reconcile that fails brings all of them back: the facts are there
    already, and what was done is not done twice.
    """
    batch = Batch(runtime())
    failed = [message["messageId"] for message in event["Records"] if not batch.keep(message)]
    metrics.add_metric("SignsRecorded", MetricUnit.Count, len(batch.recorded))
    if batch.recorded:
        reconcile(runtime(), because=", ".join(sorted(batch.recorded)), state=batch.scene.state)
    return {"batchItemFailures": [{"itemIdentifier": id} for id in failed]}


class Batch:
    """The messages of one invocation.

    Powertools has a batch processor. It takes a fifth of what boto3 takes to import, for streams and models that are
    not used here, and this function is the one that must be quick.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.scene = Scene(runtime)
        self.recorded: set[str] = set()
        self._runtime = runtime

    def keep(self, message: Mapping[str, Any]) -> bool:
        """Remember what a message says; False when it must come back, and in the end go to the dead letters."""
        try:
            self._keep(json.loads(message["body"]))
        except Exception:
            logger.exception("a message comes back", extra={"body": message["body"][:1000]})
            return False
        return True

    def _keep(self, event: Mapping[str, Any]) -> None:
        told = parse_signs(event)
        if not told:
            logger.info("nothing to act on", extra={"event": event})
            return
        for sign in self.scene.signs(told):
            if memory.record_sign(self._runtime, sign).is_news:
                _count(sign)
            self.recorded.add(f"{sign.kind} {sign.instance_id}")


def _count(sign: Sign) -> None:
    with single_metric("SpotSigns", MetricUnit.Count, 1, namespace=NAMESPACE) as metric:
        metric.add_dimension("kind", sign.kind)
        metric.add_dimension("instance_type", sign.pool.instance_type if sign.pool else "unknown")
        metric.add_dimension("zone", sign.pool.zone if sign.pool else "unknown")
