"""Programs that lean on the language: managers, decorators, generators, descriptors, protocols."""

# mypy: ignore-errors
from __future__ import annotations

import abc
import copy
import string
import typing

from .support import *


class Units:
    """A descriptor that converts."""

    def __init__(self, factor):
        self.factor = factor

    def __set_name__(self, owner, name):
        self.slot = "_" + name

    def __get__(self, instance, owner=None):
        return self if instance is None else getattr(instance, self.slot) / self.factor

    def __set__(self, instance, value):
        setattr(instance, self.slot, value * self.factor)


class Body:
    km = Units(1000.0)
    mass = Units(1.0)

    def __init__(self, km, mass=1.0):
        self.km, self.mass = km, mass

    @functools.cached_property
    def weight(self):
        return 9.81 * self.mass


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...

    def __lt__(self, other):
        return self.area() < other.area()

    def __format__(self, spec):
        return f"{type(self).__name__}"


class Disc(Shape):
    def __init__(self, r):
        self.r = r

    def area(self):
        return np.pi * self.r**2


class Box(Shape):
    __match_args__ = ("w", "h")

    def __init__(self, w, h):
        self.w, self.h = w, h

    def area(self):
        return self.w * self.h


class Recorder:
    def __init__(self):
        self.calls = []

    def __call__(self, f):
        @functools.wraps(f)
        def inner(*args, **kwargs):
            out = f(*args, **kwargs)
            self.calls.append(out)
            return out

        return inner


class Timeline:
    def __init__(self, values):
        self.values = list(values)

    def __getitem__(self, key):
        if isinstance(key, slice):
            return Timeline(self.values[key])
        return self.values[key]

    def __iter__(self):
        return (v for v in self.values)

    def __reversed__(self):
        return iter(self.values[::-1])

    def __matmul__(self, other):
        return sum(a * b for a, b in zip(self, other))

    def __iadd__(self, v):
        self.values = [w + v for w in self.values]
        return self

    def __len__(self):
        return len(self.values)


def descriptors(x, n):
    body = Body(x[0], n)
    body.km += 1.0
    return body._km, body.km, body.weight


def abstract_shapes(x, n):
    shapes: list[Shape] = [Disc(np.abs(x[0])), Box(x[2], np.abs(x[3]))]
    return [s.area() for s in shapes], f"{shapes[0]:short}"


def match_on_classes(x, n):
    def half(shape):
        match shape:
            case Disc(r=r):
                return Disc(r / 2)
            case Box(w, h) if n > 1:
                return Box(w / 2, h)
            case Box(w, h):
                return Box(w, h / 2)

    return half(Disc(x[0])).area() + half(Box(x[1], x[2])).area()


def recording_decorator(x, n):
    record = Recorder()

    @record
    def double(v, *, times=2):
        return v * times

    out = double(double(x[0], times=n))
    return out, record.calls


def decorator_with_arguments(x, n):
    def repeat(times):
        def decorate(f):
            def inner(v):
                for _ in range(times):
                    v = f(v)
                return v

            return inner

        return decorate

    @repeat(3)
    @repeat(times=2)
    def grow(v):
        return v * 1.1 if v > 0 else v - 1

    return grow(x[0])


def manager_that_restores(x, n):
    settings = {"gain": 1.0}

    @contextlib.contextmanager
    def gain(value):
        before = settings["gain"]
        settings["gain"] = value
        try:
            yield settings
        finally:
            settings["gain"] = before

    with gain(x[0]), gain(n) as now:
        inside = now["gain"] * x[1]
    return inside, settings["gain"]


def exit_stack(x, n):
    order = []
    with contextlib.ExitStack() as stack:
        for v in x[:3]:
            stack.callback(order.append, v * 2)
        stack.callback(lambda: order.append(n))
    return order


def suppressed_error(x, n):
    total = 0.0
    for key in ("a", "b", "c"):
        with contextlib.suppress(KeyError):
            total += {"a": x[0], "c": x[1]}[key]
    return total


def finally_counts(x, n):
    tries = 0

    def attempt(v):
        nonlocal tries
        try:
            if v is None:
                raise ValueError("nothing")
            return v * 2
        except ValueError as error:
            return float(len(str(error)))
        else:
            return 0.0
        finally:
            tries += 1

    return attempt(x[0]) + attempt(None), tries


def generator_pipeline(x, n):
    def scaled(values):
        for v in values:
            yield v * n

    def pairs(values):
        before = None
        for v in values:
            if before is not None:
                yield before, v
            before = v

    return [b - a for a, b in pairs(scaled(x))]


def generator_that_is_sent(x, n):
    def averager():
        total, count, mean = 0.0, 0, 0.0
        while True:
            v = yield mean
            total, count = total + v, count + 1
            mean = total / count

    average = averager()
    next(average)
    return [average.send(v) for v in x]


