"""tf.train's checkpoints, and the layers of Keras that are composed of others."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adjit import nn, tf


class Net(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = tf.Variable([1.0, 2.0])
        self.parts = [tf.Variable(3.0), {"a": tf.Variable(4)}]


def test_save_and_restore(tmp_path: Path) -> None:
    net, step = Net(), tf.Variable(7)
    path = tf.train.Checkpoint(net=net, step=step).save(tmp_path / "ckpt")
    assert path == str(tmp_path / "ckpt-1")
    other, count = Net(), tf.Variable(0)
    for v in (other.w, other.parts[0]):
        v.assign(v * 0.0)
    checkpoint = tf.train.Checkpoint(net=other, step=count)
    checkpoint.restore(path).assert_consumed()
    assert (other.w.numpy().tolist(), float(other.parts[0]), int(other.parts[1]["a"]), int(count)) == ([1.0, 2.0], 3.0, 4, 7)
    assert int(checkpoint.save_counter) == 1
    assert checkpoint.save(tmp_path / "ckpt") == str(tmp_path / "ckpt-2") == tf.train.latest_checkpoint(tmp_path)
    assert tf.train.list_variables(tmp_path)[:2] == [("net/parts/0", []), ("net/parts/1/a", [])]


def test_training_continues_with_the_same_bits(tmp_path: Path) -> None:
    def parts() -> tuple[Any, Any, Any]:
        tf.keras.utils.set_random_seed(0)
        model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="tanh"), tf.keras.layers.Dense(1)])
        model(tf.zeros([1, 3]))
        optimizer = tf.keras.optimizers.Adam(0.1)

        @tf.function
        def step(x: Any) -> None:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(model(x) ** 2)
            optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True))

        return model, optimizer, step

    x = tf.constant(np.random.default_rng(0).normal(size=(8, 3)).astype("f4"))
    model, optimizer, step = parts()
    step(x)
    path = tf.train.Checkpoint(model=model, optimizer=optimizer).write(tmp_path / "half")
    step(x)
    wanted = [v.numpy() for v in model.variables]
    model, optimizer, step = parts()
    step(x)  # creates the optimizer's variables
    tf.train.Checkpoint(model=model, optimizer=optimizer).read(path).assert_existing_objects_matched()
    step(x)
    for a, b in zip(model.variables, wanted, strict=True):
        np.testing.assert_array_equal(a.numpy(), b)


def test_mismatches(tmp_path: Path) -> None:
    a, b = tf.Variable(1.0), tf.Variable([1.0, 2.0])
    path = tf.train.Checkpoint(a=a).save(tmp_path / "c")
    status = tf.train.Checkpoint(b=b).restore(path).expect_partial()
    with pytest.raises(AssertionError, match="not used: a; not found: b"):
        status.assert_consumed()
    with pytest.raises(nn.WeightsError, match=r"a is float32\[\] in the checkpoint"):
        tf.train.Checkpoint(a=b).restore(path)
    assert b.numpy().tolist() == [1.0, 2.0]
    with pytest.raises(tf.errors.NotFoundError, match="Failed to find"):
        tf.train.Checkpoint(a=a).restore(tmp_path / "none")
    with pytest.raises(ValueError, match="expecting x to be a trackable object"):
        tf.train.Checkpoint(x=3)
    assert tf.train.Checkpoint(a=a).restore(tf.train.latest_checkpoint(tmp_path / "empty")).assert_consumed()


def test_manager(tmp_path: Path) -> None:
    v = tf.Variable(0)
    checkpoint = tf.train.Checkpoint(v=v)
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=2)
    assert manager.restore_or_initialize() is None
    for k in range(4):
        v.assign(k)
        manager.save()
    assert [Path(p).name for p in manager.checkpoints] == ["ckpt-3", "ckpt-4"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoint", "ckpt-3.safetensors", "ckpt-4.safetensors"]
    v.assign(-1)
    assert tf.train.CheckpointManager(checkpoint, tmp_path, 2).restore_or_initialize() == str(tmp_path / "ckpt-4")
    assert int(v) == 3


# ---- layers


def test_manager_with_an_interval(tmp_path: Path) -> None:
    net, step, started = Net(), tf.Variable(0), []
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(net=net), tmp_path, 2, step_counter=step, checkpoint_interval=5, init_fn=lambda: started.append(True)
    )
    assert manager.restore_or_initialize() is None
    assert started == [True]
    saved = []
    for k in range(12):
        step.assign(k)
        saved.append(manager.save() is not None)
    assert [k for k, done in enumerate(saved) if done] == [0, 5, 10]
    assert manager.save() is None
    assert manager.save(check_interval=False) is not None
    with pytest.raises(ValueError, match="`step_counter` should be passed"):
        tf.train.CheckpointManager(tf.train.Checkpoint(net=net), tmp_path, 2, checkpoint_interval=5)


def test_manager_keeps_one_for_some_hours(tmp_path: Path) -> None:
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(net=Net()), tmp_path, 1, keep_checkpoint_every_n_hours=2)
    paths = []
    for hours in range(6):
        paths.append(manager.save())
        os.utime(f"{paths[-1]}.safetensors", (time.time() + 3600 * hours,) * 2)
    assert [Path(f"{path}.safetensors").exists() for path in paths] == [False, False, True, False, True, True]
    assert manager.checkpoints == paths[-1:]


def test_normalization() -> None:
    x = np.random.default_rng(0).normal(3.0, 2.0, (50, 2)).astype("f4")
    layer = tf.keras.layers.Normalization()
    with pytest.raises(ValueError, match=r"call adapt\(data\) first"):
        layer(x)
    layer.adapt(x)
    out = layer(x).numpy()
    np.testing.assert_allclose((out.mean(0), out.std(0)), ([0, 0], [1, 1]), atol=1e-5)
    np.testing.assert_allclose(tf.keras.layers.Normalization(mean=1.0, variance=4.0)(np.array([[5.0]], "f4")).numpy(), [[2.0]])


def test_time_distributed() -> None:
    inner = tf.keras.layers.Dense(4)
    x = np.random.default_rng(0).normal(size=(2, 5, 3)).astype("f4")
    out = tf.keras.layers.TimeDistributed(inner)(x)
    np.testing.assert_allclose(out.numpy(), inner(x).numpy(), rtol=1e-5, atol=1e-6)


def test_prelu_and_separable() -> None:
    x = np.array([[-2.0, 3.0]], "f4")
    np.testing.assert_allclose(tf.keras.layers.PReLU(tf.keras.initializers.Constant(0.5))(x).numpy(), [[-1.0, 3.0]])
    images = np.random.default_rng(0).normal(size=(1, 5, 5, 2)).astype("f4")
    layer = tf.keras.layers.SeparableConv2D(3, 2, depth_multiplier=2)
    assert layer(images).shape == (1, 4, 4, 3)
    depth, point, bias = (v.numpy() for v in layer.variables)
    patch = images[0, :2, :2]
    wide = np.einsum("xyc,xycm->cm", patch, depth.reshape(2, 2, 2, 2)).reshape(-1)
    np.testing.assert_allclose(layer(images).numpy()[0, 0, 0], wide @ point.reshape(4, 3) + bias, rtol=1e-4, atol=1e-5)


def test_merging_functions() -> None:
    x, y = tf.ones((2, 3)), tf.zeros((2, 3))
    assert tf.keras.layers.concatenate([x, y], 0).shape == (4, 3)
    a, b = tf.keras.Input([2]), tf.keras.Input([2])
    layers = tf.keras.layers
    model = tf.keras.Model([a, b], [layers.concatenate([a, b]), layers.add([a, b]), layers.multiply([a, b]), layers.maximum([a, b])])
    x, y = np.array([[1.0, 2.0]], "f4"), np.array([[3.0, 0.5]], "f4")
    joined, total, product, largest = (out.numpy().tolist() for out in model([x, y]))
    assert (joined, total, product, largest) == ([[1, 2, 3, 0.5]], [[4, 2.5]], [[3, 1]], [[3, 2]])
