"""Reading and writing at computed indices."""

__all__: list[str] = []
