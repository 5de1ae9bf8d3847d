"""Programs on graphs, tables of dynamic programming, and small grammars."""

# mypy: ignore-errors
from __future__ import annotations

from .support import *

EDGES = [(0, 1), (1, 2), (0, 2), (2, 3)]


def bellman_ford(x, n):
    weights = dict(zip(EDGES, np.abs(x)))
    distance = [0.0] + [float("inf")] * 3
    for _ in range(3):
        for (a, b), w in weights.items():
            if distance[a] + w < distance[b]:
                distance[b] = distance[a] + w
    return distance


def floyd_warshall(x, n):
    d = np.full((4, 4), 99.0)
    np.fill_diagonal(d, 0.0)
    for (a, b), w in zip(EDGES, np.abs(x)):
        d[a, b] = d[b, a] = w
    for k, i, j in itertools.product(range(4), repeat=3):
        d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


def dijkstra_by_scan(x, n):
    graph = defaultdict(list)
    for (a, b), w in zip(EDGES, np.abs(x) + 0.1):
        graph[a].append((b, w))
    best = {0: 0.0}
    todo = [0]
    while todo:
        here = todo.pop(0)
        for there, w in graph[here]:
            if there not in best or best[here] + w < best[there]:
                best[there] = best[here] + w
                todo.append(there)
    return best


def breadth_first(x, n):
    neighbours = {0: [1, 2], 1: [3], 2: [3], 3: []}
    seen, queue, total = {0}, deque([(0, 1.0)]), 0.0
    while queue:
        node, scale = queue.popleft()
        total += scale * x[node]
        for other in neighbours[node]:
            if other not in seen:
                seen.add(other)
                queue.append((other, scale * 0.5))
    return total * n


def depth_first_with_generator(x, n):
    tree = {"root": ["left", "right"], "left": ["leaf"]}
    values = dict(zip(("root", "left", "right", "leaf"), x))

    def visit(name, depth=0):
        yield name, depth
        for child in tree.get(name, ()):
            yield from visit(child, depth + 1)

    return sum(values[name] * 0.5**depth for name, depth in visit("root")), [d for _, d in visit("root")]


def page_rank(x, n):
    links = np.array([[0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 0, 0]], float)
    move = links / links.sum(axis=1, keepdims=True)
    rank, before = np.full(4, 0.25), None
    start = np.abs(x) / np.sum(np.abs(x))
    while before is None or np.abs(rank - before).sum() > 1e-8:
        before, rank = rank, 0.85 * rank @ move + 0.15 * start
    return rank


def union_find(x, n):
    parent = list(range(4))

    def find(a):
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        return a

    total = 0.0
    for k in np.argsort([3, 1, 2, 0]):
        a, b = EDGES[k]
        if find(a) != find(b):
            parent[find(a)] = find(b)
            total += x[k]
    return total, len({find(a) for a in range(4)})


def topological_order(x, n):
    before = Counter(b for _, b in EDGES)
    ready = [a for a in range(4) if not before[a]]
    times = [0.0] * 4
    while ready:
        a = ready.pop()
        for k, (p, q) in enumerate(EDGES):
            if p == a:
                times[q] = max(times[q], times[a] + x[k])
                before[q] -= 1
                if before[q] == 0:
                    ready.append(q)
    return times


def knapsack(x, n):
    best = [0.0] * 6
    for value, weight in zip(x, (1, 2, 3, 2)):
        for room in range(5, weight - 1, -1):
            best[room] = max(best[room], best[room - weight] + value)
    return best[-1]


def edit_distance(x, n):
    a, b = x > 0, np.array([True, True, False])
    row = list(range(len(b) + 1))
    for i, p in enumerate(a, 1):
        new = [i]
        for j, q in enumerate(b, 1):
            new.append(min(new[-1] + 1, row[j] + 1, row[j - 1] + (p != q)))
        row = new
    return row[-1] + n


def longest_increasing(x, n):
    longest = []
    for i, v in enumerate(x):
        best = 0
        for j in range(i):
            if x[j] < v and longest[j] > best:
                best = longest[j]
        longest.append(best + 1)
    return max(longest), longest


def kadane(x, n):
    best = here = x[0]
    start = first = last = 0
    for i, v in enumerate(x[1:], 1):
        if here < 0:
            here, start = v, i
        else:
            here += v
        if here > best:
            best, first, last = here, start, i
    return best, first, last


def dynamic_time_warping(x, n):
    other = np.array([0.5, 1.0, 2.0])
    table = {(-1, -1): 0.0}
    for i in range(len(x)):
        for j in range(len(other)):
            options = [table[k] for k in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if k in table]
            table[i, j] = abs(x[i] - other[j]) + functools.reduce(min, options)
    return table[3, 2]


