"""EventBridge's own matching, as far as the rules use it.

https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-create-pattern.html: every field of the pattern must be in
the event, an array of the pattern matches any one of its values, and an array of the event matches by any one of its
elements. Matching is by character, without folding of case.
"""

from collections.abc import Mapping, Sequence
from typing import Any


def matches(pattern: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    """Whether a rule with this pattern would let the event through."""
    return all(key in event and _field(wanted, event[key]) for key, wanted in pattern.items())


def _field(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, Mapping):
        candidates = found if isinstance(found, list) else [found]
        return any(isinstance(one, Mapping) and matches(wanted, one) for one in candidates)
    if not isinstance(wanted, Sequence) or isinstance(wanted, str):
        raise TypeError(f"Leaves of a pattern are arrays: {wanted!r}")
    if not all(isinstance(value, str) for value in wanted):
        raise TypeError(f"Only plain values are known here: {wanted!r}")
    return bool(set(wanted) & set(found if isinstance(found, list) else [found]))
