"""Shapes of models: what decides whether a model fits on a device, and how its heads can be split."""

from dataclasses import dataclass
from functools import cache

from genai_finops.catalog import _files


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The part of a model's configuration that sizes its memory."""

    name: str
    parameters: int
    layers: int
    attention_heads: int
    key_value_heads: int
    head_dimension: int
    max_position_embeddings: int
    repositories: tuple[str, ...] = ()

    def weight_bytes(self, bytes_per_parameter: float) -> int:
        return round(self.parameters * bytes_per_parameter)

    def key_value_bytes_per_token(self, bytes_per_value: int) -> int:
        """A key and a value for each layer and key-value head: 2 x layers x heads x dimension x bytes."""
        return 2 * self.layers * self.key_value_heads * self.head_dimension * bytes_per_value


@cache
def model_shapes() -> tuple[ModelShape, ...]:
    """Every model shape of the catalog."""
    return tuple(
        ModelShape(**{**entry, "repositories": tuple(entry["repositories"])})
        for entry in _files.document("models.yaml")
    )


def model_shape(repository: str) -> ModelShape | None:
    """The shape of the model in a hub repository such as `meta-llama/Meta-Llama-3-8B-Instruct`; None when unknown."""
    return next((shape for shape in model_shapes() if repository in shape.repositories), None)
