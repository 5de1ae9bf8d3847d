"""Programs of learning machines, robots and games."""

# mypy: ignore-errors
from __future__ import annotations

from .support import *


class Layer:
    registry = {}

    def __init_subclass__(cls, kind=None, **kwargs):
        super().__init_subclass__(**kwargs)
        Layer.registry[kind] = cls

    def __call__(self, x):
        return self.forward(x)

    def __rshift__(self, other):
        return Chain([self, other])


class Scale(Layer, kind="scale"):
    def __init__(self, by=2.0):
        self.by = by

    def forward(self, x):
        return x * self.by


class Bend(Layer, kind="bend"):
    def forward(self, x):
        return np.tanh(x)


class Chain(Layer, kind="chain"):
    def __init__(self, parts):
        self.parts = list(parts)

    def __rshift__(self, other):
        return Chain([*self.parts, other])

    def __iter__(self):
        return iter(self.parts)

    def __len__(self):
        return len(self.parts)

    def forward(self, x):
        for part in self:
            x = part(x)
        return x


def layers_by_operator(x, n):
    net = Scale(0.5) >> Bend() >> Scale(n + 1.0)
    return net(x), len(net)


def layers_by_registry(x, n):
    net = Chain(Layer.registry[kind]() for kind in ("bend", "scale"))
    return net(x * n)


def gradient_descent_by_hand(x, n):
    w, b, rate = 0.0, 0.0, 0.01
    targets = 2 * x + 1
    for epoch in range(n * 3):
        for xi, ti in zip(x, targets):
            error = w * xi + b - ti
            w -= rate * error * xi
            b -= rate * error
    return w, b


def early_stopping(x, n):
    w, best, patience = 0.0, float("inf"), 2
    for epoch in range(50):
        w -= 0.05 * (w - x[0]) + 0.01 * x[1]
        loss = (w - x[0]) ** 2
        if loss < best - 1e-4:
            best, patience = loss, 2
        else:
            patience -= 1
            if patience == 0:
                break
    return w, epoch


def perceptron(x, n):
    rows = [(1.0, x[0], 1), (1.0, x[1], -1), (0.5, x[2], 1)]
    w = [0.0, 0.0]
    mistakes = 0
    for _ in range(n):
        for a, b, label in rows:
            if label * (w[0] * a + w[1] * b) <= 0:
                w = [w[0] + label * a, w[1] + label * b]
                mistakes += 1
    return w, mistakes


def k_means(x, n):
    centers = [np.min(x), np.max(x)]
    for _ in range(n):
        groups = [[0.0, 0], [0.0, 0]]
        for v in x:
            k = 0 if abs(v - centers[0]) < abs(v - centers[1]) else 1
            groups[k][0] += v
            groups[k][1] += 1
        centers = [s / c if c else old for (s, c), old in zip(groups, centers)]
    return centers


def decision_stump(x, n):
    labels = [1, 0, 1, 0]
    best = (5, 0.0)
    for t in x:
        wrong = sum((v > t) != label for v, label in zip(x, labels))
        if wrong < best[0]:
            best = (wrong, t)
    return best


def nearest_neighbour(x, n):
    memory = {"near": 0.4, "mid": 2.1, "far": 6.0}
    winner, least = None, float("inf")
    for label, place in memory.items():
        d = abs(x[0] - place)
        if d < least:
            least = d
            winner = place
    return winner, least


def attention_by_loops(x, n):
    out = []
    for q in x:
        scores = [q * k / 2 for k in x]
        top = max(scores)
        weights = [np.exp(s - top) for s in scores]
        out.append(sum(w * v for w, v in zip(weights, x)) / sum(weights))
    return out


def recurrent_cell(x, n):
    class Cell:
        def __init__(self):
            self.h = 0.0

        def __call__(self, v):
            self.h = np.tanh(0.5 * self.h + 0.3 * v)
            return self.h

    cell = Cell()
    outputs = [cell(v) for v in x]
    return outputs[-1], cell.h, sum(outputs) * n


def dropout_by_mask(x, n):
    keep = [True, False, True, True]
    return np.array([v / 0.75 if k else 0.0 for v, k in zip(x, keep)]) * n


def adam_state(x, n):
    state = defaultdict(float)
    p = x[0]
    for t in range(1, n + 1):
        g = 2 * (p - 1)
        for name, beta, value in (("m", 0.9, g), ("v", 0.999, g * g)):
            state[name] = beta * state[name] + (1 - beta) * value
        m, v = state["m"] / (1 - 0.9**t), state["v"] / (1 - 0.999**t)
        p -= 0.1 * m / (np.sqrt(v) + 1e-8)
    return p


