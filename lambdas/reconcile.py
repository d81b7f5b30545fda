"""Make the cluster what it should be: look, decide, apply, look again, tell.

All functions end here, whatever woke them. Nothing depends on the event, so an evaluation that was missed, doubled or
late is put right by the next one.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import Final

from aws_lambda_powertools.metrics import MetricUnit

from genai_finops.operations.changes import Patch, changes
from genai_finops.operations.desired import Desired, desired_state
from genai_finops.operations.facts import Facts
from genai_finops.operations.observed import Observed
from genai_finops.operations.verify import Deviation, FollowUp, follow_up, second_road, verify
from lambdas import memory, telling
from lambdas.adapters.cluster import Applied, ClusterState, Failure
from lambdas.adapters.facts import Fact
from lambdas.adapters.kubernetes_errors import KubernetesError
from lambdas.adapters.observability import logger, metrics, tracer
from lambdas.adapters.observed import observed
from lambdas.adapters.prometheus import Load, PrometheusError, PrometheusUnreachableError
from lambdas.memory import FOLLOWING, Following
from lambdas.runtime import Runtime
from lambdas.telling import Unsent

ATTEMPTS: Final = 4
"""Looks at the cluster, when somebody else keeps changing what we are about to change."""

SUCCEEDED: Final = "ReconcileSucceeded"
"""One for each evaluation in which everything was done. The alarm counts Lambda's own runs less errors instead, since
this metric does not tell two platforms of one region apart."""

KEEP_FOLLOWING: Final = timedelta(days=30)
LATEST: Final = "latest"


class ReconcileError(Exception):
    """Parts could not be done, all named; everything else was."""


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What an evaluation came to.

    Attributes:
        shown: the cluster after the changes.
        problems: what failed, in words.
    """

    desired: Desired
    shown: Observed
    facts: Facts
    done: tuple[Patch, ...]
    deviations: tuple[Deviation, ...]
    problems: tuple[str, ...]


@tracer.capture_method(capture_response=False)
def reconcile(runtime: Runtime, *, because: str, state: ClusterState | None = None) -> Reconciled:
    """Bring the cluster to where it should be, and tell people what they should know.

    Args:
        state: a look at the cluster of a moment ago, to save one.

    Raises:
        ReconcileError: when something could not be done; the rest was.
        KubernetesError: when the cluster cannot be seen.
    """
    found = evaluate(runtime, because=because, state=state)
    if found.problems:
        raise ReconcileError("\n".join(found.problems))
    return found


def evaluate(runtime: Runtime, *, because: str, state: ClusterState | None = None) -> Reconciled:
    """As `reconcile`, with what failed as a part of the answer; for callers that have more to do."""
    metrics.add_metric("ReconcileStarted", MetricUnit.Count, 1)
    state = state or runtime.cluster.observe()
    load = _load(runtime)
    facts = memory.recall(runtime, runtime.now())
    done, problems, shown, untouched = _converge(runtime, facts, load, state)
    if not untouched:
        shown = observed(runtime.cluster.observe(), runtime.config, load)
    now = runtime.now()
    desired = desired_state(runtime.config, facts, shown, now)
    deviations = verify(desired, shown)
    before = _following(runtime)
    follow = follow_up(deviations, before.first_seen, before.told, now)
    by_second_road = _apply(runtime, second_road(follow.retry, desired, shown))
    done += by_second_road.done
    problems += [str(failure) for failure in by_second_road.failures]
    unsent = telling.tell(runtime, desired, facts, follow, before.notices, now)
    problems += map(str, unsent)
    _remember(runtime, _told(desired, follow, unsent), before, now)
    found = Reconciled(desired, shown, facts, tuple(done), deviations, tuple(problems))
    _measure(found, because)
    return found


def _converge(
    runtime: Runtime, facts: Facts, load: dict[str, Load] | None, state: ClusterState
) -> tuple[list[Patch], list[str], Observed, bool]:
    """Apply until there is no conflict: what was done, what failed, the last look, and whether it still holds."""
    done: list[Patch] = []
    for attempt in count():
        shown = observed(state, runtime.config, load)
        wanted = desired_state(runtime.config, facts, shown, runtime.now())
        patches = changes(wanted, shown)
        applied = _apply(runtime, patches)
        done += applied.done
        problems = [str(failure) for failure in applied.failures]
        if not applied.conflicts:
            return done, problems, shown, not patches
        if attempt + 1 >= ATTEMPTS:
            names = ", ".join(f"{patch.kind} {patch.name}" for patch in applied.conflicts)
            return done, [*problems, f"{names}: changed by somebody else {ATTEMPTS} times"], shown, False
        runtime.timing.sleep(runtime.timing.delay(attempt))
        state = runtime.cluster.observe()
    raise AssertionError("count() does not end")


def _apply(runtime: Runtime, patches: tuple[Patch, ...]) -> Applied:
    applied = runtime.cluster.apply(patches)
    for patch in applied.done:
        reasons = [f"{reason.rule}: {reason.text}" for reason in patch.reasons]
        logger.info("changed", subject=patch.subject, kind=patch.kind, body=patch.body, reasons=reasons)
    for failure in applied.failures:
        _log_failure(failure)
    return applied


def _log_failure(failure: Failure) -> None:
    logger.error("not changed", subject=failure.patch.subject, kind=failure.patch.kind, error=str(failure.error))


def _load(runtime: Runtime) -> dict[str, Load] | None:
    """Requests by model; None when nobody can say, which stops no wake and lets busy models finish."""
    try:
        return runtime.prometheus.load()
    except (PrometheusUnreachableError, PrometheusError, KubernetesError) as error:
        logger.warning("going on without Prometheus", error=str(error))
        metrics.add_metric("PrometheusUnreachable", MetricUnit.Count, 1)
        return None


def _following(runtime: Runtime) -> Following:
    fact = runtime.facts.get(FOLLOWING, LATEST)
    return fact.what if fact else Following()


def _told(desired: Desired, follow: FollowUp, unsent: list[Unsent]) -> Following:
    missed = {key for one in unsent for key in one.news.about}
    return Following(
        first_seen=follow.first_seen,
        told=tuple(sorted(follow.told - missed)),
        notices=tuple(sorted({notice.key for notice in desired.notices} - missed)),
    )


def _remember(runtime: Runtime, following: Following, before: Following, now: datetime) -> None:
    """The last one wins: two at once saw the same, and what was told is guarded by its claim."""
    if following != before:
        fact = Fact(kind=FOLLOWING, id=LATEST, at=now, until=now + KEEP_FOLLOWING, what=following)
        runtime.facts.put(fact, merge=lambda stored, come: come)


def _measure(found: Reconciled, because: str) -> None:
    problems = found.problems
    models = found.desired.models.values()
    counted = {
        SUCCEEDED: int(not problems),
        "ReconcileProblems": len(problems),
        "ObjectsChanged": len(found.done),
        "Deviations": len(found.deviations),
        "ModelsAsleep": sum(model.asleep for model in models),
        "ModelsWaking": sum(model.waking for model in models),
        "ReplicasAtRisk": sum(risk.replicas for risk in found.desired.at_risk.values()),
        "SpotPoolsResting": len(found.desired.resting),
        "GuardrailsInForce": len(found.desired.guardrails.levels),
    }
    for name, value in counted.items():
        metrics.add_metric(name, MetricUnit.Count, value)
    log = logger.error if problems else logger.info
    log("reconciled", extra={"because": because, "problems": problems, **counted})