def generator_returns(x, n):
    def inner():
        yield x[0]
        return x[1]

    def outer():
        last = yield from inner()
        yield last * 2

    return list(outer())


def sequence_protocol(x, n):
    line = Timeline(x)
    line += n
    tail = line[1:]
    return line @ tail, list(reversed(tail)), len(tail)


def chained_comparison(x, n):
    inside = [v for v in x if v is not None]
    count = 0
    for v in inside:
        if -1.5 < v <= 2 != n:
            count += 1
    return count


def walrus_in_loop(x, n):
    k, total = 0, 0.0
    while (v := x[k]) < 2.5 and k < 3:
        total += v
        k += 1
    return total, v, k


def for_else_search(x, n):
    for i, v in enumerate(x):
        if v > n:
            found = v
            break
    else:
        found, i = -1.0, -1
    return found, i


def nested_early_return(x, n):
    for i in range(4):
        for j in range(i):
            if x[i] + x[j] < -1:
                return i, j, x[i] * x[j]
    return -1, -1, 0.0


def while_true_with_two_exits(x, n):
    a, b, steps = np.abs(x[0]), np.abs(x[1]), 0
    while True:
        steps += 1
        if a > 10:
            break
        a, b = a + b, a
        if steps > n + 2:
            return -a, steps
    return a, steps


def star_arguments(x, n):
    def polygon(first, *rest, scale=1.0, **names):
        return first * scale + sum(rest) + sum(names.values())

    head, *middle, tail = x
    return polygon(head, *middle, scale=n, tail=tail), polygon(*x[:2], **{"b": tail, "scale": 2.0})


def default_that_is_shared(x, n):
    def remember(v, memory=[]):
        memory.append(v)
        return len(memory)

    return remember(x[0]) + remember(x[1]) + remember(x[2])


def keyword_only_partial(x, n):
    def model(t, /, *, a, b=1.0):
        return a * t + b

    line = functools.partial(model, a=x[0])
    return line(2.0), functools.partial(line, b=n)(3.0)


def compose(x, n):
    def composed(*fs):
        return functools.reduce(lambda f, g: lambda v: g(f(v)), fs, lambda v: v)

    return composed(np.sin, lambda v: v * n, operator.neg)(x)


def closures_in_a_loop(x, n):
    fs = []
    for v in x:

        def f(t, v=v):
            return t * v if t > 1 else t + v

        fs.append(f)
    out = 1.0
    for f in fs:
        out = f(out)
    return out


def counter_with_nonlocal(x, n):
    def make():
        count = 0

        def step(v):
            nonlocal count
            if v > 0:
                count += 1
            return count

        return step

    a, b = make(), make()
    for v in x:
        a(v)
        b(-v)
    return a(0.0), b(0.0)


