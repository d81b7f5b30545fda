"""Serve large language models on Amazon EKS at the lowest honest cost."""
