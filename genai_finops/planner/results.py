"""What each command of the planner answers, as plain values that any page or file can be made of.

Nothing here computes: `evaluate`, `compare`, `plan` and `difference` fill these in, `present` and `report` show them.
Amounts are exact and None where a price is not known, which spreads to every total that it would have gone into.
A month has 730 hours, except where the article's 720 are reproduced.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from genai_finops.catalog import Purchase
from genai_finops.planner.provenance import Origin, Provenance
from genai_finops.spec import Warning
from genai_finops.spec.model import Spot

if TYPE_CHECKING:  # what reads these results must not need numpy
    from genai_finops.planner.simulation.outcome import Counts, NodeUse

FINE: Final = 0
VIOLATED: Final = 2
"""Exit codes; 1 is an error, which has no result."""

Verdict = Literal["holds", "holds at nominal only", "holds, slow end not run", "does not hold", "no requests"]
"""Whether the objective is met: at the slow end of the error bars too, only where the numbers are taken as they are,
so far as a run without the slow end can say, or not even there."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ObjectiveTarget:
    """What was asked for.

    Attributes:
        time_to_first_token_seconds: from arrival.
        inter_token_seconds: mean over the gaps of a request; None is not asked for.
        percent: of all requests that arrived, which must meet every part.
    """

    time_to_first_token_seconds: float
    inter_token_seconds: float | None
    percent: float


@dataclass(frozen=True, slots=True)
class TrafficSummary:
    """The load that was simulated or computed with.

    Attributes:
        duration_seconds: that the traffic stands for; what is scaled to a month.
        peak_requests_per_second: mean of the busiest minute.
    """

    name: str
    start: datetime
    duration_seconds: float
    requests: int
    input_tokens: int
    output_tokens: int
    peak_requests_per_second: float


@dataclass(frozen=True, slots=True)
class PriceUsed:
    """One hour of a node bought in one way.

    Attributes:
        usd_hour: of the instance; None where the catalog does not know it.
        volume_usd_hour: of the node's root volume.
        checked: the day of the price; None with an unknown price.
        source: the price list, or the price series that was given.
    """

    instance: str
    purchase: Purchase
    usd_hour: Decimal | None
    volume_usd_hour: Decimal
    region: str
    source: str
    checked: date | None


# Simulation


@dataclass(frozen=True, slots=True)
class Latency:
    """Times of one kind, of completed requests; None without any.

    Attributes:
        objective_seconds: that this kind has; None without one.
        edges_seconds: of classes, ascending, one more than `counts`; both empty without values.
    """

    count: int
    mean_seconds: float | None
    p50_seconds: float | None
    p90_seconds: float | None
    p95_seconds: float | None
    p99_seconds: float | None
    objective_seconds: float | None
    edges_seconds: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CostSplit:
    """What node time was paid for; volumes included.

    Attributes:
        busy_usd: slots with at least one request.
        idle_usd: ready replicas without any.
        starting_usd: launching, loading, draining: cold starts.
        placeholder_usd: held warm.
        empty_usd: slots of nodes that nothing uses.
        spot_usd, on_demand_usd: the same total, by purchase.
    """

    busy_usd: Decimal | None
    idle_usd: Decimal | None
    starting_usd: Decimal | None
    placeholder_usd: Decimal | None
    empty_usd: Decimal | None
    spot_usd: Decimal | None
    on_demand_usd: Decimal | None
    total_usd: Decimal | None


@dataclass(frozen=True, slots=True)
class UnitCost:
    """The whole cost over each of what it bought; they are views of one amount and do not add up. None is unknown, or
    nothing was bought.

    Attributes:
        usd_per_million_input_tokens: over prompts of completed requests.
        usd_per_million_output_tokens: over answers that were completed.
        usd_per_good_request: over requests that met every part of the objective.
    """

    usd_per_million_input_tokens: Decimal | None
    usd_per_million_output_tokens: Decimal | None
    usd_per_million_total_tokens: Decimal | None
    usd_per_good_request: Decimal | None