def viterbi(x, n):
    stay, move = np.log(0.7), np.log(0.3)
    scores, back = [0.0, 0.0], []
    for v in x:
        fits = [-0.5 * v**2, -0.5 * (v - 2) ** 2]
        new, choice = [], []
        for s in range(2):
            same, other = scores[s] + stay, scores[1 - s] + move
            new.append(fits[s] + max(same, other))
            choice.append(s if same >= other else 1 - s)
        scores = new
        back.append(choice)
    return scores, back


def matrix_chain(x, n):
    sizes = np.abs(x) + 1

    @functools.cache
    def cost(i, j):
        if j - i < 2:
            return 0.0
        return min(cost(i, k) + cost(k, j) + sizes[i] * sizes[k] * sizes[j] for k in range(i + 1, j))

    return cost(0, 3)


def coin_change(x, n):
    ways = [1] + [0] * 5
    for coin in (1, 2, 5):
        for amount in range(coin, 6):
            ways[amount] += ways[amount - coin]
    return ways[-1] * x[n]


def fibonacci_memo(x, n):
    memo = {0: x[0], 1: x[1]}

    def fib(k):
        if k not in memo:
            memo[k] = fib(k - 1) + fib(k - 2)
        return memo[k]

    return fib(10)


def permutations_of_tour(x, n):
    best = float("inf")
    for order in itertools.permutations(range(1, 4)):
        route = (0, *order, 0)
        length = sum(abs(x[a] - x[b]) * (1 + 0.1 * a) for a, b in itertools.pairwise(route))
        if length < best:
            best = length
    return best


def n_queens(x, n):
    def place(row, columns):
        if row == 4:
            return 1
        return sum(place(row + 1, (*columns, c)) for c in range(4) if all(c != q and abs(c - q) != row - r for r, q in enumerate(columns)))

    return place(0, ()) * x[0]


def bubble_sort(x, n):
    v = list(x)
    swaps = 0
    for i in range(len(v)):
        for j in range(len(v) - 1 - i):
            if v[j] > v[j + 1]:
                v[j], v[j + 1] = v[j + 1], v[j]
                swaps += 1
    return v, swaps


def insertion_sort_in_array(x, n):
    v = x.copy()
    for i in range(1, 4):
        j = i
        while j > 0 and v[j - 1] > v[j]:
            v[j - 1], v[j] = v[j], v[j - 1]
            j -= 1
    return v


def binary_search(x, n):
    v = np.sort(x)
    lo, hi = 0, len(v)
    while lo < hi:
        mid = (lo + hi) // 2
        if v[mid] < n:
            lo = mid + 1
        else:
            hi = mid
    return lo


def merge_lists(x, n):
    a, b = sorted([x[0], x[1]]), sorted([x[2], x[3]])
    out = np.zeros(4)
    i = j = 0
    for k in range(4):
        if j == 2 or (i < 2 and (a[0] if i == 0 else a[1]) <= (b[0] if j == 0 else b[1])):
            out[k] = a[0] if i == 0 else a[1]
            i += 1
        else:
            out[k] = b[0] if j == 0 else b[1]
            j += 1
    return out


def quickselect(x, n):
    left, right, k = 0, 3, 1
    v = x.copy()
    while left < right:
        pivot, store = v[right], left
        for i in range(4):
            if left <= i and i < right and v[i] < pivot:
                v[i], v[store] = v[store], v[i]
                store += 1
        v[right], v[store] = v[store], v[right]
        if store == k:
            break
        if store < k:
            left = store + 1
        else:
            right = store - 1
    return v[k]


def calculator(x, n):
    names = {"a": x[0], "b": x[1], "n": n}
    tokens = "a b + n * b -".split()
    stack = []
    for token in tokens:
        match token:
            case "+" | "-" | "*":
                right, left = stack.pop(), stack.pop()
                stack.append({"+": operator.add, "-": operator.sub, "*": operator.mul}[token](left, right))
            case name if name in names:
                stack.append(names[name])
            case _:
                raise ValueError(f"what is {token!r}?")
    (result,) = stack
    return result


def descent_parser(x, n):
    tokens = iter("a * ( b + a ) - b".split() + ["end"])
    here = next(tokens)
    values = {"a": x[0], "b": x[1]}

    def advance():
        nonlocal here
        old, here = here, next(tokens, "end")
        return old

    def factor():
        if here == "(":
            advance()
            inner = expression()
            assert advance() == ")", "a parenthesis is missing"
            return inner
        return values[advance()]

    def term():
        out = factor()
        while here == "*":
            advance()
            out = out * factor()
        return out

    def expression():
        out = term()
        while here in "+-":
            sign = 1 if advance() == "+" else -1
            out = out + sign * term()
        return out

    return expression() * n


def bracket_depth(x, n):
    depth = deepest = 0
    valid = True
    for v in x:
        depth += 1 if v > 0 else -1
        if depth < 0:
            valid = False
            break
        deepest = max(deepest, depth)
    else:
        valid = depth == 0
    return depth, deepest, valid


def tokens_of_signs(x, n):
    kinds = enum.IntEnum("kinds", ["UP", "DOWN", "FLAT"])
    out = []
    for v in x:
        if v > 1:
            out.append(kinds.UP)
        elif v < -1:
            out.append(kinds.DOWN)
        else:
            out.append(kinds.FLAT)
    return out


