"""How to get a reply: one module an engine."""
