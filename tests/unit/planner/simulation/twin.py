"""One replica, token by token: what the compiled engine must agree with, written without any of its shortcuts.

It knows nothing of jumps, heaps or residues. At every step boundary it looks at every sequence.
"""

from dataclasses import dataclass, field
from math import ceil, inf

from genai_finops.planner.performance.replica import ReplicaPerformance


@dataclass
class Request:
    number: int
    arrival: float
    input: int
    output: int
    made: int = 0
    prompt: int = 0
    prefilled: int = 0
    tokens: list[float] = field(default_factory=list)
    end: float = -1.0
    fate: str = ""

    @property
    def is_prefilled(self) -> bool:
        return self.prefilled == self.prompt


@dataclass
class Replica:
    performance: ReplicaPerformance
    timeout: float = inf
    queue: list[Request] = field(default_factory=list)
    batch: list[Request] = field(default_factory=list)
    evictions: int = 0
    most_sequences: int = 0

    def serve(self, requests: list[Request]) -> list[Request]:
        """All of them to their end."""
        coming = list(requests)
        now = 0.0
        while coming or self.queue or self.batch:
            if not self.queue and not self.batch:
                now = max(now, coming[0].arrival)
            while coming and coming[0].arrival <= now:
                self._receive(coming.pop(0))
            self._give_up(now)
            now = self._step(now)
            self._give_up(now)
            for request in [request for request in self.batch if request.made == request.output]:
                self.batch.remove(request)
                request.end, request.fate = now, "completed"
        return requests

    def _receive(self, request: Request) -> None:
        total = request.input + request.output
        serial = self.performance.prefill == "serial"
        longest = max(self.performance.buckets, default=inf) if serial else inf
        if (
            total > self.performance.max_tokens
            or request.input > longest
            or (not serial and self._blocks(total - 1) > self._all_blocks)
        ):
            request.end, request.fate = request.arrival, "refused"
        else:
            self.queue.append(request)

    def _give_up(self, now: float) -> None:
        for held in (self.queue, self.batch):
            for request in list(held):
                if request.arrival + self.timeout < now:
                    held.remove(request)
                    request.end, request.fate = request.arrival + self.timeout, "timed out"

    def _step(self, now: float) -> float:
        return self._serial_step(now) if self.performance.prefill == "serial" else self._mixed_step(now)

    # --- serial ---

    def _serial_step(self, now: float) -> float:
        performance = self.performance
        slots = min(performance.max_sequences, performance.cache_tokens // performance.max_tokens)
        if self.queue and len(self.batch) < slots:
            request = self.queue.pop(0)
            self.batch.append(request)
            padded = min((bucket for bucket in performance.buckets if bucket >= request.input), default=request.input)
            now += performance.prefill_seconds + performance.prefill_seconds_per_token * padded
            self._token(request, now)
            return now
        return self._decode(now, self.batch, 0.0)

    # --- chunked ---

    @property
    def _all_blocks(self) -> int:
        return self.performance.cache_tokens // self.performance.block_tokens

    def _blocks(self, tokens: int) -> int:
        return ceil(tokens / self.performance.block_tokens)

    def _held(self, request: Request, *, growing: bool) -> int:
        if not request.is_prefilled:
            return self._blocks(request.prompt)
        return self._blocks(request.input + request.made - (0 if growing else 1))

    def _mixed_step(self, now: float) -> float:
        performance = self.performance
        crowded = False
        while sum(self._held(request, growing=True) for request in self.batch) > self._all_blocks:
            self._evict(self.batch.pop())
            crowded = True
        decoding = [request for request in self.batch if request.is_prefilled]
        room, extra = performance.chunk_tokens, 0.0
        for request in self.batch:
            if not request.is_prefilled:
                room -= self._prefill(request, room)
        while self.queue and room and not crowded and len(self.batch) < performance.max_sequences:
            request = self.queue[0]
            used = sum(self._held(other, growing=True) for other in self.batch)
            if used + self._blocks(request.input + request.made) > self._all_blocks:
                break
            self.batch.append(self.queue.pop(0))
            request.prompt, request.prefilled = request.input + request.made, 0
            extra += performance.prefill_seconds
            room -= self._prefill(request, room)
        done = [request for request in self.batch if request.is_prefilled and request not in decoding]
        extra += performance.prefill_seconds_per_token * (performance.chunk_tokens - room)
        now = self._decode(now, decoding, extra)
        for request in done:
            self._token(request, now)
        return now

    def _evict(self, request: Request) -> None:
        self.evictions += 1
        request.prompt = request.prefilled = 0
        self.queue.insert(0, request)

    def _prefill(self, request: Request, room: int) -> int:
        piece = min(room, request.prompt - request.prefilled)
        request.prefilled += piece
        return piece

    # --- both ---

    def _decode(self, now: float, decoding: list[Request], extra: float) -> float:
        performance = self.performance
        self.most_sequences = max(self.most_sequences, len(self.batch))
        if decoding:
            context = sum(request.input + request.made for request in decoding)
            now += (
                performance.step_seconds
                + performance.step_seconds_per_sequence * len(decoding)
                + performance.step_seconds_per_token * context
            )
        now += extra
        for request in decoding:
            self._token(request, now)
        return now

    def _token(self, request: Request, now: float) -> None:
        request.made += 1
        request.tokens.append(now)
