"""Pieces of programs, as their users would write them; pieces are separated by empty lines.

{x} and {y} are arrays of the program that broadcast, {test} is a condition, {num} and {n} are a number and a count; {out} is the result,
and the other names are new ones.
"""

OBJECTS = """
{a} = obj.State({x} * 1.0)
for {k} in aj.range({n}):
    {a}.advance(np.sin({a}.value) * 0.5)
{out} = {a}.value + {a}.speed

{a} = obj.State({x} * 1.0)
for {k} in range({n}):
    {a} = {a}.advance({y})
{out} = {a}.value * {a}.steps

{a} = obj.State({x} * 0.5, {x})
if {test}:
    {a}.advance({x})
else:
    {a}.value = {a}.value * 2.0
{out} = {a}.value + {a}.energy

{a} = obj.State({x})
{b} = {a}
if {test}:
    {b}.value = {b}.value * 0.5
{out} = {a}.value

{a} = obj.State({x}) + obj.State({y}, steps={n})
{out} = {a}.value * ({a}.steps + 1)

{out} = obj.Setting(kind='tanh', scale={num}).apply({x}) + obj.Setting(shift={y}).apply({x})

{a} = obj.Setting(kind='linear')
{out} = {a}.apply({x}) if {a}.shift is None else {x}

{a} = obj.Layer(obj.Layer(bias={num}))
{out} = {a}({x}, scale=0.5) * {a}.calls + {a}({x}) * {a}.inner.calls

{a} = obj.Layer(bias=0.5)
for {k} in aj.range({n}):
    {a}.bias = {a}.bias * 0.5 + 0.1
{out} = {a}({x})

{a} = obj.Best({x})
for {k} in aj.range({n}):
    {a}.see({a}.value * 0.5)
{out} = {a}.value * {a}.changes

{a} = obj.Best({x})
{a}.see({x} * 0.5)
{a}.see({x} * 0.25)
{out} = {a}.value + {a}.changes

{a} = obj.Best({x})
for {k} in range({n}):
    {a}.remember(np.cos({x}) * {k})
{out} = np.stack({a}.history)[-1] + {a}[0] + len({a})

{a} = obj.Best({x})
for {k} in range({n}):
    {b} = {a}.remember({x} * {k})
{out} = sum(np.sum({c}) for {c} in {a}) * {x}

{a} = obj.Pair({x}, {y})
if {test}:
    {a} = {a}._replace(first={a}.first * 0.5)
{out} = {a}.first * {a}.second

{a} = obj.Pair(first={x}, second=obj.Pair({y}, 2))
{b}, ({c}, {k}) = {a}
{out} = {b} - {c} * {k}

{a} = obj.Pair({x}, 0.0)
for {k} in aj.range({n}):
    {a} = obj.Pair(np.tanh({a}.first), {a}.second + 0.5)
{out} = {a}.first + {a}.second

{a} = obj.Tree({x}, [obj.Tree({y}), obj.Tree({x} * 0.5, [obj.Tree({x})])])
{out} = {a}.total() * {x}

{a} = obj.Tree({x}, [obj.Tree({x} * 2.0)])
if {test}:
    {a}.children[0].leaf = {a}.leaf * 0.5
{out} = {a}.total()

{a} = {'scale': 0.5, 'x': {x}}
with obj.Scale({a}, 4.0) as {b}:
    {c} = {b}['x'] * {b}['scale']
{out} = {c} + {a}['scale']

{a} = {'scale': 0.5}
with obj.halved({a}) as {b}:
    {c} = {x} * {b} + {a}['scale']
{out} = {c} * {a}['scale']

{a} = {'scale': np.sum({x}) * 0.1}
with obj.Scale({a}, 0.5):
    if {test}:
        {b} = {x} * {a}['scale']
    else:
        {b} = {x}
{out} = {b} + {a}['scale']

{a} = type('Box', (), {})()
{a}.x = {x}
if {test}:
    {a}.x = np.sin({a}.x)
{out} = {a}.x
"""

