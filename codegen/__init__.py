"""From a Func to native code: kernels, vector math, matrix products, entry points."""
