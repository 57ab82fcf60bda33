"""The agent loop: what a model is asked, and what its answers come to."""
