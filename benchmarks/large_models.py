"""Networks, tables and small Jacobians at real sizes, for `large.py`: one function a workload, with the same program for each peer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from workload import Workload, jitted, peer, rng, tensors

import adjit as aj

Calls = dict[str, Callable[[], Any]]


def embedding() -> Workload:
    """A step of gradient descent on a table of 50,000 rows, 4,096 of which are read."""
    table = rng.standard_normal((50_000, 64)).astype("f4")
    ids, targets = rng.integers(0, 50_000, 4096), rng.standard_normal((4096, 64)).astype("f4")
    variable, torch, jax = aj.Variable(table), peer("torch"), peer("jax")

    @aj.function
    def step(ids: Any, targets: Any) -> Any:
        with aj.GradientTape() as tape:
            loss = np.mean((variable[ids] - targets) ** 2)
        variable.assign_sub(0.1 * tape.gradient(loss, variable))
        return loss

    peers: Calls = {}
    if torch is not None:
        layer = torch.nn.Embedding.from_pretrained(torch.tensor(table), freeze=False, sparse=True)
        descent = torch.optim.SGD(layer.parameters(), lr=0.1)
        places, wanted = tensors(torch, (ids, targets))

        def torch_step() -> Any:
            descent.zero_grad()
            loss = ((layer(places) - wanted) ** 2).mean()
            loss.backward()
            descent.step()
            return loss

        peers["torch, sparse"] = torch_step
    if jax is not None:
        state = [jax.numpy.asarray(table), jax.numpy.asarray(ids), jax.numpy.asarray(targets)]

        def jax_step(table: Any, ids: Any, targets: Any) -> Any:
            rows = table[ids]
            loss, d = jax.value_and_grad(lambda rows: ((rows - targets) ** 2).mean())(rows)
            return loss, table.at[ids].add(-0.1 * d)

        compiled = jax.jit(jax_step, donate_argnums=0)

        def run() -> Any:
            loss, state[0] = jax.block_until_ready(compiled(*state))
            return loss

        peers["jax, by rows"] = run
    return Workload("embedding 50k x 64, batch 4096, a step", lambda: step(ids, targets), peers)


def dynamic_time_warping(n: int, gradient: bool) -> Workload:
    """Soft minimum over all alignments of two series of n: a table filled entry by entry."""
    x, y = rng.standard_normal((2, n))

    def warp(x: Any) -> Any:
        table = np.full((n + 1, n + 1), 1e6)
        table[0, 0] = 0.0
        for i in aj.range(n):
            for j in aj.range(n):
                a, b, c = table[i, j], table[i, j + 1], table[i + 1, j]
                low = np.minimum(np.minimum(a, b), c)
                soft = low - np.log(np.exp(low - a) + np.exp(low - b) + np.exp(low - c))
                table[i + 1, j + 1] = (x[i] - y[j]) ** 2 + soft
        return table[n, n]

    f = aj.function(aj.value_and_grad(warp) if gradient else warp)
    peers: Calls = {}
    if (jax := peer("jax")) is not None:
        jnp, lax = jax.numpy, jax.lax
        other = jnp.asarray(y)

        def jax_warp(x: Any) -> Any:
            def entry(k: Any, table: Any) -> Any:
                i, j = k // n, k % n
                parts = jnp.stack([table[i, j], table[i, j + 1], table[i + 1, j]])
                low = parts.min()
                return table.at[i + 1, j + 1].set((x[i] - other[j]) ** 2 + low - jnp.log(jnp.exp(low - parts).sum()))

            return lax.fori_loop(0, n * n, entry, jnp.full((n + 1, n + 1), 1e6))[n, n]

        peers["jax"] = jitted(jax, jax.value_and_grad(jax_warp) if gradient else jax_warp, x)
    return Workload(f"soft-DTW {n} x {n}{', with gradient' if gradient else ''}", lambda: f(x), peers)


def attention(times: int, causal: bool) -> Workload:
    """48 heads of 64, value and gradients of q, k and v, float32."""
    q, k, v = rng.standard_normal((3, 48, times, 64)).astype("f4")
    mask = np.tril(np.ones((times, times), bool))

    def loss(q: Any, k: Any, v: Any) -> Any:
        scores = (q @ np.swapaxes(k, 1, 2)) * np.float32(0.125)
        if causal:
            scores = np.where(mask, scores, np.float32(-np.inf))
        return np.sum((aj.softmax(scores, axis=-1) @ v) ** 2)

    f = aj.function(aj.value_and_grad(loss, argnums=(0, 1, 2)))
    peers: Calls = {}
    if (torch := peer("torch")) is not None:
        inputs = tensors(torch, (q, k, v), requires_grad=True)

        def step() -> Any:
            out = torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=causal)
            return torch.autograd.grad((out**2).sum(), inputs)

        peers["torch, fused"] = step
    return Workload(f"attention, {times} times{', causal' if causal else ''}, with gradient", lambda: f(q, k, v), peers)


LAYERS, WIDTH, HEADS, TIMES, BATCH, WORDS = 6, 384, 6, 128, 8, 65


def gpt() -> Workload:
    """6 layers of width 384, 128 times, batch of 8: forward and backward, float32."""
    sizes = {"qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH), "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
    layers = [{name: (0.02 * rng.standard_normal(size)).astype("f4") for name, size in sizes.items()} for _ in range(LAYERS)]
    params = {
        "words": (0.02 * rng.standard_normal((WORDS, WIDTH))).astype("f4"),
        "places": (0.02 * rng.standard_normal((TIMES, WIDTH))).astype("f4"),
        "layers": layers,
    }
    ids, targets = rng.integers(0, WORDS, (2, BATCH, TIMES))
    mask = np.tril(np.ones((TIMES, TIMES), bool))

    def model(np_: Any, softmax: Any, logsumexp: Any, params: Any, ids: Any, targets: Any) -> Any:
        """The same code for NumPy's and JAX's functions."""

        def norm(x: Any) -> Any:
            mean = np_.mean(x, axis=-1, keepdims=True)
            return (x - mean) / np_.sqrt(np_.mean((x - mean) ** 2, axis=-1, keepdims=True) + np.float32(1e-5))

        def heads(x: Any) -> Any:
            return np_.swapaxes(np_.reshape(x, (BATCH, TIMES, HEADS, WIDTH // HEADS)), 1, 2)

        x = params["words"][ids] + params["places"]
        for layer in params["layers"]:
            qkv = norm(x) @ layer["qkv"]
            q, k, v = (heads(qkv[..., i * WIDTH : (i + 1) * WIDTH]) for i in range(3))
            scores = np_.where(mask, q @ np_.swapaxes(k, -1, -2) * np.float32(0.125), np.float32(-np.inf))
            mixed = np_.reshape(np_.swapaxes(softmax(scores, axis=-1) @ v, 1, 2), (BATCH, TIMES, WIDTH))
            x = x + mixed @ layer["out"]
            h = norm(x) @ layer["up"]
            gelu = np.float32(0.5) * h * (1 + np_.tanh(np.float32(0.7978846) * (h + np.float32(0.044715) * h**3)))
            x = x + gelu @ layer["down"]
        logits = np_.reshape(norm(x) @ np_.swapaxes(params["words"], 0, 1), (BATCH * TIMES, WORDS))
        picked = logits[np.arange(BATCH * TIMES), np_.reshape(targets, (-1,))]
        return np_.mean(logsumexp(logits, axis=-1) - picked)

    f = aj.function(aj.value_and_grad(lambda *args: model(np, aj.softmax, aj.logsumexp, *args)))
    peers: Calls = {}
    if (torch := peer("torch")) is not None:
        peers["torch"] = torch_gpt(torch, params, ids, targets)
    if (jax := peer("jax")) is not None:
        args = jax.numpy, jax.nn.softmax, jax.nn.logsumexp
        peers["jax"] = jitted(jax, jax.value_and_grad(lambda *rest: model(*args, *rest)), params, ids, targets)
    return Workload("GPT, 6 layers of 384, with gradient", lambda: f(params, ids, targets), peers)


def torch_gpt(torch: Any, params: Any, ids: Any, targets: Any) -> Callable[[], Any]:
    functional = torch.nn.functional
    words, places = tensors(torch, (params["words"], params["places"]), requires_grad=True)
    layers = [dict(zip(layer, tensors(torch, layer.values(), True), strict=True)) for layer in params["layers"]]
    leaves = [words, places, *(leaf for layer in layers for leaf in layer.values())]
    ids, targets = tensors(torch, (ids, targets))

    def step() -> Any:
        x = words[ids] + places
        for layer in layers:
            qkv = functional.layer_norm(x, (WIDTH,)) @ layer["qkv"]
            q, k, v = (part.view(BATCH, TIMES, HEADS, WIDTH // HEADS).transpose(1, 2) for part in qkv.split(WIDTH, -1))
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + mixed.transpose(1, 2).reshape(BATCH, TIMES, WIDTH) @ layer["out"]
            h = functional.layer_norm(x, (WIDTH,)) @ layer["up"]
            x = x + functional.gelu(h, approximate="tanh") @ layer["down"]
        logits = (functional.layer_norm(x, (WIDTH,)) @ words.T).view(-1, WORDS)
        return torch.autograd.grad(functional.cross_entropy(logits, targets.view(-1)), leaves)

    return step


def lstm() -> Workload:
    """One layer of 128, 50 times, batch of 32: loss and gradients of all weights, float32."""
    times, batch, size, width = 50, 32, 64, 128
    wx, wh = ((0.1 * rng.standard_normal((n, 4 * width))).astype("f4") for n in (size, width))
    x, y = rng.standard_normal((times, batch, size)).astype("f4"), rng.standard_normal((times, batch, width)).astype("f4")
    bias = np.zeros(4 * width, "f4")

    def loss(wx: Any, wh: Any, bias: Any) -> Any:
        z = np.reshape(np.reshape(x, (times * batch, -1)) @ wx + bias, (times, batch, 4 * width))
        h = c = np.zeros((batch, width), np.float32)
        total = np.float32(0)
        for t in aj.range(times):
            gates = z[t] + h @ wh
            i, f = aj.sigmoid(gates[:, :width]), aj.sigmoid(gates[:, width : 2 * width])
            g, o = np.tanh(gates[:, 2 * width : 3 * width]), aj.sigmoid(gates[:, 3 * width :])
            c = f * c + i * g
            h = o * np.tanh(c)
            total = total + np.sum((h - y[t]) ** 2)
        return total / y.size

    f = aj.function(aj.value_and_grad(loss, argnums=(0, 1, 2)))
    peers: Calls = {}
    if (torch := peer("torch")) is not None:
        layer, (series, wanted) = torch.nn.LSTM(size, width), tensors(torch, (x, y))
        weights = list(layer.parameters())
        peers["torch, nn.LSTM"] = lambda: torch.autograd.grad(((layer(series)[0] - wanted) ** 2).mean(), weights)
    return Workload("LSTM, 50 times of 128, with gradient", lambda: f(wx, wh, bias), peers)


def bundle_adjustment(spelling: str) -> Workload:
    """Residual and 2 x 14 Jacobian of 20,000 projections of a point by a camera of 11 parameters, float64."""
    n = 20_000
    cameras, points = rng.standard_normal((n, 11)), rng.standard_normal((n, 3)) + np.array([0.0, 0.0, 10.0])

    def project(np_: Any, c: Any, p: Any) -> Any:
        """Rodrigues' rotation, translation, radial distortion; c and p may be arrays of components."""
        theta2 = c[0] * c[0] + c[1] * c[1] + c[2] * c[2] + 1e-12
        theta = np_.sqrt(theta2)
        s, t = np_.sin(theta) / theta, (1.0 - np_.cos(theta)) / theta2
        dot = c[0] * p[0] + c[1] * p[1] + c[2] * p[2]
        cross = [c[1] * p[2] - c[2] * p[1], c[2] * p[0] - c[0] * p[2], c[0] * p[1] - c[1] * p[0]]
        cos = np_.cos(theta)
        x, y, z = (cos * p[k] + s * cross[k] + t * dot * c[k] + c[3 + k] for k in range(3))
        u, v = x / z, y / z
        r2 = u * u + v * v
        scale = 1.0 + r2 * (c[7] + r2 * c[8])
        return np_.stack([c[6] * scale * u + c[9], c[6] * scale * v + c[10]])

    def by_parts(cameras: Any, points: Any) -> Any:
        """All observations at once: one sweep for each of the two components of the result."""
        rows = [aj.grad(lambda c, p, i=i: np.sum(project(np, c, p)[i]), argnums=(0, 1))(cameras, points) for i in range(2)]
        return [np.concatenate(row) for row in rows]

    if spelling == "vmap(jacobian)":
        f = aj.function(aj.vmap(aj.jacobian(lambda c, p: project(np, c, p), argnums=(0, 1))))
        args: Any = cameras, points
    else:
        f, args = aj.function(by_parts), (cameras.T.copy(), points.T.copy())
    peers: Calls = {}
    if (jax := peer("jax")) is not None:
        jax.config.update("jax_enable_x64", True)
        of_one = jax.jacrev(lambda c, p: project(jax.numpy, c, p), argnums=(0, 1))
        peers["jax"] = jitted(jax, jax.vmap(of_one), cameras, points)
    if (torch := peer("torch")) is not None:
        of_torch = torch.vmap(torch.func.jacrev(lambda c, p: project(torch, c, p), argnums=(0, 1)))
        given = tensors(torch, (cameras, points))
        peers["torch"] = lambda: of_torch(*given)
    return Workload(f"bundle adjustment, 20,000 observations, {spelling}", lambda: f(*args), peers)