@dataclass(frozen=True, slots=True)
class Run:
    """One simulation of one model.

    Attributes:
        attainment_share: requests that met the objective, of all that arrived; None without any.
        simulated: cost of the run as it was, to its last second.
        monthly: the same scaled to 730 hours of this traffic.
        idle_cost_share: of the cost: ready without requests, and slots that nothing uses.
        cold_start_cost_share: of the cost: launching, loading and draining.
        utilization_share: of the ready replicas' time with at least one request.
        saturated_share: of the time with ready replicas in which requests waited for a slot.
        spot_node_hours, on_demand_node_hours: paid in the run.
        at_limit_seconds: in which replicas were wanted that a limit of nodes forbade.
    """

    counts: "Counts"
    attainment_share: float | None
    time_to_first_token: Latency
    inter_token: Latency
    request_inter_token: Latency
    end_to_end: Latency
    simulated: CostSplit
    monthly: CostSplit
    unit_cost: UnitCost
    idle_cost_share: float | None
    cold_start_cost_share: float | None
    utilization_share: float
    saturated_share: float
    spot_node_hours: Decimal
    on_demand_node_hours: Decimal
    peak_replicas: int
    peak_nodes: int
    interruptions: int
    launches: int
    on_demand_launches: int
    at_limit_seconds: float
    end_seconds: float


@dataclass(frozen=True, slots=True)
class NodeCost:
    """Node time of one use within an interval, bought in one way.

    Attributes:
        node_hours: of whole nodes; a slot's share of its node.
        usd_hour, volume_usd_hour: of a node; the first is None where it is not known.
    """

    purchase: Purchase
    use: "NodeUse"
    node_hours: Decimal
    usd_hour: Decimal | None
    volume_usd_hour: Decimal
    usd: Decimal | None


