"""What a platform costs and what it can carry, before anything is deployed."""
