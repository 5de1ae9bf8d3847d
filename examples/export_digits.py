"""Train the digits in C: a whole training step, exported with its variables, gives the loss curve of Python to the last bit.

    python examples/export_digits.py                       # needs a C compiler to link and run the program
    python examples/export_digits.py --output somewhere    # keeps the files

The step (convolutions, batch normalisation, dropout, gradients, Adam) becomes `step.a` and `step.h`. `export_digits.c` is an ordinary C
program around it: it owns the state and the working memory, reads the images from a file, and needs nothing but libc.
"""

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from digits_convnet import draw

import adjit as aj
from adjit import nn

BATCH, COUNT, EPOCHS = 50, 2000, 4


def model_step():
    nn.set_seed(0)
    model = nn.Sequential([
        nn.Conv2D(8, 3, padding="same", use_bias=False), nn.BatchNorm(momentum=0.9), nn.Activation("relu"), nn.MaxPool2D(),
        nn.Conv2D(16, 3, padding="same", activation="relu"), nn.MaxPool2D(), nn.Flatten(), nn.Dropout(0.2), nn.Dense(10),
    ])  # fmt: skip
    loss = nn.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = nn.optimizers.Adam(nn.schedules.CosineDecay(3e-3, decay_steps=EPOCHS * COUNT // BATCH))

    @aj.function
    def step(images, labels):
        with aj.GradientTape() as tape:
            logits = model(images, training=True)
            value = loss(labels, logits)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables, strict=True))
        accuracy = np.mean((np.argmax(logits, axis=-1) == labels).astype(np.float32))
        return {"loss": value, "accuracy": accuracy}

    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="where the library, the header and the program go")
    options = parser.parse_args()
    folder = options.output or Path(tempfile.mkdtemp(prefix="digits"))
    folder.mkdir(parents=True, exist_ok=True)

    images, labels = draw(np.random.default_rng(0), COUNT)
    step = model_step()
    made = step.export(folder / "step.a", images[:BATCH], labels[:BATCH])
    sizes = f"{(folder / 'step.a').stat().st_size / 1024:.0f} KB, with {made.state_bytes / 1024:.0f} KB of state"
    print(f"{folder / 'step.a'}: {sizes}; a call works in {made.arena_bytes / 1024:.0f} KB\n")
    print("\n".join(line for line in (folder / "step.h").read_text().splitlines() if line.startswith(("int ", "#define STEP_A"))))

    start = time.perf_counter()
    starts = [at for _ in range(EPOCHS) for at in range(0, COUNT, BATCH)]
    ours = [step(images[at : at + BATCH], labels[at : at + BATCH]) for at in starts]
    losses = np.array([float(r["loss"]) for r in ours], np.float32)
    print(f"\nPython: {time.perf_counter() - start:.2f} s, loss {losses[0]:.4f} -> {losses[-1]:.4f}")

    compiler = os.environ.get("CC") or shutil.which("cc")
    if compiler is None:
        print("there is no C compiler here: the program is not built")
        return
    images.tofile(folder / "images.bin")
    labels.tofile(folder / "labels.bin")
    source = Path(__file__).with_name("export_digits.c")
    strict = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*compiler.split(), *strict, f"-I{folder}", "-o", folder / "train", source, folder / "step.a"], check=True)
    start = time.perf_counter()
    printed = subprocess.run([folder / "train", folder, str(EPOCHS), str(COUNT)], capture_output=True, text=True, check=True).stdout
    theirs = np.array([float.fromhex(line.split()[0]) for line in printed.splitlines()], np.float32)
    print(f"C:      {time.perf_counter() - start:.2f} s, loss {theirs[0]:.4f} -> {theirs[-1]:.4f}")
    assert theirs.tobytes() == losses.tobytes(), np.flatnonzero(theirs != losses)
    print(f"the {len(losses)} losses are the same to the last bit")
    assert losses[-1] < 0.25 * losses[0]


if __name__ == "__main__":
    main()
