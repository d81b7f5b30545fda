"""Whatever happens, in whatever order, twice or never: what must hold always, and where everything ends up.

A random history is fed to `desired_state` and its patches to a small model of the cluster. Events arrive late, twice,
in another order or not at all; patches get lost; people hold models and change annotations by hand.
"""

from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from genai_finops.operations import holds, pauses
from genai_finops.operations.breaker import BreakerPolicy
from genai_finops.operations.budget import Threshold
from genai_finops.operations.changes import changes
from genai_finops.operations.config import NodePoolConfig
from genai_finops.operations.desired import Desired, Rule, desired_state
from genai_finops.operations.facts import Facts
from genai_finops.operations.losses import Pool, SignKind
from genai_finops.operations.verify import verify
from genai_finops.operations.windows import Schedule, Window, is_awake, parse_days, parse_time
from tests.unit.operations.clusters import Cluster
from tests.unit.operations.worlds import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
    OFFICE,
    ON_DEMAND,
    SECOND,
    SPOT_POOL,
    budget,
    config,
    model,
    report,
    sign,
)

ZONES = ("us-east-1a", "us-east-1b")
NIGHTS = Schedule(
    "America/New_York", (Window(parse_days("Sun-Thu"), parse_time("22:00"), parse_time("06:00")),), (), 30
)
CONFIG = config(
    model("chat", critical=True, schedule=OFFICE, max_replicas=6),
    model("code", family="g6e", max_replicas=4, placeholders=1, placeholder_deployment="code-warm"),
    model("batch", schedule=NIGHTS, min_replicas=2, max_replicas=6, spot="only"),
    node_pools=(
        SPOT_POOL,
        ON_DEMAND,
        NodePoolConfig("g6e-spot", "g6e", "spot", ZONES),
        NodePoolConfig("g6e-on-demand", "g6e", "on-demand", ZONES),
    ),
    breaker=BreakerPolicy(window_minutes=60, limit=3, cooldown_minutes=60, max_doublings=2),
    budget=budget(
        Threshold("actual", 50, "cap_replicas", 1),
        Threshold("actual", 70, "on_demand_off"),
        Threshold("actual", 90, "sleep_non_critical"),
    ),
)
MODELS = st.sampled_from([one.name for one in CONFIG.models])


