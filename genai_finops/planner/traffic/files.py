"""Traffic by what a user writes: a file, or the name of a built-in profile."""

from pathlib import Path
from typing import Any, Final

from genai_finops.catalog import published_costs
from genai_finops.planner.traffic.errors import TrafficError
from genai_finops.planner.traffic.profile import Generated, profile_of, read_profile
from genai_finops.planner.traffic.requests import Traffic
from genai_finops.planner.traffic.trace import read_trace

_AZURE_DAY: Final = 86_400 / 3_501.7 * 19_366
_AZURE_CODE_DAY: Final = 86_400 / 3_435.9 * 8_819

BUILT_IN: Final[dict[str, dict[str, Any]]] = {
    "azure-conversation": {
        "requests_per_day": _AZURE_DAY,
        "days": 1 / 24,
        "burstiness": 1.09,
        "input_tokens": {"mean": 1155, "variation": 0.96, "maximum": 14_050},
        "output_tokens": {"mean": 211, "variation": 0.77, "maximum": 1000},
    },
    "azure-code": {
        "requests_per_day": _AZURE_CODE_DAY,
        "days": 1 / 24,
        "burstiness": 13,
        "input_tokens": {"mean": 2048, "variation": 0.96, "maximum": 7437},
        "output_tokens": {"mean": 28, "variation": 2.15, "maximum": 1899},
    },
}
"""An hour like those of the Azure LLM inference traces of 2023 (Microsoft, CC-BY-4.0): their rates, means, variations
and longest requests."""

ARTICLE: Final = "article"


def open_traffic(text: str, seed: int) -> Traffic:
    """A trace (.csv, .csv.gz), a profile (.yaml, .yml) or a built-in one by its name.

    Raises:
        TrafficError: when it is none of them, or is wrong.
        OSError: when there is no such file.
    """
    if text == ARTICLE:
        return _article(seed)
    if text in BUILT_IN:
        return Generated(profile_of({"name": text, **BUILT_IN[text]}, text), seed)
    file = Path(text)
    if file.name.endswith((".csv", ".csv.gz")):
        return read_trace(file)
    if file.suffix in (".yaml", ".yml"):
        return read_profile(file, seed)
    names = ", ".join((ARTICLE, *BUILT_IN))
    raise TrafficError(
        text, "", "is neither a trace nor a profile", f"Give a .csv, .csv.gz or .yaml file, or one of {names}."
    )


def _article(seed: int) -> Generated:
    """The article's tokens a day for a week of office hours, in requests of a chat; the hours are assumed."""
    article, chat = published_costs.article(), published_costs.conversation()
    document = {
        "name": f"{article.tokens_a_day // 1_000_000}M tokens a day",
        "tokens_per_day": article.tokens_a_day,
        "shape": "office",
        "input_tokens": {"mean": chat.input_tokens, "variation": 0.9, "maximum": 3500},
        "output_tokens": {"mean": chat.output_tokens, "variation": 0.75, "maximum": 590},
    }
    return Generated(profile_of(document, ARTICLE), seed)
