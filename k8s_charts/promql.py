"""PromQL selectors, with label values escaped: served names may hold slashes, dots and worse."""

from genai_finops.spec import Model, names


def series(metric: str, /, **labels: str) -> str:
    """A selector of `metric` with every label equal to its value.

    >>> series("up", job='a"b')
    'up{job="a\\\\"b"}'
    """
    return f"{metric}{{{','.join(f'{label}={quoted(value)}' for label, value in labels.items())}}}"


def quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def served(metric: str, model: Model, **labels: str) -> str:
    """A metric that a model's server emits.

    vLLM labels its series with `model_name`, the name that clients ask for; `namespace` comes from the
    scrape.
    """
    return series(metric, model_name=model.served_as, namespace=names.MODEL_NAMESPACE, **labels)


def of_deployment(metric: str, model: Model) -> str:
    """A metric that kube-state-metrics emits about a model's Deployment."""
    return series(metric, namespace=names.MODEL_NAMESPACE, deployment=names.deployment(model))