class History(RuleBasedStateMachine):
    """What may happen."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.config = CONFIG
        self.cluster = Cluster(CONFIG, NOW)
        self.under_way = []
        self.touched = set()
        self.signs = []
        self.reports = []
        self.desired = None
        self.resting = {}
        self.signs_seen = 0

    def facts(self, signs=None):
        return Facts(tuple(self.signs if signs is None else signs), tuple(self.reports))

    def evaluate(self, given=None, at=None, seen=None, known=None) -> Desired:
        at = at or self.now
        return desired_state(given or self.config, known or self.facts(), seen or self.cluster.observe(at), at)

    @initialize(offset=st.integers(0, 7 * 24 * 60))
    def begin_some_day(self, offset):
        self.now = NOW + offset * MINUTE
        self.cluster = Cluster(CONFIG, self.now)

    @rule(minutes=st.one_of(st.integers(1, 20), st.integers(1, 600)))
    def time_passes(self, minutes):
        self.now += minutes * MINUTE

    @precondition(lambda self: self.cluster.nodes)
    @rule(choice=st.integers(0, 99), kind=st.sampled_from(SignKind), voluntary=st.booleans())
    def ec2_gives_a_sign(self, choice, kind, voluntary):
        node = self.cluster.nodes[choice % len(self.cluster.nodes)]
        self.under_way.append(
            sign(
                node.instance_id,
                kind,
                self.now,
                event_id=f"{len(self.signs)}-{len(self.under_way)}",
                pool=node.pool,
                node_pool=node.node_pool,
                capacity_type=node.capacity_type,
                replicas=dict(node.replicas),
                serving={name: served.wanted for name, served in self.cluster.models.items()},
                voluntary=voluntary and kind is SignKind.GONE,
            )
        )

    @rule(family=st.sampled_from(["inf2", "g6e"]), zone=st.sampled_from(ZONES), minutes=st.integers(0, 90))
    def a_storm_has_taken_three_nodes(self, family, zone, minutes):
        """Heard of late, as the case may be."""
        for number in range(3):
            name = f"i-storm-{len(self.signs)}-{number}"
            at = self.now - (minutes + number) * MINUTE
            self.signs.append(sign(name, at=at, pool=Pool(f"{family}.xlarge", zone), node_pool=f"{family}-spot"))

    @precondition(lambda self: self.under_way)
    @rule(data=st.data(), twice=st.booleans())
    def some_events_arrive(self, data, twice):
        order = data.draw(st.permutations(self.under_way))
        count = data.draw(st.integers(1, len(order)))
        self.signs += order[:count] * (2 if twice else 1)
        self.under_way = order[count:]

    @precondition(lambda self: self.under_way)
    @rule()
    def an_event_is_lost(self):
        self.under_way.pop()

    @precondition(lambda self: self.signs)
    @rule(choice=st.integers(0, 99))
    def ec2_takes_a_node(self, choice):
        self.cluster.reclaim(self.signs[choice % len(self.signs)].instance_id)
        self.cluster.step(self.now)

    @rule(percent=st.integers(0, 120))
    def the_bill_is_read(self, percent):
        self.reports.append(report(self.config.budget.monthly_usd * percent / 100, self.now))

    @rule(usd=st.sampled_from(["500", "1000", "2000"]))
    def the_budget_is_changed_by_a_deploy(self, usd):
        self.config = replace(CONFIG, budget=replace(CONFIG.budget, monthly_usd=Decimal(usd)))
        self.cluster.with_config(self.config)

    @rule(name=MODELS, state=st.sampled_from(["awake", "asleep"]), minutes=st.integers(1, 400))
    def someone_holds_a_model(self, name, state, minutes):
        hold = holds.Hold(state, self.now + minutes * MINUTE)
        self.cluster.models[name].annotations[holds.HOLD] = hold.annotation()

    @rule(name=MODELS, text=st.sampled_from(["awake", "asleep until dawn", "awake until 2026-03-04T18:00:00"]))
    def someone_writes_a_hold_that_is_none(self, name, text):
        self.cluster.models[name].annotations[holds.HOLD] = text

    @rule(name=MODELS, pinned=st.sampled_from(["0", "1", "2"]))
    def someone_pins_a_model(self, name, pinned):
        self.touched.add(name)
        self.cluster.models[name].annotations[pauses.PAUSED_REPLICAS] = pinned

    @rule(name=MODELS, value=st.sampled_from(["true", "false"]))
    def someone_freezes_a_model(self, name, value):
        self.touched.add(name)
        self.cluster.models[name].annotations[pauses.PAUSED] = value

    @rule(name=MODELS, deaf=st.booleans())
    def keda_goes_deaf_or_hears_again(self, name, deaf):
        self.cluster.models[name].deaf = deaf

    @rule(name=MODELS)
    def someone_wakes_a_model_by_hand(self, name):
        served = self.cluster.models[name]
        if pauses.is_asleep(served.annotations):
            del served.annotations[pauses.PAUSED_REPLICAS]
            served.wanted = 1
            self.cluster.step(self.now)

    @rule(name=MODELS, load=st.integers(0, 12), requests=st.sampled_from([None, 0, 7]))
    def load_changes(self, name, load, requests):
        self.cluster.models[name].load = load
        self.cluster.models[name].requests = requests

    @rule(every=st.sampled_from([1, 2, 3]))
    def an_evaluation_loses_some_patches(self, every):
        seen = self.cluster.observe(self.now)
        self.desired = None
        self.cluster.apply(changes(self.evaluate(seen=seen), seen)[::every])
        self.cluster.step(self.now)

    @rule()
    def an_evaluation(self):
        seen = self.cluster.observe(self.now)
        self.desired = self.evaluate(seen=seen)
        self.cluster.apply(changes(self.desired, seen))
        patched = self.cluster.observe(self.now)
        assert changes(self.evaluate(seen=patched), patched) == (), "the same evaluation again changes nothing"
        self.cluster.step(self.now)
        self.check_the_breaker()
        self.check_replicas()

    # What must hold always

    def check_replicas(self):
        for name, found in self.desired.models.items():
            served = self.cluster.models[name]
            if found.someone or (name in self.touched and not found.asleep):
                continue  # theirs, while it is awake
            assert served.wanted <= found.config.max_replicas, "never above the maximum"
            assert found.config.min_replicas <= found.minimum <= found.maximum <= found.config.max_replicas
            if found.asleep:
                assert served.wanted == 0
            elif not any(reason.rule is Rule.BUSY for reason in found.reasons):
                assert served.wanted >= found.config.min_replicas or found.waking, "never below the minimum while awake"

    def check_the_breaker(self):
        """A pool that rests does so until the time it was given, unless there is news."""
        if len(self.signs) == self.signs_seen:
            for pool, opened in self.resting.items():
                if self.now < opened.until:
                    assert self.desired.resting[pool] == opened
                else:
                    assert pool not in self.desired.resting
            assert set(self.desired.resting) <= set(self.resting)
        self.resting, self.signs_seen = dict(self.desired.resting), len(self.signs)

    @invariant()
    def the_same_facts_give_the_same_answer_in_any_order(self):
        once = {one.key + str(one.at): one for one in self.signs}
        ordered = sorted(once.values(), key=lambda one: (one.instance_id, one.kind, one.at))
        facts = Facts(tuple(ordered), tuple(reversed(self.reports)) + tuple(self.reports))
        assert self.evaluate(known=facts) == self.evaluate()

    @invariant()
    def no_guardrail_touches_a_critical_model(self):
        guarded, free = self.evaluate(), self.evaluate(replace(self.config, budget=None))
        assert guarded.models["chat"] == free.models["chat"]
        assert not guarded.node_pools[ON_DEMAND.name].is_shut

    @invariant()
    def a_hold_is_obeyed_until_it_expires_and_not_a_second_longer(self):
        for name, served in self.cluster.models.items():
            hold = holds.read(served.annotations)
            if not isinstance(hold, holds.Hold):
                continue
            if self.now < hold.until:
                for moment in (self.now, hold.until - SECOND):
                    assert self.evaluate(at=moment).models[name].asleep is (hold.state == "asleep")
            after = max(self.now, hold.until)
            seen = self.cluster.observe(after)
            idle = replace(seen.models[name], requests=0)
            kept = {key: value for key, value in served.annotations.items() if key != holds.HOLD}
            bare = replace(idle, scaled_object=replace(idle.scaled_object, annotations=kept))
            without = self.evaluate(at=after, seen=replace(seen, models={**seen.models, name: bare}))
            with_it = self.evaluate(at=after, seen=replace(seen, models={**seen.models, name: idle}))
            assert with_it.models[name].asleep is without.models[name].asleep

    @invariant()
    def a_critical_model_follows_its_hours_and_its_holds_alone(self):
        hold = holds.read(self.cluster.models["chat"].annotations)
        if self.cluster.models["chat"].requests == 0 and not (isinstance(hold, holds.Hold) and self.now < hold.until):
            assert self.evaluate().models["chat"].asleep is not is_awake(OFFICE, self.now)

    # Where it ends

    def teardown(self):
        """After the last event: a cluster with this past and one without end up the same, and as they should be."""
        self.signs += self.under_way
        for name in self.touched:  # whoever wrote annotations takes them away again
            for annotation in (pauses.PAUSED_REPLICAS, pauses.PAUSED, pauses.FORCE_ACTIVATION, pauses.MEMORY):
                self.cluster.models[name].annotations.pop(annotation, None)
        other = Cluster(self.config, self.now)
        for name, served in self.cluster.models.items():
            other.models[name].load, other.models[name].deaf = served.load, served.deaf
            if holds.HOLD in served.annotations:
                other.models[name].annotations[holds.HOLD] = served.annotations[holds.HOLD]
        ended = [settle(cluster, self.config, self.facts(), self.now) for cluster in (self.cluster, other)]
        assert ended[0] == ended[1]


def settle(cluster: Cluster, given, facts, start: datetime):
    """Evaluations every three minutes without news, long enough for holds, rests and raised minima to end."""
    for number in range(20):
        evaluate_once(cluster, given, facts, start + number * HOUR)
    # Noon of a day on which both clusters are looked at, hours after the last boundary of any schedule.
    noon = (start + 2 * DAY).replace(hour=12, minute=30, second=0, microsecond=0)
    for number in range(20):
        evaluate_once(cluster, given, facts, noon + number * 3 * MINUTE)
    end = noon + HOUR
    seen = cluster.observe(end)
    desired = desired_state(given, facts, seen, end)
    assert changes(desired, seen) == ()
    assert verify(desired, seen) == ()
    return cluster.summary()


def evaluate_once(cluster, given, facts, now):
    for served in cluster.models.values():
        served.requests = 0
    seen = cluster.observe(now)
    cluster.apply(changes(desired_state(given, facts, seen, now), seen))
    cluster.step(now)


History.TestCase.settings = settings(max_examples=50, stateful_step_count=30)
TestWhateverHappens = History.TestCase
