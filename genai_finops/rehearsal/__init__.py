"""The whole platform on one machine, before anyone pays: an emulated cloud under the real control plane."""
