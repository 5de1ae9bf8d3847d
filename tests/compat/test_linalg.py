"""tf.linalg and related functions of tf.math: complex matrices, names of parameters, and arguments that do not fit."""

from __future__ import annotations

import numpy as np
import pytest

from adjit import tf

Z = np.array([[2.0 + 1.0j, 1.0j], [1.0 - 2.0j, 3.0]])
R = np.array([[2.0, 1.0], [0.5, 3.0]])
B = np.array([[1.0 + 1.0j], [2.0]])
HERMITIAN = Z @ Z.conj().T + np.eye(2)


def test_adjoints_are_conjugated() -> None:
    star = Z.conj().T
    cases = [
        (tf.linalg.adjoint(Z), star),
        (tf.linalg.matrix_transpose(Z), Z.T),
        (tf.linalg.matrix_transpose(Z, conjugate=True), star),
        (tf.matmul(Z, Z, adjoint_a=True), star @ Z),
        (tf.matmul(Z, Z, adjoint_b=True), Z @ star),
        (tf.matmul(Z, Z, transpose_a=True), Z.T @ Z),
        (tf.linalg.matvec(Z, B[:, 0], adjoint_a=True), star @ B[:, 0]),
        (tf.linalg.solve(Z, B, adjoint=True), np.linalg.solve(star, B)),
        (tf.linalg.inv(Z, adjoint=True), np.linalg.inv(star)),
        (tf.linalg.logdet(HERMITIAN), np.linalg.slogdet(HERMITIAN)[1]),
        (tf.linalg.normalize(Z)[0], Z / np.linalg.norm(Z)),
        (tf.math.l2_normalize(Z, axis=0), Z / np.linalg.norm(Z, axis=0)),
        (tf.math.reduce_euclidean_norm(Z), np.linalg.norm(Z)),
        (tf.math.reduce_variance(Z, 0), np.var(Z, 0)),
        (tf.reduce_mean(Z, 0), Z.mean(0)),
    ]
    for found, expected in cases:
        np.testing.assert_allclose(found, expected, atol=1e-12)
    with pytest.raises(ValueError, match="Only one of transpose and adjoint"):
        tf.matmul(Z, Z, transpose_a=True, adjoint_a=True)


@pytest.mark.parametrize("x", [R, Z, np.ones((2, 3, 2)) + np.eye(3, 2)], ids=["real", "complex", "batch"])
def test_factors_multiply_to_the_matrix(x: np.ndarray) -> None:
    s, u, v = tf.linalg.svd(x)
    np.testing.assert_allclose(tf.matmul(u * tf.cast(s[..., None, :], u.dtype), v, adjoint_b=True), x, atol=1e-12)
    np.testing.assert_allclose(tf.linalg.svd(x, compute_uv=False), s)


def test_eigenvalues() -> None:
    values, vectors = tf.linalg.eigh(HERMITIAN)
    assert values.dtype == tf.complex128
    np.testing.assert_allclose(HERMITIAN @ vectors.numpy(), vectors.numpy() * values.numpy(), atol=1e-12)
    np.testing.assert_allclose(tf.linalg.eigvalsh(R + R.T), np.linalg.eigvalsh(R + R.T))
    np.testing.assert_allclose(tf.linalg.sqrtm(tf.linalg.expm(R)), tf.linalg.expm(R / 2), rtol=1e-9)
    values, vectors = tf.linalg.eig(R)
    np.testing.assert_allclose(R @ vectors.numpy(), vectors.numpy() * values.numpy(), atol=1e-12)


def test_diagonals_of_tensors() -> None:
    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    whole = tf.linalg.tensor_diag(x)
    assert whole.shape == (2, 3, 2, 3)
    np.testing.assert_array_equal(np.einsum("ijij->ij", whole.numpy()), x)
    assert float(tf.reduce_sum(whole)) == x.sum()
    np.testing.assert_array_equal(tf.linalg.tensor_diag_part(whole), x)
    assert tf.linalg.trace([[1, 2], [3, 4]]).dtype == tf.int32
    np.testing.assert_allclose(tf.linalg.pinv(R, rcond=0.9), np.linalg.pinv(R, rcond=0.9))


def test_parameters_have_names_of_tensorflow() -> None:
    assert float(tf.atan2(x=1.0, y=2.0)) == pytest.approx(np.arctan2(2.0, 1.0))
    assert float(tf.math.igamma(x=2.0, a=1.0)) == pytest.approx(1 - np.exp(-2.0))
    assert float(tf.math.igammac(x=2.0, a=1.0)) == pytest.approx(np.exp(-2.0))
    assert float(tf.math.zeta(q=1.0, x=2.0)) == pytest.approx(np.pi**2 / 6)
    for name in ("relu", "relu6", "selu", "softplus", "softsign", "leaky_relu", "elu"):
        assert float(getattr(tf.nn, name)(features=0.0, name="a")) == pytest.approx(np.log(2.0) if name == "softplus" else 0.0)
    assert tf.vectorized_map(lambda x: 2 * x, tf.constant([1, 2]), fallback_to_while_loop=False).numpy().tolist() == [2, 4]


def test_python_values_have_tensorflows_dtypes() -> None:
    for xlogy, log in ((tf.math.xlogy, np.log), (tf.math.xlog1py, np.log1p)):
        for x, y in ((0.0, 0.0), (2.0, 3.0), (0.0, tf.constant(0.0)), (tf.constant(2.0), 3.0), ([0.0, 2.0], 3.0)):
            with np.errstate(all="ignore"):
                expected = np.where(np.equal(x, 0.0), 0.0, np.asarray(x) * log(np.asarray(y)))
            np.testing.assert_allclose(xlogy(x, y), expected, rtol=1e-6)
    assert float(tf.math.xdivy(0.0, 0.0)) == 0.0
    assert tf.complex(0.5, 0.25).dtype == tf.complex64
    assert tf.reduce_all([]).dtype == tf.bool
    with pytest.raises(TypeError, match="takes bools"):
        tf.reduce_any(tf.constant([1.0]))
    assert tf.math.polyval([1, 2], [3, 1]).numpy().tolist() == [5, 3]
    assert tf.math.polyval([tf.constant(1.0), 2.0], 3.0).dtype == tf.float32
    assert tf.boolean_mask([[1, 2], [3, 4]], [0, 1]).numpy().tolist() == [[3, 4]]
    assert tf.math.segment_mean([1, 2, 7], [0, 0, 1]).dtype == tf.int32


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("matmul", (0.5, 0.25)), ("linalg.diag", (0.5,)), ("linalg.tensor_diag", (0.5,)), ("linalg.set_diag", ([1.0], 0.0)),
        ("linalg.solve", (0.5, 0.5)), ("linalg.triangular_solve", (0.5, 0.5)), ("linalg.cholesky_solve", (0.5, 0.5)),
        ("linalg.matvec", (0.5, 0.5)), ("linalg.svd", ([1.0],)), ("linalg.tensor_diag_part", (np.ones((2, 3, 3)),)),
        ("gather_nd", (0.5, 1)),
        ("dynamic_stitch", ([[0], [1]], [[1.0]])), ("linalg.adjoint", (0.5,)),
    ],
)  # fmt: skip
def test_numbers_where_matrices_belong(name: str, args: tuple[object, ...]) -> None:
    function = tf
    for part in name.split("."):
        function = getattr(function, part)
    with pytest.raises(tf.errors.InvalidArgumentError):
        function(*args)
