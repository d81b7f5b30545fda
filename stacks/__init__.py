"""CDK stacks, one per lifetime: network, cluster, Karpenter, operations, add-ons, serving."""
