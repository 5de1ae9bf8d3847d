"""Train in a browser: two moons, a network whose decision boundary is drawn while it learns, from one exported WebAssembly module.

    python examples/export_moons.py                     # writes moons.html and prints its path; open it, no server is needed
    python examples/export_moons.py --output somewhere

Training steps with Adam, their gradients and the drawn field are one function, exported as `.wasm` and put into the page with its
JavaScript module. There is no other library in the page.
"""

import argparse
import base64
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np

import adjit as aj
from adjit import nn

POINTS, GRID = 320, 96  # maximum number of points (those with weight 0 do not count); the field is GRID x GRID
LIMIT = 2.0  # the page shows the square from -LIMIT to LIMIT


def moons(rng, count):
    """Two half circles that interlock, with noise; labels 0 and 1."""
    angle = np.pi * rng.random(count)
    label = np.arange(count) % 2
    x = np.where(label == 0, np.cos(angle) - 0.5, 0.5 - np.cos(angle)) * 1.1
    y = np.where(label == 0, np.sin(angle) - 0.25, 0.25 - np.sin(angle)) * 1.3
    points = np.stack([x, y], axis=1) + 0.2 * rng.standard_normal((count, 2))
    return points.astype(np.float32), label.astype(np.float32)


def trained_field():
    """The function that the page calls once a frame."""
    rng = np.random.default_rng(0)
    sizes = [2, 32, 32, 1]
    shapes = list(pairwise(sizes))
    weights = [aj.Variable((rng.standard_normal(s) / np.sqrt(s[0])).astype("f4"), name=f"w{k}") for k, s in enumerate(shapes)]
    biases = [aj.Variable(np.zeros(n, "f4"), name=f"b{k}") for k, n in enumerate(sizes[1:])]
    optimizer = nn.optimizers.AdamW(0.01, weight_decay=0.02)
    axis = np.linspace(-LIMIT, LIMIT, GRID, dtype="f4")

    def logits(first):
        hidden = np.tanh(first)
        hidden = np.tanh(hidden @ weights[1] + biases[1])
        return (hidden @ weights[2] + biases[2])[..., 0]

    def step(points, labels, counts):
        with aj.GradientTape() as tape:
            z = logits(points @ weights[0] + biases[0])
            each = np.maximum(z, 0.0) - z * labels + np.log1p(np.exp(-np.abs(z)))
            loss = np.sum(counts * each) / np.sum(counts)
        variables = [*weights, *biases]
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        right = np.sum(counts * ((z > 0.0) == (labels > 0.5)).astype("f4")) / np.sum(counts)
        return loss, right

    @aj.function
    def frame(points, labels, counts, steps, rate):
        optimizer.learning_rate.assign(rate)
        loss, accuracy = np.float32(0.0), np.float32(0.0)
        for _ in range(steps):
            loss, accuracy = step(points, labels, counts)
        rows, columns = axis[::-1, None, None] * weights[0][1], axis[:, None] * weights[0][0]
        return {"loss": loss, "accuracy": accuracy, "field": logits(rows + columns + biases[0])}

    return frame


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="where the page goes")
    options = parser.parse_args()
    folder = options.output or Path(tempfile.mkdtemp(prefix="moons"))
    folder.mkdir(parents=True, exist_ok=True)

    points, labels = np.zeros((POINTS, 2), "f4"), np.zeros(POINTS, "f4")
    counts = np.zeros(POINTS, "f4")
    points[:200], labels[:200] = moons(np.random.default_rng(1), 200)
    counts[:200] = 1.0
    frame = trained_field()
    frame.export(folder / "moons.wasm", points, labels, counts, 1, 0.01)
    code = (folder / "moons.wasm").read_bytes()

    page = Path(__file__).with_name("export_moons.html").read_text(encoding="utf-8")
    data = ", ".join(f"{v:.3f}" for v in np.column_stack([points, labels])[:200].ravel())
    module = (folder / "moons.mjs").read_text().replace("export async function load", "async function load")
    for mark, part in (("/*MODULE*/", module), ("/*DATA*/", data), ("/*WASM*/", base64.b64encode(code).decode())):
        page = page.replace(mark, part)
    (folder / "moons.html").write_text(page, encoding="utf-8")
    print(f"{folder / 'moons.wasm'}: {len(code) / 1024:.0f} KB; the page, with everything in it: {folder / 'moons.html'}")

    for k in range(31):
        found = frame(points, labels, counts, 10, 0.01)
        if k % 10 == 0:
            print(f"in Python, after {10 * (k + 1):3d} steps: loss {float(found['loss']):.4f}, accuracy {float(found['accuracy']):.1%}")
    shown = 1.0 / (1.0 + np.exp(-found["field"].numpy()[:: GRID // 24, :: GRID // 48]))
    print("\n".join("  " + "".join(" .:-=+*#%@"[min(9, int(10 * p))] for p in row) for row in shown))
    assert float(found["accuracy"]) > 0.95


if __name__ == "__main__":
    main()
