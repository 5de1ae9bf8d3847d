"""Pieces of programs with derivatives and maps, as in `snippets.py`: {axis} is an axis of {x}, and {size} the number of its elements."""

TAPES = """
def {g}(u):
    with aj.GradientTape() as {a}:
        {a}.watch(u)
        y = np.sum(np.sin(u) * u)
    return {a}.gradient(y, u)
{out} = lib.taped({g})({x})

def {g}(u):
    with aj.GradientTape(persistent=True) as {a}:
        {a}.watch(u)
        y = np.sum(np.sin(u))
        z = np.sum(u * y)
    return {a}.gradient(y, u) + {a}.gradient(z, u)
{out} = lib.taped({g})({x})

def {g}(u):
    with aj.GradientTape(persistent=True) as {a}:
        {a}.watch(u)
        y = np.tanh(u) * u
    return {a}.gradient(y, u, output_gradients=u * 0.5) + {a}.gradient(y, u)
{out} = lib.taped({g})({x})

def {g}(u):
    with aj.GradientTape() as {a}:
        {a}.watch(u)
        y = u * 0.5
        z = np.sin(u)
    return {a}.gradient([y, z], u)
{out} = lib.taped({g})({x})

def {g}(u):
    with aj.GradientTape() as {a}:
        {a}.watch(u)
        w = u * 0.5
        y = np.sum(w * w * u)
    return {a}.gradient(y, [u, w])[1]
{out} = lib.taped({g})({x})

def {g}(u):
    with aj.GradientTape() as {a}:
        {a}.watch(u)
        y = u
        for j in aj.range({n}):
            y = np.tanh(y * 0.9)
    return {a}.gradient(y, u)
{out} = lib.taped({g})({x})

def {g}(u):
    with aj.GradientTape() as {a}:
        {a}.watch(u)
        y = np.sum(u)
        while y * y > 0.3:
            y = y * 0.4
    return {a}.gradient(y, u)
{out} = lib.taped({g})({x})

def {g}(u):
    with aj.GradientTape() as outer:
        outer.watch(u)
        with aj.GradientTape() as {a}:
            {a}.watch(u)
            y = np.sum(np.sin(u) * u)
        s = {a}.gradient(y, u)
    return outer.gradient(np.sum(s * s), u)
{out} = lib.taped({g})({x})

def {g}(u):
    for j in range({n}):
        with aj.GradientTape() as {a}:
            {a}.watch(u)
            y = np.sum(np.cos(u))
        u = u - 0.1 * {a}.gradient(y, u)
    return u
{out} = lib.taped({g})({x})

def {g}(u):
    for j in aj.range({n}):
        with aj.GradientTape() as {a}:
            {a}.watch(u)
            y = np.sum(np.cos(u))
        u = u - 0.1 * {a}.gradient(y, u)
    return u
{out} = lib.taped({g})({x})

def {g}(u):
    with aj.GradientTape() as {a}:
        {a}.watch(u)
        y = np.sum(u * u)
        with {a}.stop_recording():
            z = np.sum(u)
        y = y * z
    return {a}.gradient(y, u)
{out} = lib.taped({g})({x})
"""

MAPS = """
{out} = aj.vmap(lambda u, v: u * np.sum(v), in_axes=({axis}, None))({x}, {y})

{out} = aj.vmap(lambda u: np.sin(u), in_axes={axis}, out_axes={axis})({x})

{out} = aj.vmap(lambda u: (u * 0.5, np.sum(u)), in_axes={axis})({x})[1]

{out} = aj.vmap(lambda p: p['a'] * p['b'])({'a': {x}, 'b': {x} * 0.5})

{out} = aj.vmap(lambda p, q: {'s': p[0] + q * p[1]}, in_axes=((0, None), 0))(({x}, 0.5), {x})['s']

{out} = aj.vmap(lambda u: aj.vmap(lambda v: u * v)(np.ravel({x})))(np.ravel({x})[:3])

{out} = aj.vmap(lambda u: np.cumsum(np.atleast_1d(u))[-1] * {x})(np.ravel({x})[:2])

def {g}(u):
    for j in aj.range({n}):
        u = np.tanh(u * 0.9) + j
    return u
{out} = aj.vmap({g}, in_axes={axis})({x})

def {g}(u):
    rows = []
    for j in aj.range({n}):
        rows.append(np.sum(u) * j)
    return np.stack(rows)
{out} = aj.vmap({g})({x})

def {g}(u):
    s = np.sum(u)
    if s > {num}:
        s = s * 0.5
    else:
        s = np.sin(s)
    return s
{out} = aj.vmap({g})({x})

def {g}(u):
    s, j = np.sum(u), 0
    while s > {num} and j < 4:
        s, j = s * 0.5, j + 1
    return s + j
{out} = aj.vmap({g})({x})

def {g}(u):
    s = np.sum(u)
    for j in aj.range(4):
        if s < {num}:
            break
        s = s * 0.5
    return s
{out} = aj.vmap(aj.grad({g}))({x})

{out} = aj.vmap(lambda u: aj.scan(lambda c, v: (c * 0.5 + np.sum(v), c), 0.0, np.atleast_1d(u))[0])({x})

{out} = aj.vmap(lambda u: aj.fori_loop(0, {n}, lambda j, v: np.sin(v) + j, u), in_axes={axis})({x})

{out} = aj.vmap(lambda u: np.ravel({x})[np.argmax(np.atleast_1d(u))] * u)({x})

{out} = aj.vmap(lambda k: np.ravel({x})[k] * 2.0)(np.arange({size}) % {n})
"""
