"""Prices, holds, settlement, the month."""
