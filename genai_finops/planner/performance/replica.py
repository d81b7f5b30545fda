"""What the simulator and the comparison need to know of one replica, whatever it was computed or measured from."""

from dataclasses import dataclass, replace
from typing import Literal

from genai_finops.planner.provenance import Origin

Prefill = Literal["serial", "chunked"]
"""serial: one prompt at a time, padded to a bucket, while decoding stands still (Neuron). chunked: pieces of prompts
ride along in the decode steps (vLLM on GPUs)."""


@dataclass(frozen=True, slots=True)
class ReplicaPerformance:
    """One replica of one model on one instance type with one layout.

    A decode step takes `step_seconds` + `step_seconds_per_sequence` x sequences + `step_seconds_per_token` x tokens in
    the KV cache, and gives every sequence one token. A serial prefill takes `prefill_seconds` +
    `prefill_seconds_per_token` x tokens of the bucket. A step of chunked prefill takes that much longer than its decode
    part, without `prefill_seconds` for all but the first piece of a prompt.

    Attributes:
        instance: EC2 type, for example inf2.xlarge.
        buckets: ascending lengths that serial prompts are padded to; empty where none are.
        chunk_tokens: most prompt tokens in one step of chunked prefill.
        max_sequences: served at once.
        max_tokens: longest prompt plus answer.
        cache_tokens: room of the KV cache; each sequence owns `max_tokens` of it under serial prefill, and what it has
            written, rounded up to `block_tokens`, otherwise.
        decode, prefill: origin of the step's numbers and of the prefill's.
    """

    model: str
    instance: str
    tensor_parallel_size: int
    step_seconds: float
    step_seconds_per_sequence: float
    step_seconds_per_token: float
    prefill: Prefill
    prefill_seconds: float
    prefill_seconds_per_token: float
    buckets: tuple[int, ...]
    chunk_tokens: int
    max_sequences: int
    max_tokens: int
    cache_tokens: int
    block_tokens: int
    decode_origin: Origin
    prefill_origin: Origin

    def scaled(self, share: float) -> "ReplicaPerformance":
        """This replica at one end of its error bars: -1 the fast end, 0 as it is, 1 the slow end."""
        decode = 1 + share * self.decode_origin.relative_error
        prefill = 1 + share * self.prefill_origin.relative_error
        return replace(
            self,
            step_seconds=self.step_seconds * decode,
            step_seconds_per_sequence=self.step_seconds_per_sequence * decode,
            step_seconds_per_token=self.step_seconds_per_token * decode,
            prefill_seconds=self.prefill_seconds * prefill,
            prefill_seconds_per_token=self.prefill_seconds_per_token * prefill,
        )