def state_machine(x, n):
    table = {("idle", True): "run", ("idle", False): "idle", ("run", True): "run", ("run", False): "idle"}
    state, time_running = "idle", 0.0
    for k, v in enumerate((True, False, True, True)):
        state = table[state, v]
        if state == "run":
            time_running += x[k]
    return time_running


def expression_tree(x, n):
    @dataclass(frozen=True)
    class Num:
        value: float

    @dataclass(frozen=True)
    class Op:
        sign: str
        left: object
        right: object

    def value(e):
        match e:
            case Num(v):
                return v
            case Op("+", a, b):
                return value(a) + value(b)
            case Op("*", a, Num(1)):
                return value(a)
            case Op("*", a, b):
                return value(a) * value(b)

    return value(Op("+", Op("*", Num(x[0]), Num(1)), Op("*", Num(x[1]), Num(n))))


def polynomial_class(x, n):
    class Poly(tuple):
        def __new__(cls, *c):
            return super().__new__(cls, c)

        def __call__(self, v):
            return functools.reduce(lambda acc, c: acc * v + c, reversed(self), 0.0)

        def __mul__(self, other):
            out = [0.0] * (len(self) + len(other) - 1)
            for (i, a), (j, b) in itertools.product(enumerate(self), enumerate(other)):
                out[i + j] += a * b
            return Poly(*out)

    return (Poly(x[0], 1.0) * Poly(x[1], x[2], 1.0))(n)


def sparse_vector(x, n):
    class Sparse(dict):
        def __matmul__(self, other):
            return sum(v * other[k] for k, v in self.items() if k in other)

        def __or__(self, other):
            out = Sparse(self)
            for k, v in other.items():
                out[k] = out.get(k, 0.0) + v
            return out

    a, b = Sparse({0: x[0], 3: x[1]}), Sparse({3: x[2], 7: x[3]})
    return a @ b, (a | b)[3], sorted(a | b)


def interval_arithmetic(x, n):
    class Interval:
        def __init__(self, lo, hi):
            self.lo, self.hi = min(lo, hi), max(lo, hi)

        def __add__(self, o):
            return Interval(self.lo + o.lo, self.hi + o.hi)

        def __mul__(self, o):
            ends = [a * b for a in (self.lo, self.hi) for b in (o.lo, o.hi)]
            return Interval(min(ends), max(ends))

        def __contains__(self, v):
            return self.lo <= v <= self.hi

    i = Interval(x[0], x[1]) * Interval(x[2], x[3]) + Interval(0.0, 1.0 * n)
    return i.lo, i.hi, 0.0 in i


def dual_numbers(x, n):
    @dataclass
    class Dual:
        re: object
        du: object = 0.0

        def __add__(self, o):
            return Dual(self.re + o.re, self.du + o.du)

        def __mul__(self, o):
            o = o if isinstance(o, Dual) else Dual(o)
            return Dual(self.re * o.re, self.re * o.du + self.du * o.re)

        __rmul__ = __mul__

        def __pow__(self, k):
            out = Dual(1.0)
            for _ in range(k):
                out = out * self
            return out

    d = 3.0 * Dual(x[0], 1.0) ** n + Dual(x[1])
    return d.re, d.du


def game_scores_table(x, n):
    scores = {}
    for name, v in zip(("a", "b", "a", "c"), x):
        scores.setdefault(name, []).append(v)
    totals = {name: sum(values) / len(values) for name, values in scores.items()}
    best = max(totals, key=totals.get)
    return totals, totals[best]


def histogram_by_dict(x, n):
    counts = {}
    for v in x:
        key = "neg" if v < 0 else "pos"
        counts[key] = counts.get(key, 0) + 1
    return counts


def sliding_maximum(x, n):
    window, out = deque(maxlen=2), []
    for v in x:
        window.append(v)
        if len(window) == window.maxlen:
            out.append(max(window))
    return out


def matrix_spiral(x, n):
    m, out = np.outer(x[:3], x[1:]), []
    while len(m):
        out.extend(m[0])
        m = np.rot90(m[1:]) if len(m) > 1 else []
    return out


def convex_hull_area(x, n):
    points = sorted({(0.0, 0.0), (2.0, 0.5), (1.0, 2.0), (1.0, 1.0)})
    area = 0.0
    for (ax, ay), (bx, by) in zip(points, points[1:] + points[:1]):
        area += ax * by - bx * ay
    return area * x[0]


def point_in_polygon(x, n):
    corners = [(0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (0.0, 4.0)]
    px, py = x[2], x[3]
    inside = False
    j = len(corners) - 1
    for i, (cx, cy) in enumerate(corners):
        ox, oy = corners[j]
        if (cy > py) != (oy > py) and px < (ox - cx) * (py - cy) / (oy - cy + 1e-12) + cx:
            inside = not inside
        j = i
    return inside
