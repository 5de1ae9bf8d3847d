"""Suggestions for names that adjit does not have: names of other frameworks, and misspelt ones."""

from __future__ import annotations

from collections.abc import Sequence

ELSEWHERE: dict[str, str] = {
    "jit": "aj.function compiles a function",
    "compile": "aj.function compiles a function",
    "njit": "aj.function compiles a function",
    "make_jaxpr": "f.inspect(*args) shows the IR of a compiled function",
    "numpy": "write NumPy itself: np.sin(x) works on adjit's values, eager and compiled",
    "lax": "the control flow of jax.lax is in aj itself: aj.cond, aj.switch, aj.while_loop, aj.fori_loop, aj.scan, aj.map",
    "pmap": "aj.vmap maps a function over an axis; compiled code uses all cores automatically",
    "jacfwd": "aj.jacobian(f, mode='forward')",
    "jacrev": "aj.jacobian(f, mode='reverse')",
    "tree_util": "aj.tree_map, aj.tree_flatten, aj.tree_unflatten, aj.tree_leaves, aj.ravel_pytree",
    "tree": "aj.tree_map, aj.tree_flatten, aj.tree_unflatten, aj.tree_leaves, aj.ravel_pytree",
    "remat": "aj.checkpoint recomputes a function in the backward pass",
    "device_put": "arrays stay in the memory of the CPU: pass NumPy arrays",
    "block_until_ready": "calls return when their results are ready",
    "PRNGKey": "aj.random.key(seed)",
    "no_grad": "nothing is recorded outside of a tape; inside, use tape.stop_recording() or aj.stop_gradient",
    "detach": "aj.stop_gradient(x)",
    "from_numpy": "aj.tensor(array); functions take NumPy arrays as they are",
    "autograd": "aj.grad, aj.value_and_grad, aj.GradientTape",
    "optim": "optimizers are in aj.nn.optimizers",
    "elementwise_grad": "aj.grad(lambda x: aj.sum(f(x))), or aj.vmap(aj.grad(f))",
    "gradients": "aj.grad(f), or a tape: with aj.GradientTape() as tape: ...; tape.gradient(y, x)",
    "keras": "aj.tf.keras has Keras's names, aj.nn the layers themselves",
    "math": "the functions of tf.math are in aj itself, and aj.tf.math has TensorFlow's names",
}


def hint(name: str, known: Sequence[str]) -> str:
    """The end of an error message: what to write instead of `name`, or which `known` name was probably meant; empty if there is none."""
    if name.startswith("_"):
        return ""
    if name in ELSEWHERE:
        return f". {ELSEWHERE[name]}"
    import difflib  # noqa: PLC0415 - only for this error

    close = difflib.get_close_matches(name, known, 1, 0.75)
    return f". Did you mean {close[0]!r}?" if close else ""
