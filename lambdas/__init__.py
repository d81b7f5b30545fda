"""What runs while the platform runs: three functions that turn events into facts, and facts into what should be."""
