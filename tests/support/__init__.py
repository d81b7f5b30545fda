"""Servers that behave like what the platform talks to, so that tests speak the real protocols."""
