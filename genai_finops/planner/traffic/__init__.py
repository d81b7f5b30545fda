"""Requests over time: read from a trace, or generated from a profile with a seed."""
