"""Functions of SciPy and scikit-learn on tensors, under array API dispatch, compared with their results for NumPy arrays.

Run by `test_array_consumers.py` in a process of its own, since SciPy looks at SCIPY_ARRAY_API when it is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import adjit as aj

R = np.random.default_rng(0)
V, W, G = R.normal(size=12), R.normal(size=12), R.uniform(1.0, 5.0, 12)
M, X, IMAGE, S = R.normal(size=(6, 4)), R.normal(size=(30, 3)), R.normal(size=(8, 9)), R.normal(size=(4, 4))
SPD = S @ S.T + 4.0 * np.eye(4)
Y, Y3, T = R.integers(0, 2, 30), R.integers(0, 3, 30), X @ np.array([1.0, 2.0, -1.0])
P = R.uniform(0.05, 0.95, 30)
Q = R.normal(size=(5, 4))
GAPS = np.where(X > 1.0, np.nan, X)

Check = tuple[Callable[..., Any], tuple[Any, ...]]


def scipy_checks() -> dict[str, Check]:
    from scipy import cluster, differentiate, fft, integrate, interpolate, linalg, ndimage, signal, special, stats
    from scipy.cluster import hierarchy
    from scipy.optimize import elementwise
    from scipy.spatial import distance
    from scipy.spatial.transform import Rotation

    quick: dict[str, Check] = {}
    for name in [
        "kurtosis",
        "skew",
        "zscore",
        "variation",
        "sem",
        "iqr",
        "describe",
        "rankdata",
        "skewtest",
        "normaltest",
        "jarque_bera",
        "circmean",
        "kstat",
        "median_abs_deviation",
    ]:
        quick[f"stats.{name}"] = (getattr(stats, name), (V,))
    for name in ["gmean", "hmean", "entropy", "gstd", "chisquare"]:
        quick[f"stats.{name}"] = (getattr(stats, name), (G,))
    for name in [
        "ttest_ind",
        "ttest_rel",
        "pearsonr",
        "spearmanr",
        "linregress",
        "kruskal",
        "bartlett",
        "levene",
        "mannwhitneyu",
        "wilcoxon",
    ]:
        quick[f"stats.{name}"] = (getattr(stats, name), (V, W))
    for name in ["log_ndtr", "erf", "gammaln", "expit", "entr", "i0e", "digamma", "logit"]:
        quick[f"special.{name}"] = (getattr(special, name), (P,))
    for name in ["fft", "rfft", "ifft2", "dct"]:
        quick[f"fft.{name}"] = (getattr(fft, name), (M,))
    for name in ["detrend", "hilbert", "welch", "periodogram", "envelope", "stft"]:
        quick[f"signal.{name}"] = (partial(getattr(signal, name), **({"nperseg": 6} if name in ("welch", "stft") else {})), (V,))
    for name in ["gaussian_filter1d", "uniform_filter", "median_filter", "sobel"]:
        quick[f"ndimage.{name}"] = (lambda x, name=name: getattr(ndimage, name)(x, 0 if name == "sobel" else 3), (IMAGE,))
    for name in ["det", "inv", "svd", "qr", "eigh", "cholesky", "expm", "pinv", "lu"]:
        quick[f"linalg.{name}"] = (getattr(linalg, name), (SPD,))
    for name in ["single", "ward", "average"]:
        quick[f"hierarchy.{name}"] = (getattr(hierarchy, name), (X[:8],))
    return quick | {
        "special.logsumexp": (lambda x, b: special.logsumexp(x, b=b), (V, G)),
        "stats.zscore of gaps": (lambda x: stats.zscore(x, nan_policy="omit"), (GAPS,)),
        "stats.trim_mean": (lambda x: stats.trim_mean(x, 0.1), (V,)),
        "signal.lfilter": (lambda b, a, x: signal.lfilter(b, a, x), (V[:2], G[:2], V)),
        "signal.filtfilt": (lambda b, a, x: signal.filtfilt(b, a, x), (np.array([1.0, 0.5]), np.array([1.0, 0.2]), V)),
        "signal.convolve": (signal.convolve, (V, W[:5])),
        "signal.savgol_filter": (lambda x: signal.savgol_filter(x, 5, 2), (V,)),
        "signal.zpk2sos": (lambda z, p: signal.zpk2sos(z, p, 2.0), (np.array([0.5, 0.2]), np.array([0.1, 0.3]))),
        "cluster.whiten": (cluster.vq.whiten, (X,)),
        "cluster.kmeans": (lambda x: cluster.vq.kmeans(x, x[:2, :])[0], (X,)),
        "integrate.simpson": (integrate.simpson, (V,)),
        "integrate.cumulative_simpson": (integrate.cumulative_simpson, (V,)),
        "integrate.tanhsinh": (
            lambda a, b: integrate.tanhsinh(lambda x: x**2 * x.__array_namespace__().exp(-x), a, b), (np.zeros(2), np.ones(2))
        ),
        "integrate.cubature": (
            lambda a, b: integrate.cubature(lambda x: x.__array_namespace__().sum(x**2, axis=-1), a, b).estimate, (np.zeros(2), np.ones(2))
        ),
        "optimize.find_root": (lambda a, b: elementwise.find_root(lambda x: x**3 - 2.0, (a, b)).x, (np.zeros(2), np.array([2.0, 3.0]))),
        "differentiate.derivative": (lambda x: differentiate.derivative(lambda z: z.__array_namespace__().exp(z), x).df, (V,)),
        "distance.cdist": (distance.cdist, (X, X[:4])),
        "Rotation": (lambda q, x: Rotation.from_quat(q).inv().apply(x), (Q, X[:5])),
        "Rotation.as_euler": (lambda q: Rotation.from_quat(q).as_euler("xyz"), (Q,)),
        "interpolate.CubicSpline": (lambda x, y: interpolate.CubicSpline(x, y)(x[1:3] + 0.01), (np.sort(G), V)),
        "interpolate.Akima1DInterpolator": (lambda x, y: interpolate.Akima1DInterpolator(x, y)(x[1:3] + 0.01), (np.sort(G), V)),
    }  # fmt: skip


def sklearn_checks() -> dict[str, Check]:
    import sklearn
    from sklearn import metrics, preprocessing
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
    from sklearn.mixture import GaussianMixture
    from sklearn.model_selection import cross_val_predict
    from sklearn.naive_bayes import GaussianNB

    sklearn.set_config(array_api_dispatch=True)
    quick: dict[str, Check] = {}
    for name in ["accuracy_score", "f1_score", "confusion_matrix", "jaccard_score"]:
        quick[name] = (getattr(metrics, name), (Y, Y[::-1].copy()))
    for name in ["log_loss", "brier_score_loss", "roc_auc_score", "average_precision_score"]:
        quick[name] = (getattr(metrics, name), (Y, P))
    for name in ["r2_score", "mean_squared_error", "mean_absolute_error", "max_error", "explained_variance_score"]:
        quick[name] = (getattr(metrics, name), (T, 0.9 * T))
    for name in ["rbf_kernel", "cosine_similarity", "linear_kernel", "manhattan_distances"]:
        quick[name] = (getattr(metrics.pairwise, name), (X, X[::-1].copy()))
    for name in ["StandardScaler", "MinMaxScaler", "MaxAbsScaler", "Normalizer", "PolynomialFeatures"]:
        quick[name] = (lambda x, name=name: getattr(preprocessing, name)().fit_transform(x), (X,))
    for kind in ["full", "tied", "diag", "spherical"]:
        quick[f"GaussianMixture {kind}"] = (
            lambda x, kind=kind: GaussianMixture(2, covariance_type=kind, init_params="random", random_state=0).fit(x).predict_proba(x),
            (X,),
        )
    return quick | {
        "StandardScaler of gaps": (lambda x: preprocessing.StandardScaler().fit_transform(x), (GAPS,)),
        "MinMaxScaler of gaps": (lambda x: preprocessing.MinMaxScaler().fit_transform(x), (GAPS,)),
        "PCA": (lambda x: abs(PCA(2, svd_solver="full").fit_transform(x)), (X,)),
        "PCA by covariances": (lambda x: abs(PCA(2, svd_solver="covariance_eigh").fit_transform(x)), (X,)),
        "LinearDiscriminantAnalysis": (lambda x, y: LinearDiscriminantAnalysis().fit(x, y).predict_proba(x), (X, Y3)),
        "Ridge": (lambda x, y: Ridge(solver="svd").fit(x, y).predict(x), (X, T)),
        "Ridge with weights": (lambda x, y, w: Ridge(solver="svd").fit(x, y, sample_weight=w).coef_, (X, T, P)),
        "RidgeCV": (lambda x, y: RidgeCV().fit(x, y).coef_, (X, T)),
        "LogisticRegression": (lambda x, y: LogisticRegression(tol=1e-8).fit(x, y).predict_proba(x), (X, Y3)),
        "GaussianNB": (lambda x, y: GaussianNB().fit(x, y).predict_proba(x), (X, Y3)),
        "cross_val_predict": (lambda x, y: cross_val_predict(Ridge(solver="svd"), x, y, cv=3), (X, T)),
    }


def leaves(x: Any) -> Iterator[Any]:
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, list | tuple):
        for each in x:
            yield from leaves(each)
    elif isinstance(x, np.ndarray | np.generic | int | float | complex | aj.Tensor) and not isinstance(x, bool):
        yield x
    elif hasattr(x, "__dict__"):
        yield from leaves({name: value for name, value in vars(x).items() if not name.startswith("_") and not callable(value)})


def mistake(f: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """What is wrong with the results for tensors, or with the tensors afterwards."""
    wanted = list(leaves(f(*[a.copy() for a in args])))
    given = [aj.tensor(a) for a in args]
    try:
        found = list(leaves(f(*given)))
        assert len(found) == len(wanted), f"{len(found)} results instead of {len(wanted)}"
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(a), b, rtol=1e-6, atol=1e-7)
        for x, a in zip(given, args, strict=True):
            np.testing.assert_array_equal(x, a, err_msg="an argument has changed")
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


if __name__ == "__main__":
    checks = scipy_checks() if sys.argv[1] == "scipy" else sklearn_checks()
    failed = {name: why for name, (f, args) in checks.items() if (why := mistake(f, args))}
    for name, why in failed.items():
        print(f"{name}: {why}")
    print(f"{len(checks)} checks")
    sys.exit(bool(failed))