def learning_rate_schedule(x, n):
    def warmup(step, until=3):
        return min(1.0, (step + 1) / until)

    def decay(step):
        return 0.5 ** (step // 2)

    rate = 0.0
    for step in range(n):
        rate += warmup(step) * decay(step)
    return rate * x[0]


def clip_by_norm(x, n):
    norm = np.sqrt(sum(v * v for v in x))
    if norm > n:
        x = x * (n / norm)
    return x


def beam_search(x, n):
    beams = [(0.0, ())]
    for v in (x[0], x[1]):
        grown = [(score + (v if bit else -v / 2), (*path, bit)) for score, path in beams for bit in (0, 1)]
        grown.sort(key=lambda pair: pair[0], reverse=True)
        beams = grown[:2]
    return [score for score, _ in beams]


def pid_controller(x, n):
    @dataclass
    class Pid:
        p: float
        i: float
        d: float
        total: float = 0.0
        last: object = None

        def __call__(self, error, dt=0.1):
            self.total += error * dt
            slope = 0.0 if self.last is None else (error - self.last) / dt
            self.last = error
            return self.p * error + self.i * self.total + self.d * slope

    control, place = Pid(1.0, 0.2, 0.05), x[0]
    for _ in range(n):
        place += 0.1 * control(1.0 - place)
    return place, control.total


def forward_kinematics(x, n):
    joint = namedtuple("joint", "angle length")
    arm = [joint(x[0], 1.0), joint(x[1], 0.5), joint(angle=x[2], length=0.25)]
    px = py = total = 0.0
    for j in arm:
        total += j.angle
        px, py = px + j.length * np.cos(total), py + j.length * np.sin(total)
    return px, py


def inverse_kinematics(x, n):
    a, b = 0.3, 0.3
    for _ in range(5 * n):
        ex = 0.8 - (np.cos(a) + 0.5 * np.cos(a + b))
        ey = 0.2 * x[0] - (np.sin(a) + 0.5 * np.sin(a + b))
        if ex * ex + ey * ey < 1e-6:
            break
        jac = np.array([[-np.sin(a) - 0.5 * np.sin(a + b), -0.5 * np.sin(a + b)], [np.cos(a) + 0.5 * np.cos(a + b), 0.5 * np.cos(a + b)]])
        step = jac.T @ np.array([ex, ey]) * 0.3
        a, b = a + step[0], b + step[1]
    return a, b


def quaternion_product(x, n):
    class Quaternion:
        __slots__ = ("parts",)

        def __init__(self, *parts):
            self.parts = parts

        def __mul__(self, other):
            a, b, c, d = self.parts
            e, f, g, h = other.parts
            return Quaternion(
                a * e - b * f - c * g - d * h, a * f + b * e + c * h - d * g, a * g - b * h + c * e + d * f, a * h + b * g - c * f + d * e
            )

        def __abs__(self):
            return np.sqrt(sum(p * p for p in self.parts))

        def __truediv__(self, by):
            return Quaternion(*(p / by for p in self.parts))

        def __iter__(self):
            yield from self.parts

    q = Quaternion(*x)
    for _ in range(n):
        q = q * Quaternion(1.0, 0.5, 0.0, 0.0)
        q = q / abs(q)
    return list(q)


def occupancy_grid(x, n):
    grid = np.zeros((3, 3))
    for k, v in enumerate(x):
        i, j = divmod(k, 3)
        grid[i, j] += v
        if v > 1:
            grid[i - 1, j] = -1.0
    return grid


def line_follower(x, n):
    state, turns = "straight", 0
    for v in x:
        match state:
            case "straight" if v > 2:
                turns += 1
            case "straight":
                turns += 0
        if turns > n:
            return turns, v
    return turns, 0.0


def rock_paper_scissors(x, n):
    beats = {0: 2, 1: 0, 2: 1}
    wins = 0
    for mine, yours in [(0, 1), (1, 0), (2, 1), (0, 2)]:
        wins += beats[mine] == yours
    return wins * x[n]


def game_of_life(x, n):
    board = (np.outer(x, x) > 0).astype(int)
    for _ in range(n):
        around = sum(np.roll(board, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
        board = ((around == 3) | ((board == 1) & (around == 2))).astype(int)
    return board


def tic_tac_toe(x, n):
    board = np.sign(np.outer(x[:3], x[1:]))
    lines = [*board, *board.T, np.diag(board), np.diag(board[::-1])]
    for line in lines:
        if abs(line.sum()) == 3:
            return line[0]
    return 0.0


def elo(x, n):
    ratings = {"ann": 1500.0 + x[0], "bob": 1500.0 + x[1]}
    for winner, loser in [("ann", "bob"), ("bob", "ann"), ("ann", "bob")]:
        expected = 1 / (1 + 10 ** ((ratings[loser] - ratings[winner]) / 400))
        change = 32 * (1 - expected)
        ratings[winner] += change
        ratings[loser] -= change
    return ratings


def minimax(x, n):
    def value(lo, hi, mine):
        if hi - lo == 1:
            return x[lo]
        middle = (lo + hi) // 2
        a, b = value(lo, middle, not mine), value(middle, hi, not mine)
        return max(a, b) if mine else min(a, b)

    return value(0, 4, True)


def inventory(x, n):
    class Bag:
        def __init__(self):
            self._items = {}

        def __setitem__(self, key, value):
            self._items[key] = value

        def __getitem__(self, key):
            return self._items.get(key, 0.0)

        def __contains__(self, key):
            return key in self._items

        def __missing__(self, key):
            raise KeyError(key)

    bag = Bag()
    bag["gold"] = x[0]
    if x[1] > 0:
        bag["gold"] += x[1]
    return bag["gold"] + bag["silver"], "gold" in bag


def damage_with_criticals(x, n):
    health, log = 20.0, []
    for round, hit in enumerate(x, start=1):
        if round > n:
            break
        damage = hit * (2 if hit > 2.5 else 1)
        health -= max(damage, 0)
        log.append(damage)
        if health <= 0:
            return -1.0, len(log)
    return health, len(log)


def q_learning(x, n):
    q = np.zeros((2, 2))
    state = 0
    for reward in x:
        action = 1 if q[state, 1] >= q[state, 0] else 0
        after = (state + action + 1) % 2
        best = max(q[after, 0], q[after, 1])
        q[state, action] += 0.5 * (reward + 0.9 * best - q[state, action])
        state = after
    return q


def bandit(x, n):
    pulls, means = [1, 1], [x[0], x[1]]
    for t in range(2, 2 + n):
        bounds = [m + (2 * np.log(t) / p) ** 0.5 for m, p in zip(means, pulls)]
        arm = 0 if bounds[0] >= bounds[1] else 1
        for k in range(2):
            if arm == k:
                pulls[k] += 1
                means[k] += (x[k + 2] - means[k]) / pulls[k]
    return pulls, means
