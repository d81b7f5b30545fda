"""How numbers are written: rounded once, at the end, with their unit, and "unknown" where nothing is known."""

from decimal import ROUND_HALF_UP, Decimal
from math import floor, isfinite, log10
from typing import Final

UNKNOWN: Final = "unknown"
NONE: Final = "none"
"""Nothing happened that could be measured, as latency without requests."""

MINUS: Final = "−"

_CENT: Final = Decimal("0.01")
_SMALLEST_SHARE: Final = 0.0001


def usd(amount: Decimal | None) -> str:
    """`$1,416.96`: cents, halves up; smaller prices keep two digits that say something."""
    if amount is None:
        return UNKNOWN
    rounded = amount.quantize(_step(amount), ROUND_HALF_UP)
    return f"{MINUS if rounded < 0 else ''}${abs(rounded):,}"


def usd_change(amount: Decimal | None) -> str:
    """`+$12.00`, `−$3.50`, or `$0.00` for no change."""
    if amount is None:
        return UNKNOWN
    text = usd(amount)
    return f"+{text}" if amount > 0 and text != "$0.00" else text


def _step(amount: Decimal) -> Decimal:
    """Of rounding: a cent, finer for less than ten cents."""
    size = abs(amount)
    if size == 0 or size >= Decimal("0.1"):
        return _CENT
    return max(Decimal(10) ** (size.adjusted() - 1), Decimal("0.000001"))


def percent(share: float | Decimal | None, digits: int = 1) -> str:
    """`99.9%`. All and nothing are said only when they are meant: 99.996 % is not 100%, 0.004 % not 0%."""
    if share is None or not isfinite(share):
        return UNKNOWN
    value = float(share)
    if value in (0, 1):
        return f"{value:.0%}"
    if 0 < value < 1:
        while digits < 4 and round(value, digits + 2) in (0, 1):
            digits += 1
        if value < _SMALLEST_SHARE / 100:
            return "<0.0001%"
        if round(value, digits + 2) == 1:
            return ">99.9999%"
    text = f"{abs(value):.{digits}%}"
    return f"{MINUS}{text}" if value < 0 else text


def percent_change(before: Decimal | None, after: Decimal | None) -> str:
    """`+12%`, `−3.5%`; "new" from nothing, and "unknown" where either is."""
    if before is None or after is None:
        return UNKNOWN
    if before == 0:
        return "0%" if after == 0 else "new"
    share = float((after - before) / abs(before))
    digits = 0 if abs(share) >= 0.1 else 1
    text = f"{abs(share):.{digits}%}"
    if float(text.rstrip("%")) == 0:
        return "0%"
    return f"{'+' if share > 0 else MINUS}{text}"


def count(value: int | float | None) -> str:
    """`19,366`."""
    return UNKNOWN if value is None else f"{round(value):,}"


def significant(value: float | None, digits: int = 3) -> str:
    """`1,155`, `31.5`, `0.0123`: so many digits that say something, none that do not; whole numbers stay whole."""
    if value is None or not isfinite(value):
        return UNKNOWN
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")  # 9.996 has one digit more before the point when it is rounded
    places = max(0, digits - 1 - floor(log10(abs(rounded))))
    text = f"{abs(round(value, places)):,.{places}f}"
    return f"{MINUS}{text}" if value < 0 else text


def quantity(amount: Decimal) -> str:
    """`730`, `15.21`: two decimals at most, and none that are zero."""
    rounded = amount.quantize(_CENT, ROUND_HALF_UP)
    return f"{rounded.normalize():,f}"


def unit_price(amount: Decimal) -> str:
    """`0.10`, `0.00003334`: as the price list has it, cents at least."""
    exact = amount.normalize()
    return f"{exact:f}" if -int(exact.as_tuple().exponent) > 2 else f"{amount:.2f}"


def mean(value: float) -> str:
    """`1.30`: two decimals, so that those of a column end under each other; `0` is nothing at all."""
    return f"{value:,.2f}" if value else "0"


def milliseconds(seconds: float | None) -> str:
    """The number of milliseconds, without the unit, which stands in the head of the column."""
    return NONE if seconds is None or not isfinite(seconds) else significant(seconds * 1000)


def seconds(value: float | None) -> str:
    """The number of seconds, without the unit."""
    return NONE if value is None or not isfinite(value) else significant(value)


def duration(value: float | None) -> str:
    """`85 ms`, `2.4 s`, `12 min 30 s`, `3 h 5 min`, `2 d 4 h`: with its unit, for running text."""
    if value is None or not isfinite(value):
        return NONE
    if value < 0.9995:
        return f"{significant(value * 1000)} ms"
    if value < 59.95:
        return f"{significant(value)} s"
    whole = round(value)
    for size, large, small, each in ((3600, "min", "s", 60), (86400, "h", "min", 3600)):
        if whole < size:
            return _two(whole, each, large, small, each if large == "min" else 60)
    return _two(whole, 86400, "d", "h", 3600)


def _two(whole: int, large_size: int, large: str, small: str, small_size: int) -> str:
    many, rest = divmod(whole, large_size)
    few = rest // (1 if small == "s" else small_size)
    return f"{many:,} {large} {few} {small}" if few else f"{many:,} {large}"


def stated(seconds: float) -> str:
    """`2 s`, `50 ms`: a time that somebody chose, without digits that they did not write."""
    return f"{seconds:g} s" if seconds >= 1 else f"{seconds * 1000:g} ms"


def plural(number: int, noun: str) -> str:
    """`1 model`, `3 models`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
