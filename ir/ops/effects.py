"""Ops with an order: assertions and printing."""

__all__: list[str] = []
