"""Conch: a web chat over the AI plans and keys a person already has, which carries on at a limit."""