def row_maxima(n: int) -> Workload:
    x, peers = rng.standard_normal((n, n), dtype="f4"), {"numpy": lambda: x.max(axis=1)}
    f = aj.function(lambda x: np.max(x, axis=1))
    if (jax := peer("jax")) is not None:
        peers["jax"] = jitted(jax, lambda x: x.max(axis=1), x)
    return Workload(f"maxima of {n} rows of {n}", lambda: f(x), peers)


def product(n: int, dtype: str) -> Workload:
    a, b = rng.standard_normal((2, n, n)).astype(dtype)
    f = aj.function(lambda a, b: a @ b)
    peers: Calls = {"numpy": lambda: a @ b}
    if (torch := peer("torch")) is not None:
        left, right = tensors(torch, (a, b))
        peers["torch"] = lambda: left @ right
    return Workload(f"product of {n} x {n}, {dtype}", lambda: f(a, b), peers)


def bodies() -> Workload:
    """Softened potential of 512 bodies, value and gradient, float64."""
    x, m = rng.standard_normal((512, 3)), rng.uniform(0.5, 1.0, 512)

    def potential(np_: Any, x: Any, m: Any) -> Any:
        d = x[:, None, :] - x[None, :, :]
        return -0.5 * np_.sum(m[:, None] * m[None, :] / np_.sqrt(np_.sum(d * d, axis=2) + 1e-2))

    f = aj.function(aj.value_and_grad(lambda x, m: potential(np, x, m)))
    peers: Calls = {}
    if (jax := peer("jax")) is not None:
        jax.config.update("jax_enable_x64", True)
        peers["jax"] = jitted(jax, jax.value_and_grad(lambda x, m: potential(jax.numpy, x, m)), x, m)
    return Workload("512 bodies, with gradient", lambda: f(x, m), peers)


