"""The level-based tick, and the moments at which models wake and go to sleep."""
