"""What is known about the past, and how long it matters."""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Final

from genai_finops.operations.breaker import BreakerPolicy
from genai_finops.operations.budget import SpendReport, month_after
from genai_finops.operations.losses import Sign
from genai_finops.operations.prewarm import PrewarmPolicy

MARGIN: Final = timedelta(days=1)
"""For events and deletions that come late; DynamoDB deletes expired items within a few days at its leisure."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Signs of losses and reports of spending, any order, duplicates allowed."""

    signs: tuple[Sign, ...] = ()
    reports: tuple[SpendReport, ...] = ()


def keep_sign_until(sign: Sign, breaker: BreakerPolicy, prewarm: PrewarmPolicy) -> datetime:
    """When a store may forget it: the breaker looks back a day and the longest rest, and further than anything else."""
    return sign.at + max(breaker.memory, 2 * prewarm.hold) + MARGIN


def keep_report_until(report: SpendReport) -> datetime:
    """Until its month is over."""
    return datetime.combine(month_after(report.month), time(), UTC) + MARGIN
