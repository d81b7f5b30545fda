"""Quantities and ports for cdk8s-plus, each made once: every one is an object in the Node process."""

from functools import cache

from cdk8s_plus_28 import k8s


@cache
def quantity(text: str) -> k8s.Quantity:
    return k8s.Quantity.from_string(text)


@cache
def number(value: int) -> k8s.IntOrString:
    return k8s.IntOrString.from_number(value)


@cache
def percent(value: int) -> k8s.IntOrString:
    return k8s.IntOrString.from_string(f"{value}%")


@cache
def port_name(name: str) -> k8s.IntOrString:
    return k8s.IntOrString.from_string(name)
