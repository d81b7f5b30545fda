"""Logs, metrics and traces, once for all functions.

Powertools' decorators need these when a handler is imported. They read POWERTOOLS_* and LOG_LEVEL and, in Lambda, open
nothing. Anywhere else the X-Ray SDK makes a client of its own, for nothing: measure imports with LAMBDA_TASK_ROOT set.
"""

from typing import Final

from aws_lambda_powertools import Logger, Metrics, Tracer

NAMESPACE: Final = "genai-finops"
SERVICE: Final = "operations"
"""The same for all functions, so that one alarm can watch for a reconcile that succeeded, whoever ran it."""

logger: Final = Logger(service=SERVICE)
metrics: Final = Metrics(namespace=NAMESPACE, service=SERVICE)
# All calls to AWS go through botocore. Patching whatever else can be patched costs a cold start its time.
tracer: Final = Tracer(service=SERVICE, patch_modules=("botocore",))
