"""The step model held against every published row: `python -m genai_finops.planner.performance.evidence`.

Rows that the constants were not fitted to are counted apart, and what is left out says why.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from genai_finops.catalog import ModelShape, instance_types, model_shapes
from genai_finops.catalog.performance import PublishedRow, Role, accelerator_performance, published_rows
from genai_finops.planner.performance.model import decode_step, prefill_seconds_per_token

BUCKETS = (128, 256, 512, 1024, 2048, 4096, 8192)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One published figure and the model's.

    Attributes:
        relative_error: negative is too fast.
    """

    row: PublishedRow
    what: str
    published_ms: float
    predicted_ms: float

    @property
    def relative_error(self) -> float:
        return self.predicted_ms / self.published_ms - 1


def evidence() -> tuple[Evidence, ...]:
    """Every figure of every row that is not left out."""
    found: list[Evidence] = []
    for row in published_rows():
        if row.role == "excluded":
            continue
        if row.decode_ms is not None:
            found.append(Evidence(row, "decode", row.decode_ms, predicted_decode_ms(row)))
        if row.first_token_ms is not None:
            found.append(Evidence(row, "first token", row.first_token_ms, predicted_first_token_ms(row)))
    return tuple(found)


def predicted_decode_ms(row: PublishedRow) -> float:
    facts, shape = accelerator_performance()[row.accelerator], _shape(row.model)
    step = decode_step(
        facts,
        shape,
        devices=row.devices,
        split=row.split,
        compiled_sequences=row.sequences or 1,
        weight_bytes=shape.weight_bytes(row.bytes_per_parameter),
        bytes_per_second=facts.bytes_per_second(_memory_bytes(row.accelerator)),
    )
    assert row.sequences
    assert row.context_tokens
    return 1000 * step.of(row.sequences, row.context_tokens)


def predicted_first_token_ms(row: PublishedRow) -> float:
    """Prompts one after the other, padded to a bucket on Neuron; on GPUs within a step of the others' decoding."""
    facts, shape = accelerator_performance()[row.accelerator], _shape(row.model)
    assert row.prompt_tokens
    assert row.prompts
    tokens = row.padded_tokens or row.prompt_tokens
    if facts.is_static:
        tokens = next(bucket for bucket in BUCKETS if bucket >= tokens)
    beside = predicted_decode_ms(row) if not facts.is_static and (row.sequences or 1) > 1 else 0.0
    return 1000 * row.prompts * tokens * prefill_seconds_per_token(facts, shape, row.devices) + beside


def worst(found: Iterable[Evidence], what: str, role: Role) -> float | None:
    """Largest absolute relative error; None without any."""
    return max(
        (abs(each.relative_error) for each in found if each.what == what and each.row.role == role), default=None
    )


def middle(found: Iterable[Evidence], what: str, role: Role) -> float | None:
    """Median absolute relative error; None without any."""
    errors = [abs(each.relative_error) for each in found if each.what == what and each.row.role == role]
    return median(errors) if errors else None


def _shape(name: str) -> ModelShape:
    return next(shape for shape in model_shapes() if shape.name == name)


def _memory_bytes(accelerator: str) -> int:
    """The largest variant: rows were measured on it."""
    return max(
        instance.accelerator.memory_bytes
        for instance in instance_types().values()
        if instance.accelerator and instance.accelerator.name == accelerator
    )


def main() -> None:
    found = evidence()
    print(
        f"{'model':14}{'accelerator':13}{'split':>6}{'batch':>6}  {'ms':12}{'published':>10}{'model':>10}{'error':>8}  "
        "role"
    )
    for each in found:
        row = each.row
        print(
            f"{row.model:14}{row.accelerator:13}{row.split:6}{row.sequences or 0:6}  {each.what:12}"
            f"{each.published_ms:10.1f}{each.predicted_ms:10.1f}{each.relative_error:+8.0%}  {row.role}"
        )
    for what in ("decode", "first token"):
        for role in ("fit", "held out"):
            typical, largest = middle(found, what, role), worst(found, what, role)
            if typical is not None and largest is not None:
                print(f"{what}, {role}: median {typical:.0%}, worst {largest:.0%}")
    for row in published_rows():
        if row.role == "excluded":
            print(f"left out: {row.model} on {row.accelerator}, {row.source}: {row.reason}")


if __name__ == "__main__":
    main()
