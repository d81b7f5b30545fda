"""What would happen: requests, replicas, nodes and Spot over time, event by event."""