CONTAINERS = """
{a} = {'p': {'q': [{x}, {y}]}, 'r': ({x}, 2)}
if {test}:
    {a}['p']['q'][0] = {x} * 0.5
{out} = {a}['p']['q'][0] + {a}['r'][1]

{a} = {'p': [{x}, {x} * 0.5]}
for {k} in aj.range({n}):
    {a}['p'] = [{a}['p'][1], {a}['p'][0] * 0.5]
{out} = {a}['p'][0]

{a} = [{x}, {x} * 0.5, {x} * 0.25]
{b}, *{c} = {a}
{out} = {b} + {c}[-1] * len({c})

{a} = [{x} * {k} for {k} in range({n})]
{a}.reverse()
{a}.insert(0, {x})
{out} = {a}[0] - {a}[-1] + len({a})

{a} = [{x}] * {n}
{a}[0] = {a}[0] * 0.5
{out} = sum({a}) + {a}[-1]

{a} = {{k}: {x} * {k} for {k} in range({n})}
{out} = sum({a}.values()) + max({a})

{a} = {'m': {x}, 'n': {y}}
{b} = {**{a}, 'm': {x} * 0.5}
{out} = {b}['m'] + {a}['m'] + {b}.get('z', 0.25)

{a} = {'m': {x}, 'n': {x} * 2.0}
for {k}, {b} in {a}.items():
    {a}[{k}] = np.tanh({b})
{out} = {a}['m'] * {a}['n']

{a} = {'m': {x}}
{a}.update(n={x} * 0.5)
if {test}:
    {a}['m'], {a}['n'] = {a}['n'], {a}['m']
{out} = {a}['m'] * 2 + {a}['n']

{a} = {'m': {x}}
{b} = {a}.setdefault('m', 0.0) + {a}.setdefault('o', 0.5)
{out} = {b} * {a}.pop('m') + len({a})

{a} = ({x}, ({y}, [{x} * 0.5]))
{b}, ({c}, [{k}]) = {a}
{out} = {b} + {c} * {k}

{a} = []
for {k} in range({n}):
    {a} += [{x} * {k}, {x}]
{out} = np.stack({a}[::2])[0] + {a}[-1]

{a} = []
for {k} in range({n}):
    {a}.append(({x} * {k}, np.sum({x})))
{b}, {c} = zip(*{a})
{out} = np.stack({b}) * np.stack({c})[0]

{a} = [[{x}, {x} * 2.0], [{y}]]
{out} = sum(np.sum({b}) for {c} in {a} for {b} in {c})

{a} = list(map(lambda u: u * 0.5, [{x}, {y}]))
{out} = {a}[0] * {a}[1]

{a} = sorted([3, 1, 2], key=lambda u: -u)
{out} = sum(({x} * {k} for {k} in {a}), start={x})

{a} = {x}
{b} = {c} = {a} * 0.5
{b} = {b} + 1.0
{out} = {c} + {b}

{a} = [{x}, {y}]
{b} = {a}[:]
{b}[0] = {x} * 0.25
{out} = {a}[0] + {b}[0]

{a} = [{x}, {x} * 0.5]
for {k} in aj.range({n}):
    {a}[0], {a}[1] = {a}[1], {a}[0] * 0.9
{out} = {a}[0] - {a}[1]

{a} = [{x} * 0.1]
for {k} in aj.range({n}):
    {a}.append({a}[-1] * 0.5)
{out} = {a}[-1] + {a}[0]

{a} = [np.sum({x})]
for {k} in aj.range({n}):
    {a}.append({a}[-1] * 0.5 + {k})
{out} = np.stack({a}) + len({a})

{a} = aj.tree_map(lambda u: np.sin(u), {'m': {x}, 'n': [{y}, 0.5]})
{out} = {a}['m'] + {a}['n'][0] + {a}['n'][1]

{a}, {b} = aj.ravel_pytree([{x}, {x} * 0.5])
{out} = {b}({a} * 2.0)[1] + np.sum({a})
"""

CLOSURES = """
{a} = {x}
def {g}():
    half = {a} * 0.5
    return half + {x}
{out} = {g}()

{a} = []
def {g}(u):
    {a}.append(u)
    return len({a})
{b} = {g}({x}) + {g}({x} * 0.5)
{out} = {a}[1] * {b}

{a} = {'n': 0}
def {g}(u):
    {a}['n'] += 1
    return u * {a}['n']
for {k} in range({n}):
    {b} = {g}({x})
{out} = {b} + {a}['n']

{a} = {'n': 0.0}
def {g}(u):
    {a}['n'] = {a}['n'] + 0.5
    return u * {a}['n']
{b} = {x}
for {k} in aj.range({n}):
    {b} = {g}({b})
{out} = {b} + {a}['n']

def {g}(u, *rest, scale=0.5, **more):
    for r in rest:
        u = u + np.sum(r) * 0.1
    return u * scale + more.get('shift', 0.0)
{out} = {g}({x}, {y}, {x}, shift=0.25) + {g}({x}, scale=2)

def {g}(u, /, v, *, w=None):
    return u * v if w is None else u * v + w
{out} = {g}({x}, v={y}) + {g}({x}, 2.0, w={x})

def {g}(u, n):
    def again(u, depth):
        if depth == 0:
            return u
        return np.tanh(again(u * 0.9, depth - 1))
    return again(u, n)
{out} = {g}({x}, {n})

def {g}(u):
    for j in range({n}):
        yield u * j
{out} = sum(np.sum(v) for v in {g}({x})) + {x}

def {g}(u):
    w = u
    for j in range({n}):
        w = w * 0.5
        yield j, w
for {k}, {b} in {g}({x}):
    {c} = {b} + {k}
{out} = {c}

def {g}(u):
    yield from (u * j for j in range({n}))
    yield u
{out} = np.stack(list({g}({x})))

{a} = [lambda u, j=j: u * j for j in range(3)]
{out} = {a}[2]({a}[1]({x})) + {a}[0]({x})

{g} = functools.partial(lambda s, u, b=0.5: s * u + b, 0.25, b={num})
{out} = {g}({x})

{out} = functools.reduce(lambda u, v: u * 0.5 + v, [{x}, {x} * 2.0, {x}])

{out} = list(itertools.accumulate([{x}, {x} * 0.5, {x}], lambda u, v: u + v * 0.5))[-1]

def {g}(kind, u, option=None):
    if kind == 'sin':
        return np.sin(u)
    elif option is not None:
        return u * option
    return u
{out} = {g}('sin', {x}) + {g}('other', {x}, 0.5) + {g}('x', {x})

def {g}(u):
    total = 0.0
    def add(v):
        nonlocal total
        total = total + np.sum(v)
    add(u)
    add(u * 0.5)
    return u * total
{out} = {g}({x})

def {g}(u):
    total = 0.0
    def add(v):
        nonlocal total
        total = total + np.sum(v)
    for j in aj.range({n}):
        add(u * 0.5)
    return u * total
{out} = {g}({x})

def {g}(u):
    hits = 0
    def add():
        nonlocal hits
        hits = hits + 1
    if {test}:
        add()
    return u * hits
{out} = {g}({x})

def {g}(u):
    if np.sum(u) > {num}:
        return u * 0.5
    return np.sin(u)
{out} = {g}({x}) + {g}({x} * 0.5)

def {g}(u):
    for j in range(4):
        if np.sum(u) > {num}:
            return u + j
        u = u * 0.5
    return u - 1.0
{out} = {g}({x} * 0.5)

def {g}(u):
    while True:
        if np.sum(u) * 0.5 < 50.0:
            return u * 0.25
        u = u * 0.5
{out} = {g}({x})

def {g}(f, u):
    return f(f(u))
{out} = {g}(np.tanh, {x}) + {g}(lambda u: u * {y}, {x})

{out} = (lambda *us, **named: sum(us) * named['s'])({x}, {y}, s=0.5)

if (({a} := np.sum({x})) > {num}):
    {b} = {x} * 0.5
else:
    {b} = {x} + {a}
{out} = {b} * {a}
"""

