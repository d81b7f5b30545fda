"""The export adds up to the simulation, in columns and values that FOCUS allows."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from genai_finops.planner import focus
from genai_finops.planner.evaluate import simulate_platform
from tests.platform_files import platform
from tests.unit.planner.services.service_worlds import NAME, TODAY, Made, changed, poisson

MANDATORY = {
    "BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd",
    "BillingPeriodStart", "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargePeriodEnd", "ChargePeriodStart",
    "ContractedCost", "EffectiveCost", "InvoiceIssuerName", "ListCost", "PricingQuantity", "PricingUnit",
    "ProviderName", "PublisherName", "ServiceCategory", "ServiceName",
}  # fmt: skip


@pytest.fixture(scope="module")
def simulation():
    over_the_edge = datetime(2026, 2, 28, 22, 30, tzinfo=UTC)
    return simulate_platform(platform("default"), {NAME: poisson(0.2, 3 * 3600, start=over_the_edge)}, today=TODAY)


@pytest.fixture(scope="module")
def rows(simulation):
    stream = io.StringIO()
    focus.write(simulation, stream)
    return list(csv.DictReader(io.StringIO(stream.getvalue())))


def total(rows, column, use=None):
    return sum(Decimal(row[column]) for row in rows if use is None or json.loads(row["Tags"])["use"] == use)


def nodes(rows):
    return [row for row in rows if json.loads(row["Tags"])["use"] != "fixed"]


def test_it_has_every_mandatory_column(rows):
    assert set(rows[0]) == set(focus.COLUMNS) >= MANDATORY


def test_node_rows_add_up_to_what_the_run_cost(rows, simulation):
    run = simulation.models[0].nominal
    assert total(nodes(rows), "BilledCost") == pytest.approx(run.simulated.total_usd)
    for use in ("busy", "idle"):
        assert total(rows, "BilledCost", use) == pytest.approx(getattr(run.simulated, f"{use}_usd"))


def test_fixed_rows_add_up_to_the_fixed_cost_of_the_same_time(rows, simulation):
    intervals = simulation.models[0].intervals
    seconds = sum(Decimal(repr(each.length_seconds)) for each in intervals)
    expected = simulation.fixed_monthly_usd * seconds / (730 * 3600)
    assert float(total(rows, "BilledCost", "fixed")) == pytest.approx(float(expected), rel=1e-6)


def test_quantity_times_price_is_the_cost_in_every_row(rows):
    for row in rows:
        paid = Decimal(row["PricingQuantity"]) * Decimal(row["ContractedUnitPrice"])
        assert Decimal(row["BilledCost"]) == Decimal(row["EffectiveCost"]) == Decimal(row["ContractedCost"])
        assert Decimal(row["BilledCost"]) == pytest.approx(paid)
        assert Decimal(row["ListCost"]) == pytest.approx(
            Decimal(row["PricingQuantity"]) * Decimal(row["ListUnitPrice"])
        )


def test_spot_is_dynamic_and_listed_at_the_price_on_demand(rows):
    spot = [row for row in rows if row["SkuId"] == "inf2.8xlarge:spot"]
    assert spot
    assert {row["PricingCategory"] for row in spot} == {"Dynamic"}
    assert all(Decimal(row["ListCost"]) > Decimal(row["BilledCost"]) for row in spot)
    assert {row["PricingCategory"] for row in rows} == {"Dynamic", "Standard"}


def test_each_charge_lies_within_one_billing_month(rows):
    for row in rows:
        moments = [
            datetime.fromisoformat(row[column])
            for column in ("BillingPeriodStart", "ChargePeriodStart", "ChargePeriodEnd", "BillingPeriodEnd")
        ]
        assert moments == sorted(moments)
        assert moments[0].day == moments[3].day == 1
        assert moments[3] - moments[0] <= timedelta(days=31)
    assert {row["BillingPeriodStart"] for row in rows} == {"2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"}


def test_no_amount_has_an_exponent(rows):
    for row in rows:
        assert "E" not in row["BilledCost"] + row["PricingQuantity"] + row["ListUnitPrice"]


def test_an_unknown_price_is_refused_by_name():
    accelerator = (
        platform("default")
        .models[0]
        .accelerator.model_copy(update={"family": "trn2", "sizes": ("48xlarge",), "tensor_parallel_size": 4})
    )
    answer = simulate_platform(changed(accelerator=accelerator), {NAME: Made([0.0], duration=60)}, today=TODAY)
    with pytest.raises(ValueError, match=r"trn2\.48xlarge in us-east-1"):
        focus.write(answer, io.StringIO())
