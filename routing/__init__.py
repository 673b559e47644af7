"""The decision: frozen facts and `now` in, who answers and why out."""
