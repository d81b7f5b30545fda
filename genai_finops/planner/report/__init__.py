"""One page with everything: charts from a simulation, in a file that needs nothing else."""
