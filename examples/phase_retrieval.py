"""Phase retrieval: recover an image from magnitudes of Fourier transforms alone, by gradient descent on complex numbers.

    python examples/phase_retrieval.py

A camera behind a coded mask records |fft2(mask * image)| and loses all phases. The gradient of a real loss with respect to a complex array
points in the direction of steepest ascent, so a descent step is written as for real numbers. One call runs all steps, as a native loop.
"""

import numpy as np

import adjit as aj

SIZE, MASKS, STEPS = 24, 8, 600


def picture():
    """A ring and a bar, whose phase grows from left to right."""
    y, x = np.mgrid[-1 : 1 : SIZE * 1j, -1 : 1 : SIZE * 1j]
    radius = np.hypot(x, y)
    shape = ((radius > 0.45) & (radius < 0.8)) | ((np.abs(y) < 0.12) & (np.abs(x) < 0.45))
    return shape * np.exp(0.7j * x)


def misfit(image, masks, recorded):
    """The mean square difference of the magnitudes that an image would give from those recorded."""
    magnitude = np.abs(np.fft.fft2(masks * image, norm="ortho"))
    return np.mean((magnitude - recorded) ** 2)


@aj.function
def descend(image, masks, recorded, rate):
    losses = []
    for _ in aj.range(STEPS):
        loss, gradient = aj.value_and_grad(misfit)(image, masks, recorded)
        image = image - rate * gradient
        losses.append(loss)
    return image, np.stack(losses)


def aligned(image, truth):
    """The image times a constant phase, which the magnitudes do not determine."""
    overlap = np.vdot(image, truth)
    return image * (overlap / np.abs(overlap))


def shown(image):
    return ["".join(" .:*#"[int(min(4, round(4 * v)))] * 2 for v in row) for row in np.abs(image)]


def main():
    rng = np.random.default_rng(0)
    truth = picture()
    masks = np.exp(2j * np.pi * rng.uniform(size=(MASKS, SIZE, SIZE)))
    recorded = np.abs(np.fft.fft2(masks * truth, norm="ortho"))
    start = 0.1 * (rng.normal(size=truth.shape) + 1j * rng.normal(size=truth.shape))

    image, losses = (x.numpy() for x in descend(start, masks, recorded, 0.5 * SIZE**2))
    for step in (0, 9, 99, STEPS - 1):
        print(f"step {step + 1:3}  misfit {losses[step]:.2e}")
    error = np.linalg.norm(aligned(image, truth) - truth) / np.linalg.norm(truth)
    print(f"relative error of the image, up to a constant phase: {error:.1e}\n")
    for line in shown(image)[::2]:
        print(line)


if __name__ == "__main__":
    main()