def set_of_kinds(x, n):
    kinds = set()
    for i in range(4):
        kinds |= {i % 3, i // 2}
    return sum(kinds) * x[0], len(kinds & {0, 5}), sorted(kinds - {0})


def dict_of_arrays(x, n):
    params = {"w": x[:2], "b": x[2]}
    grads = {name: 0.1 * value * n for name, value in params.items()}
    params = {name: params[name] - grads[name] for name in params} | {"extra": x[3]}
    return {name: np.sum(value) for name, value in sorted(params.items(), reverse=True)}


def nested_structure(x, n):
    tree = {"a": [x[0], (x[1], {"b": x[2]})], "c": x[3]}

    def scaled(node):
        if isinstance(node, dict):
            return {key: scaled(value) for key, value in node.items()}
        if isinstance(node, (list, tuple)):
            return type(node)(map(scaled, node))
        return node * n

    return scaled(tree)


def ordered_dict_moves(x, n):
    cache = OrderedDict(a=x[0], b=x[1], c=x[2])
    cache.move_to_end("a")
    key, value = cache.popitem(last=False)
    return key, value, list(cache.values())


def chain_map_layers(x, n):
    base, top = {"rate": 0.1, "gain": x[0]}, {"rate": x[1]}
    layers = ChainMap(top, base)
    layers["gain"] = layers["gain"] * n
    return layers["gain"], base["gain"], layers["rate"]


def dataclass_with_arrays(x, n):
    @dataclass
    class Particles:
        places: object
        speeds: object
        time: float = 0.0
        history: list = field(default_factory=list)

        def __post_init__(self):
            self.count = len(self.places)

        def moved(self, dt):
            return replace(self, places=self.places + dt * self.speeds, time=self.time + dt, history=[*self.history, self.places.sum()])

    p = Particles(x, -x)
    for _ in range(3):
        p = p.moved(0.1)
    return p.places, p.time, p.history, p.count * n


def named_tuple_class(x, n):
    class State(typing.NamedTuple):
        place: object
        speed: object = 0.0

        def step(self, force):
            speed = self.speed + 0.1 * force
            return self._replace(speed=speed, place=self.place + 0.1 * speed)

    s = State(x[0])
    for v in x:
        s = s.step(v - s.place)
    return s, s.place * n


def flags(x, n):
    class Mode(enum.Flag):
        FAST = enum.auto()
        LOUD = enum.auto()

    mode = Mode.FAST | Mode.LOUD
    out = x
    if Mode.FAST in mode:
        out = out * 2
    if mode & Mode.LOUD:
        out = out + n
    return out


def enum_with_methods(x, n):
    class Gear(enum.Enum):
        LOW = (1, 0.5)
        HIGH = (2, 2.0)

        def __init__(self, number, ratio):
            self.number, self.ratio = number, ratio

        def drive(self, v):
            return v * self.ratio

    return sum(g.drive(x[g.number]) for g in Gear), Gear((1, 0.5)).number


def super_chain(x, n):
    class Base:
        def step(self, v):
            return v + 1

    class Double(Base):
        def step(self, v):
            return 2 * super().step(v)

    class Limit(Base):
        def step(self, v):
            out = super().step(v)
            return 3.0 if out > 3 else out

    class Both(Double, Limit):
        pass

    return Both().step(x[0]), Both().step(n)


def class_counts_instances(x, n):
    class Agent:
        alive = 0

        def __init__(self, energy):
            self.energy = energy
            type(self).alive += 1

        def act(self):
            self.energy -= 0.5
            return self.energy > 0

    agents = [Agent(v) for v in x]
    return sum(agent.act() for agent in agents), Agent.alive


def attribute_access(x, n):
    class Lazy:
        def __init__(self):
            self.made = []

        def __getattr__(self, name):
            if name not in string.ascii_lowercase:
                raise AttributeError(name)
            self.made.append(name)
            return string.ascii_lowercase.index(name) * 1.0

    lazy = Lazy()
    return x[0] * (lazy.b + lazy.c), lazy.made, getattr(lazy, "two", n)


def copies_are_apart(x, n):
    first = {"a": [x[0]], "b": x}
    shallow, deep = copy.copy(first), copy.deepcopy(first)
    first["a"].append(x[1])
    first["b"] = first["b"] * n
    return len(shallow["a"]), len(deep["a"]), shallow["b"] + first["b"]


def sorting_with_keys(x, n):
    people = [("ann", x[0], 3), ("bob", x[1], 1), ("cat", x[2], 2)]
    by_age = sorted(people, key=operator.itemgetter(2))
    by_name = sorted(people, key=lambda p: p[0], reverse=True)
    return [p[1] for p in by_age], [p[0] for p in by_name]


def sort_by_traced_key(x, n):
    pairs = [(v, k) for k, v in enumerate(x)]
    return [v for v, _ in sorted(pairs, key=lambda p: -p[0])], max(pairs, key=lambda p: p[0])[0]


def assertion_with_message(x, n):
    total = x.sum()
    assert total > -100, f"the sum is {total}, which is less than {-100}"
    if n > 100:
        raise ValueError(f"n = {n} is too large")
    return total / (n + 1)


def formatted_labels(x, n):
    labels = [f"v{k:02d}" for k in range(3)]
    return dict(zip(labels, x)), "{:>5}|{!r}".format("a", "b"), f"{'x' * 3}"


def conditional_imports(x, n):
    import math
    from math import tau as turn

    return math.floor(2.7) * x[0] + turn * n


def comprehension_scopes(x, n):
    k = 10.0
    table = [[k * v for k in (1, 2)] for v in x[:2]]
    total = sum(k for k in range(3) if k != 1)
    return table, k, total * n


def lambda_recursion(x, n):
    power = lambda base, k: 1.0 if k == 0 else base * power(base, k - 1)
    return power(x[0], 4)


def swap_through_tuple(x, n):
    a, b, c = x[0], x[1], x[2]
    for _ in range(n):
        a, b, c = b, c, a + 0.1 * b
    (a, [b]), *rest = (b, [a]), c
    return a, b, rest


def zip_longest_and_chain(x, n):
    out = 0.0
    for a, b in itertools.zip_longest(x, x[:2], fillvalue=1.0):
        out += a * b
    return out, sum(itertools.islice(itertools.chain.from_iterable([x, x]), 1, 6))


def array_in_place_in_helper(x, n):
    def normalize(v):
        v -= v.mean()
        return v / (np.abs(v).max() + 1)

    y = x.copy()
    z = normalize(y)
    return y, z * n


def masks_and_where(x, n):
    y = np.where(x > 0, x, 0.1 * x)
    y[y > 2] = 2.0
    y[[0, -1]] *= n
    return y, np.count_nonzero(x > 0)


def iterator_class(x, n):
    class Countdown:
        def __init__(self, start):
            self.k = start

        def __iter__(self):
            return self

        def __next__(self):
            if self.k == 0:
                raise StopIteration
            self.k -= 1
            return self.k

    return [x[k] * 2 for k in Countdown(3)]
