"""What the API server can answer besides yes, each with what to do about it."""


class KubernetesError(Exception):
    """An answer that is not the one asked for.

    Attributes:
        status: of HTTP, or None when there was no answer.
        body: of the answer, as it came.
    """

    def __init__(self, message: str, *, status: int | None = None, body: bytes = b"") -> None:
        super().__init__(message)
        self.status = status
        self.body = body


class UnreachableError(KubernetesError):
    """No answer: no route, no name, no connection, no trust, or no patience left."""


class UnauthorizedError(KubernetesError):
    """401 for a token that was signed a moment ago: EKS does not know the role."""


class ForbiddenError(KubernetesError):
    """403: the role is known and may not do this."""


class NotFoundError(KubernetesError):
    """404: no such object, or no such kind of object."""


class ConflictError(KubernetesError):
    """409: somebody else has changed the object since it was read. Read it again, decide again."""


class GoneError(KubernetesError):
    """410: the rest of a list is no longer kept."""


class RejectedError(KubernetesError):
    """Any other 4xx: the request itself is wrong, and repeating it is no use."""


class ThrottledError(KubernetesError):
    """429, still after waiting."""


class ServerError(KubernetesError):
    """5xx, still after waiting."""
