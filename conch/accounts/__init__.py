"""Accounts: connecting them, sealing their secrets, and keeping what is known of their room."""
