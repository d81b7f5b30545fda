"""What an operator asks of the model store: what is in it, and to fill it before a rollout."""
