"""Forecast a noisy series with an LSTM: a compiled loop over time, differentiated in reverse.

    python examples/series_lstm.py             # about ten seconds
    python examples/series_lstm.py --large     # longer series, a larger network

The series is a sum of two waves whose phases drift, with noise; the network sees 60 values and forecasts the next 20. Its error must be
below half of that of repeating the last period, and is close to the noise, which is unpredictable.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from adjit import nn

PAST, FUTURE, NOISE = 60, 20, 0.05


def series(rng, length):
    t = np.arange(length)
    drift = np.cumsum(rng.normal(0.0, 0.01, (2, length)), 1)
    waves = np.sin(2 * np.pi * t / 25 + drift[0]) + 0.5 * np.sin(2 * np.pi * t / 9 + drift[1])
    return (waves + rng.normal(0.0, NOISE, length)).astype(np.float32)


def windows(values):
    """Pairs of PAST values [n, PAST, 1] and the FUTURE values after them [n, FUTURE]."""
    starts = np.arange(0, len(values) - PAST - FUTURE)
    return values[starts[:, None] + np.arange(PAST), None], values[starts[:, None] + PAST + np.arange(FUTURE)]


def picture(past, truth, forecast, height=15):
    """The end of the input, then the true values (.) and the forecast (o)."""
    low, high = min(past.min(), truth.min(), forecast.min()), max(past.max(), truth.max(), forecast.max())
    rows = lambda v: np.round((v - low) / (high - low) * (height - 1)).astype(int)  # noqa: E731
    grid = [[" "] * (len(past) + len(truth) + 1) for _ in range(height)]
    for mark, values, start in (("*", past, 0), (".", truth, len(past) + 1), ("o", forecast, len(past) + 1)):
        for column, row in enumerate(rows(values)):
            grid[height - 1 - row][start + column] = mark
    for line in grid:
        line[len(past)] = "|"
    return "\n".join("".join(line) for line in grid)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--output", type=Path, default=Path(tempfile.gettempdir()), help="where the plot goes")
    options = parser.parse_args()
    length, units, epochs = (20_000, 96, 20) if options.large else (4000, 32, 12)

    rng = np.random.default_rng(0)
    x, y = windows(series(rng, length))
    test_x, test_y = windows(series(rng, 1000))

    nn.set_seed(0)
    model = nn.Sequential([nn.LSTM(units), nn.Dense(FUTURE)])
    rate = nn.schedules.CosineDecay(1e-2, epochs * -(-len(x) // 64))
    trainer = nn.Trainer(model, "mse", nn.optimizers.Adam(rate, global_clipnorm=1.0), metrics=["mae"])
    stop = nn.EarlyStopping(patience=6, restore_best_weights=True)
    history = trainer.fit(x, y, batch_size=64, epochs=epochs, validation_data=(test_x, test_y), callbacks=[stop])
    print(f"\n{history.plot(options.output / 'series.svg', ['loss', 'val_loss'])}\n")

    forecast = trainer.predict(test_x)
    error = np.sqrt(np.mean((forecast - test_y) ** 2))
    naive = np.sqrt(np.mean((test_x[:, -25 : -25 + FUTURE, 0] - test_y) ** 2))
    print(picture(test_x[300, -40:, 0], test_y[300], forecast[300]))
    print(f"\nroot mean square error: {error:.3f}; repeating the last period: {naive:.3f}; the noise alone: {NOISE:.3f}")
    assert error < 0.5 * naive, (error, naive)


if __name__ == "__main__":
    main()