@dataclass(frozen=True, slots=True)
class Interval:
    """One row over time; means are over the interval.

    Attributes:
        start: aware.
        usd: paid for nodes, the sum of `costs`; None where a price is not known.
        time_to_first_token_p50_seconds, ..p95, inter_token_p95_seconds: of requests that arrived in it; None without.
    """

    start: datetime
    length_seconds: float
    arrived: int
    completed: int
    good: int
    input_tokens: int
    output_tokens: int
    waiting_mean: float
    waiting_max: int
    running_mean: float
    ready_mean: float
    starting_mean: float
    asleep_share: float
    spot_nodes_mean: float
    on_demand_nodes_mean: float
    interruptions: int
    time_to_first_token_p50_seconds: float | None
    time_to_first_token_p95_seconds: float | None
    inter_token_p95_seconds: float | None
    usd: Decimal | None
    costs: tuple[NodeCost, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """How a model was placed."""

    instance: str
    tensor_parallel_size: int
    replicas_per_node: int
    purchases: tuple[Purchase, ...]


@dataclass(frozen=True, slots=True)
class ModelSimulation:
    """One model under its traffic, three times: as its numbers are, and at both ends of their error bars.

    Attributes:
        fast, slow: the ends.
        band_reason: why a percentile is to be read as a band from `fast` to `slow` and not as a number; empty when
            the load is far enough from the capacity for the number.
        decode_origin, prefill_origin: of the performance behind it.
        intervals: of the nominal run.
    """

    model: str
    layout: Layout
    objective: ObjectiveTarget
    traffic: TrafficSummary
    verdict: Verdict
    nominal: Run
    fast: Run
    slow: Run
    band_reason: str
    decode_origin: Origin
    prefill_origin: Origin
    prices: tuple[PriceUsed, ...]
    intervals: tuple[Interval, ...]
    warnings: tuple[Warning, ...]

    def band(self, value: Callable[[Run], T | None]) -> tuple[T, T, T] | None:
        """A value of the three runs as lowest, nominal and highest; None where one of them has none."""
        fast, nominal, slow = value(self.fast), value(self.nominal), value(self.slow)
        if fast is None or nominal is None or slow is None:
            return None
        ordered = sorted((fast, nominal, slow))  # type: ignore[type-var] # numbers of one kind
        return ordered[0], nominal, ordered[2]


@dataclass(frozen=True, slots=True)
class MonthlyLine:
    """A quantity times a price, each month.

    Attributes:
        paths: settings of the platform file that change it.
        provenance: of the quantity: "price list" where nothing is assumed about it.
    """

    name: str
    quantity: Decimal
    unit: str
    usd_per_unit: Decimal
    monthly_usd: Decimal
    paths: tuple[str, ...]
    provenance: Literal["price list", "assumed"]
    source: str
    checked: date


@dataclass(frozen=True, slots=True)
class UntrafficedModel:
    """A model that no traffic was given for: what it costs at least, and at most.

    Attributes:
        at_min_monthly_usd: at min_replicas whenever awake, on Spot where allowed.
        ceiling_monthly_usd: at max_replicas whenever awake, without any Spot where the model may go without.
    """

    model: str
    at_min_monthly_usd: Decimal | None
    ceiling_monthly_usd: Decimal | None


@dataclass(frozen=True, slots=True)
class PlatformSimulation:
    """Answer of `simulate`.

    Attributes:
        price_region: the region whose prices these are; elsewhere they are an indication.
        serving_monthly_usd: all models; those without traffic at their least.
        total_low_monthly_usd, total_high_monthly_usd: with each model's cheapest and dearest run.
        budget_monthly_usd: None without a budget.
    """

    platform: str
    region: str
    price_region: str
    seed: int
    models: tuple[ModelSimulation, ...]
    without_traffic: tuple[UntrafficedModel, ...]
    fixed_lines: tuple[MonthlyLine, ...]
    fixed_monthly_usd: Decimal
    serving_monthly_usd: Decimal | None
    total_monthly_usd: Decimal | None
    total_low_monthly_usd: Decimal | None
    total_high_monthly_usd: Decimal | None
    budget_monthly_usd: Decimal | None
    warnings: tuple[Warning, ...]

    @property
    def is_over_budget(self) -> bool:
        """An unknown total is not said to be over."""
        return _is_over(self.total_monthly_usd, self.budget_monthly_usd)

    @property
    def exit_code(self) -> int:
        missed = any(model.verdict == "does not hold" for model in self.models)
        return VIOLATED if missed or self.is_over_budget else FINE


# Comparison


@dataclass(frozen=True, slots=True)
class ArticleColumn:
    """One side of the article's cost table.

    Attributes:
        monthly_usd, usd_per_million_tokens: rounded to cents as printed there.
    """

    instance: str
    usd_hour: Decimal
    hours: int
    monthly_usd: Decimal
    million_tokens: int
    usd_per_million_tokens: Decimal


@dataclass(frozen=True, slots=True)
class Correction:
    """A claim of the article, and what is right."""

    claim: str
    right: str


@dataclass(frozen=True, slots=True)
class ArticleTable:
    """The article's table, recomputed.

    Attributes:
        saved_share: of the monthly amounts.
        assumption: under which it holds.
    """

    baseline: ArticleColumn
    optimized: ArticleColumn
    saved_share: Decimal
    assumption: str
    corrections: tuple[Correction, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to serve the traffic, at steady state.

    Attributes:
        is_feasible: False is no alternative, for `reason`; what would have been computed is None.
        reason: of a feasible one, how far it is behind the winner; empty for the winner.
        interruption_band: of Spot capacity, such as "<5%"; empty on demand and where unknown.
        provenance, relative_error, performance_source: of the performance behind it.
        replicas, nodes: that the peak needs, awake all the time.
        capacity_requests_per_second: of one replica, within the objective and the bound of utilization.
        peak_utilization_share: of that capacity.
        time_to_first_token_seconds, inter_token_seconds: estimated at the peak; the first is what the objective's share
            of requests does not exceed.
        node_usd_hour: its volume included.
        ..._low, ..._high: at the ends of the error bars; a high end of None does not meet the objective there.
    """

    instance: str
    tensor_parallel_size: int
    replicas_per_node: int
    purchase: Purchase
    price: PriceUsed
    is_feasible: bool
    reason: str
    interruption_band: str = ""
    provenance: Provenance | None = None
    relative_error: float | None = None
    performance_source: str = ""
    replicas: int | None = None
    nodes: int | None = None
    capacity_requests_per_second: float | None = None
    peak_utilization_share: float | None = None
    time_to_first_token_seconds: float | None = None
    inter_token_seconds: float | None = None
    node_usd_hour: Decimal | None = None
    monthly_usd: Decimal | None = None
    monthly_low_usd: Decimal | None = None
    monthly_high_usd: Decimal | None = None
    usd_per_million_input_tokens: Decimal | None = None
    usd_per_million_output_tokens: Decimal | None = None
    usd_per_million_output_tokens_low: Decimal | None = None
    usd_per_million_output_tokens_high: Decimal | None = None
    usd_per_million_total_tokens: Decimal | None = None
    usd_per_million_total_tokens_low: Decimal | None = None
    usd_per_million_total_tokens_high: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """A published cost, of another workload: to be put beside ours, not to be compared to the cent."""

    instance: str
    purchase: Purchase
    usd_per_million_output_tokens_low: Decimal
    usd_per_million_output_tokens_high: Decimal
    source: str


@dataclass(frozen=True, slots=True)
class ComparedLoad:
    """The load that the alternatives were sized for.

    Attributes:
        peak_requests_per_second: what replicas are counted for.
        utilization_bound_share: of a replica's capacity that the peak may use.
    """

    name: str
    mean_requests_per_second: float
    peak_requests_per_second: float
    mean_input_tokens: float
    mean_output_tokens: float
    utilization_bound_share: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Answer of `compare`.

    Attributes:
        alternatives: the feasible ones first, the cheapest first.
        winner: the first of them; None when nothing is feasible.
        is_close: the winner's error bar overlaps the next one's: measure before you choose.
        notes: what was assumed.
    """

    article: ArticleTable
    model: str
    load: ComparedLoad
    objective: ObjectiveTarget
    alternatives: tuple[Alternative, ...]
    winner: Alternative | None
    is_close: bool
    evidence: tuple[Evidence, ...]
    notes: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        return FINE if self.winner else VIOLATED


# Plan


@dataclass(frozen=True, slots=True)
class Setting:
    """What a candidate sets in the platform file for its model.

    Attributes:
        max_num_seqs: requests that a replica serves at once.
        max_model_len: longest prompt plus answer, in tokens.
        warm_replicas: that there is room for on nodes that are there already.
        schedule: in words; empty is awake all the time.
    """

    family: str
    size: str
    tensor_parallel_size: int
    max_num_seqs: int
    max_model_len: int
    min_replicas: int
    max_replicas: int
    queue_per_replica: int
    warm_replicas: int
    spot: Spot
    schedule: str

    @property
    def instance(self) -> str:
        return f"{self.family}.{self.size}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One configuration that was looked at.

    Attributes:
        rank: from 1, among those that were simulated; None for one that was ruled out before.
        stage: how far it came.
        is_current: what the file says today.
        verdict: None when it was not simulated.
        monthly_usd: of this model's nodes; low and high are the ends of the error bars.
        reason: why it lost; empty for the winner.
        interruptions_a_month: of its Spot nodes, expected at their published rate; a short traffic seldom has one.
    """

    setting: Setting
    rank: int | None
    stage: Literal["screened", "simulated"]
    is_current: bool
    verdict: Verdict | None
    monthly_usd: Decimal | None
    monthly_low_usd: Decimal | None
    monthly_high_usd: Decimal | None
    unit_cost: UnitCost | None
    attainment_share: float | None
    attainment_slow_share: float | None
    time_to_first_token_p95_seconds: float | None
    inter_token_p95_seconds: float | None
    provenance: Provenance | None
    interruptions_a_month: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Change:
    """One setting of the platform file; None is not there."""

    path: str
    old: object
    new: object


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """The search for one model.

    Attributes:
        candidates: simulated ones by rank, then those ruled out.
        winner: the cheapest that meets the objective; None when none does.
        current: what the file says today; None when the catalog cannot price or simulate it.
        changes: from the file to the winner; empty when the file has it already.
        yaml: the changed settings as a fragment of the file; empty without changes.
        saves_monthly_usd: against `current`; negative costs more.
        is_complete: False when the time ran out before every candidate was simulated.
    """

    model: str
    objective: ObjectiveTarget
    traffic: TrafficSummary
    candidates: tuple[Candidate, ...]
    winner: Candidate | None
    current: Candidate | None
    changes: tuple[Change, ...]
    yaml: str
    saves_monthly_usd: Decimal | None
    simulated: int
    screened: int
    is_complete: bool
    warnings: tuple[Warning, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Answer of `plan`."""

    platform: str
    region: str
    price_region: str
    seed: int
    models: tuple[ModelPlan, ...]
    notes: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        return FINE if all(model.winner for model in self.models) else VIOLATED


# Difference


@dataclass(frozen=True, slots=True)
class DifferenceLine:
    """One line of cost in two platforms.

    Attributes:
        sign: "+" is new, "-" is gone, "~" changed, " " did not.
        group: "fixed", or the name of a model.
        before_usd, after_usd: a month; None is not there, or unknown where `sign` is "~".
        change_usd: None where unknown.
        change_share: of before; None where there was nothing, or unknown.
    """

    sign: Literal["+", "-", "~", " "]
    group: str
    name: str
    before_usd: Decimal | None
    after_usd: Decimal | None
    change_usd: Decimal | None
    change_share: float | None


@dataclass(frozen=True, slots=True)
class ServiceChange:
    """A model's objective before and after; shares are None where the model is not there or without traffic."""

    model: str
    before_verdict: Verdict | None
    after_verdict: Verdict | None
    before_attainment_share: float | None
    after_attainment_share: float | None
    before_time_to_first_token_p95_seconds: float | None
    after_time_to_first_token_p95_seconds: float | None


@dataclass(frozen=True, slots=True)
class Difference:
    """Answer of `diff`.

    Attributes:
        basis: how the models were priced: simulated on their traffic, or at min_replicas without.
        before_ceiling_usd, after_ceiling_usd: a month at max_replicas whenever awake, fixed cost included.
        service: of models with traffic.
    """

    before: str
    after: str
    basis: Literal["simulated", "min_replicas"]
    lines: tuple[DifferenceLine, ...]
    before_usd: Decimal | None
    after_usd: Decimal | None
    change_usd: Decimal | None
    change_share: float | None
    before_ceiling_usd: Decimal | None
    after_ceiling_usd: Decimal | None
    service: tuple[ServiceChange, ...]
    after_budget_usd: Decimal | None
    warnings: tuple[Warning, ...]

    @property
    def is_over_budget(self) -> bool:
        return _is_over(self.after_usd, self.after_budget_usd)

    @property
    def exit_code(self) -> int:
        missed = any(change.after_verdict == "does not hold" for change in self.service)
        return VIOLATED if missed or self.is_over_budget else FINE


# Sensitivity


@dataclass(frozen=True, slots=True)
class SensitivityPoint:
    """One run with something multiplied; 1 is as given."""

    factor: float
    monthly_usd: Decimal | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How the platform's monthly cost follows what nobody controls; each line ascending, with factor 1."""

    spot_price: tuple[SensitivityPoint, ...]
    traffic: tuple[SensitivityPoint, ...]


# Calibration


@dataclass(frozen=True, slots=True)
class CalibrationError:
    """One latency of one benchmark, and what the fitted profile says of it.

    Attributes:
        file: of the benchmark's result.
        concurrency: requests at once; None where a rate was offered instead.
        relative_error: of the profile, against what was measured; negative is too fast.
    """

    file: str
    concurrency: float | None
    latency: Literal["time to first token", "inter token", "request inter token", "end to end"]
    statistic: Literal["mean", "p50", "p90", "p95", "p99"]
    measured_seconds: float
    fitted_seconds: float
    relative_error: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """Answer of `calibrate`: how well the profile fits what it was made from. The profile is a file of its own.

    Attributes:
        formats: of the results that were read, such as "vllm bench serve".
        failed: requests that are left out of every latency.
        decode_relative_error, prefill_relative_error: error bars that the profile carries from now on.
        notes: what was read as what, and what was left out.
    """

    model: str
    instance: str
    tensor_parallel_size: int
    formats: tuple[str, ...]
    requests: int
    failed: int
    decode_relative_error: float
    prefill_relative_error: float
    errors: tuple[CalibrationError, ...]
    notes: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        return FINE


Result = Calibration | Comparison | PlatformSimulation | Plan | Difference | Sensitivity


def _is_over(total_usd: Decimal | None, budget_usd: Decimal | None) -> bool:
    return total_usd is not None and budget_usd is not None and total_usd > budget_usd
