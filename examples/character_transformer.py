"""Train a small transformer to continue text, character by character.

    python examples/character_transformer.py             # about fifteen seconds
    python examples/character_transformer.py --large     # a larger model, trained for longer

The text is generated: sums such as "37+48=085.", one after the other, with the last digit of a number first. The digits before "=" are
random, those after it are their sum: a model that predicts them has learnt to add. The script prints the loss, the share of correctly
predicted digits of sums (above 95 %), and a sample.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

import adjit as aj
from adjit import nn

ALPHABET = "0123456789+=."


def text(rng, count, digits):
    """Sums with their results, the last digit first, in the order of the carries."""
    numbers = rng.integers(0, 10**digits, (count, 2))
    reversed_digits = lambda n, size: f"{n:0{size}d}"[::-1]  # noqa: E731
    return "".join(f"{reversed_digits(a, digits)}+{reversed_digits(b, digits)}={reversed_digits(a + b, digits + 1)}." for a, b in numbers)


def encode(string):
    return np.array([ALPHABET.index(c) for c in string], np.int32)


class Block(nn.Module):
    """Causal attention, then a network applied at each position, both with residual connections."""

    def __init__(self, size, heads):
        self.norms = [nn.RMSNorm(), nn.RMSNorm()]
        self.attention = nn.MultiHeadAttention(heads, size // heads)
        self.network = nn.Sequential([nn.Dense(4 * size, activation="gelu_tanh"), nn.Dense(size)])

    def call(self, x):
        x = x + self.attention(self.norms[0](x), use_causal_mask=True)
        return x + self.network(self.norms[1](x))


class Transformer(nn.Module):
    """Predicts the next character at each position of a text of up to `length` characters."""

    def __init__(self, length, size, heads, blocks):
        self.length = length
        self.letters = nn.Embedding(len(ALPHABET), size)
        self.places = nn.Embedding(length, size)
        self.blocks = [Block(size, heads) for _ in range(blocks)]
        self.norm = nn.RMSNorm()
        self.head = nn.Dense(len(ALPHABET))

    def call(self, x):
        h = self.letters(x) + self.places(np.arange(x.shape[1]))
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h))


def sample(model, prompt, count):
    """Continue a text with the most likely characters. The window has a fixed size, so this compiles once."""
    predict = aj.function(lambda x: model(x))
    out = prompt
    for _ in range(count):
        window = encode(out[-model.length :])
        padded = np.zeros((1, model.length), np.int32)
        padded[0, : len(window)] = window
        out += ALPHABET[int(np.asarray(predict(padded))[0, len(window) - 1].argmax())]
    return out


def right_digits(logits, batch):
    """The share of digits after an "=" that are predicted correctly."""
    inputs, targets = batch[:, :-1], batch[:, 1:]
    after = np.zeros(inputs.shape, bool)
    inside = np.zeros(len(inputs), bool)
    for t in range(inputs.shape[1]):
        inside = (inside | (inputs[:, t] == ALPHABET.index("="))) & (inputs[:, t] != ALPHABET.index("."))
        after[:, t] = inside & (targets[:, t] != ALPHABET.index("."))
    return (logits.argmax(-1) == targets)[after].mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--output", type=Path, default=Path(tempfile.gettempdir()), help="where the plot goes")
    options = parser.parse_args()
    size, blocks, epochs, digits = (128, 3, 30, 2) if options.large else (48, 2, 6, 1)

    rng = np.random.default_rng(0)
    data = encode(text(rng, 20_000, digits))
    period = 3 * digits + 4  # characters per sum
    length = 4 * period

    def batches():
        for _ in range(100):
            starts = rng.integers(0, (len(data) - length - 1) // period, 32) * period
            windows = data[starts[:, None] + np.arange(length + 1)]
            yield windows[:, :-1], windows[:, 1:]

    nn.set_seed(0)
    model = Transformer(length, size, heads=4, blocks=blocks)
    rate = nn.schedules.CosineDecay(0.0, epochs * 100, warmup_target=6e-3, warmup_steps=50)
    trainer = nn.Trainer(
        model, nn.losses.SparseCategoricalCrossentropy(from_logits=True), nn.optimizers.AdamW(rate, weight_decay=0.01, global_clipnorm=1.0)
    )
    history = trainer.fit(batches, epochs=epochs, steps_per_epoch=100)
    print(f"\n{history.plot(options.output / 'transformer.svg')}\n")

    fresh = encode(text(np.random.default_rng(1), 2000, digits))
    windows = np.stack([fresh[k * period : k * period + length + 1] for k in range(0, 800, 4)])
    share = right_digits(trainer.predict(windows[:, :-1]), windows)
    print(f"{model.count_params():,} parameters; {share:.1%} of the digits of new sums are right")
    prompt = text(np.random.default_rng(2), 2, digits)
    print(f"{prompt} | {sample(model, prompt, 2 * period)[len(prompt) :]}   (numbers are written with the last digit first)")
    assert share > 0.95, share


if __name__ == "__main__":
    main()
