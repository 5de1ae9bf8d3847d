"""What runs: Tensor, Variable, GradientTape, function, transforms, caches, configuration."""
