"""The rules of run-time automation as pure functions: no clock, no network, no AWS."""
