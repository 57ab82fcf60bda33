"""What a node's process does beside calls and turns: sending notices."""
