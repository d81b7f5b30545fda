"""How fast one replica serves: the step model, what it was fitted to, and what a benchmark of your own says."""
