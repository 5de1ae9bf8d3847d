"""The run-time system: Tensor, Variable, GradientTape, function, transforms, caches, configuration."""
