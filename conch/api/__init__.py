"""The JSON API (docs at /api/docs)."""
