"""What is asked for, and whether a run gives it."""

from genai_finops.planner.performance.replica import ReplicaPerformance
from genai_finops.planner.results import ObjectiveTarget, Run, Verdict
from genai_finops.planner.steady_state import Load, alone, largest_batch
from genai_finops.spec import Model


def target_of(model: Model, inter_token_seconds: float | None = None) -> ObjectiveTarget:
    """The objective of the platform file, and one for the gaps between tokens, which the file does not have."""
    wanted = model.objective
    return ObjectiveTarget(wanted.time_to_first_token_seconds, inter_token_seconds, wanted.percent)


def attained(target: ObjectiveTarget, run: Run) -> bool:
    """Whether enough of the requests that arrived met every part; not without requests."""
    return run.attainment_share is not None and run.attainment_share * 100 >= target.percent


def verdict(target: ObjectiveTarget, nominal: Run, slow: Run) -> Verdict:
    """Whether the objective is met, and whether it still is at the slow end of the error bars."""
    if nominal.attainment_share is None:
        return "no requests"
    if not attained(target, nominal):
        return "does not hold"
    return "holds" if attained(target, slow) else "holds at nominal only"


def slowness(performance: ReplicaPerformance, request: Load, objective: ObjectiveTarget) -> str:
    """Why even a request with a replica to itself misses the objective; empty when it does not."""
    if largest_batch(performance, request) < 1:
        return (
            f"a request of {request.input_tokens + request.output_tokens:.0f} tokens does not fit: it takes "
            f"{min(performance.max_tokens, performance.cache_tokens)}"
        )
    best, wanted = alone(performance, request), objective.time_to_first_token_seconds
    if best.time_to_first_token_seconds > wanted:
        first = f"{best.time_to_first_token_seconds:.2f} s"
        return f"the first token takes {first} with a replica to itself; the objective is {wanted:g} s"
    between = objective.inter_token_seconds
    if between is not None and best.inter_token_seconds > between:
        gap = f"{best.inter_token_seconds * 1000:.1f} ms"
        return f"a token takes {gap} with a replica to itself; the objective is {between * 1000:g} ms"
    return ""
