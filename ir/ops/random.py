"""Stateless random numbers: a counter-based generator, the same bits eager and compiled."""

__all__: list[str] = []
