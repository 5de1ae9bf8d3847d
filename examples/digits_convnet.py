"""Train a convolutional network on images of digits that this script draws: no download.

    python examples/digits_convnet.py              # about ten seconds
    python examples/digits_convnet.py --large      # more images, a larger network

Each image is a digit of a 5 x 7 font, scaled, shifted, sheared and with noise added. A training step (convolutions, pooling, batch
normalisation, gradients, Adam and the accuracy) is one native function. Reaches 95 % on unseen images; saves the best weights, and a
plot.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from adjit import nn

FONT = [
    "01110 10001 10011 10101 11001 10001 01110", "00100 01100 00100 00100 00100 00100 01110", "01110 10001 00001 00110 01000 10000 11111",
    "11111 00010 00100 00010 00001 10001 01110", "00010 00110 01010 10010 11111 00010 00010", "11111 10000 11110 00001 00001 10001 01110",
    "00110 01000 10000 11110 10001 10001 01110", "11111 00001 00010 00100 01000 01000 01000", "01110 10001 10001 01110 10001 10001 01110",
    "01110 10001 10001 01111 00001 00010 01100",
]  # fmt: skip
GLYPHS = np.array([[[float(c) for c in row] for row in digit.split()] for digit in FONT])


def draw(rng, count, size=28):
    """Images [count, size, size, 1] and the digits in them."""
    labels = rng.integers(0, 10, count)
    rows, columns = np.mgrid[:size, :size] - (size - 1) / 2.0
    images = np.empty((count, size, size, 1), np.float32)
    for image, label in zip(images, labels, strict=True):
        height, width = rng.uniform(14.0, 22.0), rng.uniform(9.0, 16.0)
        y = (rows - rng.uniform(-3, 3)) / height + 0.5
        x = (columns - rng.uniform(-3, 3) + rng.uniform(-0.3, 0.3) * rows) / width + 0.5
        inside = (y >= 0) & (y < 1) & (x >= 0) & (x < 1)
        stroke = GLYPHS[label][np.clip((y * 7).astype(int), 0, 6), np.clip((x * 5).astype(int), 0, 4)]
        image[..., 0] = np.where(inside, stroke, 0.0) * rng.uniform(0.6, 1.0) + rng.normal(0.0, 0.2, (size, size))
    return images, labels


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="more images, a larger network")
    parser.add_argument("--output", type=Path, default=Path(tempfile.gettempdir()), help="where the weights and the plot go")
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    images, labels = draw(rng, 20_000 if options.large else 4000)
    test_images, test_labels = draw(rng, 1000)
    width = 32 if options.large else 16

    nn.set_seed(0)
    model = nn.Sequential([
        nn.Conv2D(width, 3, padding="same", use_bias=False), nn.BatchNorm(momentum=0.9), nn.Activation("relu"), nn.MaxPool2D(),
        nn.Conv2D(2 * width, 3, padding="same", use_bias=False), nn.BatchNorm(momentum=0.9), nn.Activation("relu"), nn.MaxPool2D(),
        nn.Flatten(), nn.Dropout(0.3), nn.Dense(10),
    ])  # fmt: skip
    epochs = 10 if options.large else 6
    rate = nn.schedules.CosineDecay(3e-3, decay_steps=epochs * -(-len(images) // 64))
    trainer = nn.Trainer(model, nn.losses.SparseCategoricalCrossentropy(from_logits=True), nn.optimizers.Adam(rate), metrics=["accuracy"])
    weights = options.output / "digits.safetensors"
    history = trainer.fit(
        images, labels, batch_size=64, epochs=epochs, validation_data=(test_images, test_labels),
        callbacks=[nn.ModelCheckpoint(weights, monitor="val_accuracy", save_best_only=True, save_weights_only=True)],
    )  # fmt: skip

    print(f"\n{history.plot(options.output / 'digits.svg', ['loss', 'val_loss'])}\n")
    nn.load(weights, model)
    accuracy = trainer.evaluate(test_images, test_labels)["accuracy"]
    print(f"accuracy on {len(test_labels)} new images: {accuracy:.1%}; weights in {weights}\n")
    predictions = trainer.predict(test_images[:3]).argmax(-1)
    for row in range(0, 28, 2):
        print("   ".join("".join(" .:-=+*#%@"[int(np.clip(p, 0, 0.99) * 10)] for p in image[row, :, 0]) for image in test_images[:3]))
    print("   ".join(f"{f'a {p}':^28}" for p in predictions))
    assert accuracy > 0.95, accuracy


if __name__ == "__main__":
    main()