def many_leaves(n: int) -> Workload:
    """A step of gradient descent on a list of n layers, each a dict of two small arrays: the cost of a structure of arguments."""
    layers = [{"w": (0.3 * rng.standard_normal((8, 8))).astype("f4"), "b": np.zeros(8, "f4")} for _ in range(n)]
    x = rng.standard_normal((16, 8)).astype("f4")

    def loss(np_: Any, layers: Any, x: Any) -> Any:
        for layer in layers:
            x = np_.tanh(x @ layer["w"] + layer["b"])
        return np_.mean(x * x)

    def step(np_: Any, grad: Any, layers: Any, x: Any) -> Any:
        d = grad(lambda layers: loss(np_, layers, x))(layers)
        rate = np.float32(0.1)
        return [{name: layer[name] - rate * by[name] for name in layer} for layer, by in zip(layers, d, strict=True)]

    f = aj.function(lambda layers, x: step(np, aj.grad, layers, x))
    peers: Calls = {}
    if (jax := peer("jax")) is not None:
        peers["jax"] = jitted(jax, lambda layers, x: step(jax.numpy, jax.grad, layers, x), layers, x)
    return Workload(f"{n} layers of 8 as a list of dicts, a step", lambda: f(layers, x), peers)


def workloads() -> Iterator[Callable[[], Workload]]:
    yield embedding
    for gradient in (False, True):
        yield lambda gradient=gradient: dynamic_time_warping(100, gradient)  # type: ignore[misc]
    for times, causal in ((128, True), (1024, False), (1024, True)):
        yield lambda times=times, causal=causal: attention(times, causal)  # type: ignore[misc]
    yield gpt
    yield lstm
    for spelling in ("by components", "vmap(jacobian)"):
        yield lambda spelling=spelling: bundle_adjustment(spelling)  # type: ignore[misc]
    yield lambda: row_maxima(8192)
    for dtype in ("float32", "float64"):
        yield lambda dtype=dtype: product(2048, dtype)  # type: ignore[misc]
    yield bodies
    yield lambda: many_leaves(200)
