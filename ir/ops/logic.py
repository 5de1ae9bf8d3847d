"""Comparisons, logic and bits."""

__all__: list[str] = []