EXITS = """
{a} = {x}
for {k} in range(4):
    if np.sum({a}) > {num}:
        break
    {a} = {a} * 0.5
else:
    {a} = {a} + 3.0
{out} = {a}

{a} = {x}
for {k} in aj.range(4):
    if np.sum({a}) > {num}:
        break
    {a} = {a} * 0.5
else:
    {a} = {a} + 3.0
{out} = {a}

{a}, {k} = {x}, 0
while {k} < 4:
    {k} += 1
    if np.sum({a}) < {num}:
        {a} = {a} - 0.25
        break
    {a} = {a} * 0.5
else:
    {a} = np.sin({a})
{out} = {a} * {k}

{a} = {x}
try:
    {a} = {a} * 0.5
    if {test}:
        {a} = {a} + 1.0
finally:
    {a} = {a} * 2.0
{out} = {a}

def {g}(u):
    try:
        return u * 0.5
    finally:
        u = u * 3.0
{out} = {g}({x})

try:
    {a} = {'m': {x}}['n']
except KeyError:
    {a} = {x} * 0.5
else:
    {a} = {x} * 2.0
{out} = {a}

match {n}:
    case 1:
        {a} = np.sin({x})
    case 2 | 3:
        {a} = {x} * 0.5
    case _:
        {a} = {x}
{out} = {a}

match [{x}, {y}]:
    case [{a}, {b}]:
        {c} = {a} * {b}
    case _:
        {c} = {x}
{out} = {c}

{a} = {x}
for {k} in aj.range(3):
    for {b} in aj.range(3):
        if np.sum({a}) > {num}:
            break
        {a} = {a} * 0.5
    {a} = {a} + 0.01
{out} = {a}

{a}, {b} = {x}, 0
for {k} in aj.range(5):
    if {k} % 2 == 0:
        continue
    {b} = {b} + {k}
    {a} = {a} * 0.5
{out} = {a} + {b}

{a}, {b} = {x}, True
while {b}:
    {a} = {a} * 0.5
    {b} = np.sum({a} * {a}) > 100.0
{out} = {a}

{a} = {x}
if {test}:
    pass
elif np.sum({x}) > {num}:
    {a} = {a} * 0.5
{out} = {a}

{a} = None
if {a} is None:
    {a} = {x}
{out} = {a} * 0.5

{a} = np.sum({x})
{out} = {x} * (({a} > {num}) + 0.5)

{a} = {x}
for {k}, ({b}, {c}) in enumerate(zip([1.0, 0.5], [{x}, {y}]), start=1):
    {a} = {a} * {b} + np.sum({c}) * {k}
{out} = {a} * 0.1

{a} = {x}
for {b} in [0.5, 0.25] * {n}:
    {a} = {a} * {b}
{out} = {a}

{a} = {x} * 1.0
assert {a} is not None
del {a}
{a} = {x} * 0.5
{out} = {a}

{a} = {x} * 1.0
{a} += 1.0
{a} *= {num}
{a} -= {y}
{out} = {a} * 0.25

{a} = {x}
{b} = {a}
{b} = {b} * 0.5
{a} = {a} + {b}
{out} = {a}
{a} = None
"""
