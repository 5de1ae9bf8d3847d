"""Swing a pendulum up by iterative LQR: one native call for derivatives along a trajectory, a backward recursion, and a line search.

    python examples/swing_up.py

Each iteration needs the Jacobians of the motion and the Hessians of the cost at every time (`vmap` of `jacobian` and `hessian`), a Riccati
recursion from the end (`scan` with reverse=True), and trajectories for several step lengths (`vmap` of a `scan`). The motor is too weak to
lift the pendulum directly: it has to swing to and fro.
"""

import time

import numpy as np

import adjit as aj

TIMES, STEP = 100, 0.05
UPRIGHT = np.array([np.pi, 0.0])


def motion(state, torque):
    """One time step; the state is an angle, 0 when hanging, and its velocity."""
    angle, velocity = state[0], state[1]
    velocity = velocity + STEP * (5.0 * np.tanh(torque[0] / 5.0) - 9.81 * np.sin(angle) - 0.1 * velocity)
    return np.stack([angle + STEP * velocity, velocity])


def cost(state, torque):
    return STEP * (1.0 - np.cos(state[0] - np.pi) + 0.01 * state[1] ** 2 + 0.005 * torque[0] ** 2)


def last_cost(state):
    return 50.0 * (1.0 - np.cos(state[0] - np.pi)) + 5.0 * state[1] ** 2


def follow(start, states, torques, offsets, gains, length):
    """The trajectory with corrected torques, and its total cost."""

    def advance(state, given):
        old, torque, offset, gain = given
        torque = torque + length * offset + gain @ (state - old)
        return motion(state, torque), (state, torque, cost(state, torque))

    end, (states, torques, costs) = aj.scan(advance, start, (states, torques, offsets, gains))
    return states, torques, end, np.sum(costs) + last_cost(end)


@aj.function
def improve(start, states, torques, end, damping):
    """One iteration: the best of several trajectories near this one."""
    fx, fu = aj.vmap(aj.jacobian(motion, argnums=(0, 1)))(states, torques)
    cx, cu = aj.vmap(aj.grad(cost, argnums=(0, 1)))(states, torques)
    (cxx, _), (cux, cuu) = aj.vmap(aj.hessian(cost, argnums=(0, 1)))(states, torques)

    def back(value, given):
        vx, vxx = value
        fx, fu, cx, cu, cxx, cux, cuu = given
        qx, qu = cx + fx.T @ vx, cu + fu.T @ vx
        qxx, qux, quu = cxx + fx.T @ vxx @ fx, cux + fu.T @ vxx @ fx, cuu + fu.T @ vxx @ fu + damping * np.eye(1)
        offset, gain = -np.linalg.solve(quu, qu), -np.linalg.solve(quu, qux)
        return (qx + gain.T @ quu @ offset + gain.T @ qu + qux.T @ offset, qxx + qux.T @ gain), (offset, gain)

    at_end = aj.grad(last_cost)(end), aj.hessian(last_cost)(end)
    _, (offsets, gains) = aj.scan(back, at_end, (fx, fu, cx, cu, cxx, cux, cuu), reverse=True)
    lengths = 0.5 ** np.arange(8.0)
    tried = aj.vmap(lambda length: follow(start, states, torques, offsets, gains, length))(lengths)
    best = np.argmin(tried[3])
    return aj.tree_map(lambda each: each[best], tried)


def main():
    start = np.array([0.0, 0.0])
    torques = 2.0 * np.sin(3.0 * STEP * np.arange(TIMES))[:, None]
    nothing = np.zeros((TIMES, 1)), np.zeros((TIMES, 1, 2))
    states, torques, end, total = aj.function(follow)(start, np.zeros((TIMES, 2)), torques, *nothing, 0.0)
    print(f"start         cost {float(total):8.3f}")

    damping, begin = 1.0, time.perf_counter()
    for iteration in range(1, 101):
        found = improve(start, states, torques, end, damping)
        better = float(found[3]) < float(total)
        damping = max(damping / 2.0, 1e-6) if better else damping * 4.0
        if better:
            states, torques, end, total = found
        if iteration in (1, 3, 10, 30, 100):
            print(f"iteration {iteration:3} cost {float(total):8.3f}")
    print(f"100 iterations, the first call included, took {time.perf_counter() - begin:.2f} s\n")

    print("the angle over time (top: upright)")
    angles = np.mod(states.numpy()[::2, 0], 2.0 * np.pi)
    for low in np.linspace(2.0 * np.pi, 0.0, 13)[1:]:
        print("".join("o" if low <= a < low + np.pi / 6.0 else " " for a in angles))
    print(f"at the end: angle {float(end[0] / np.pi):.3f} pi, velocity {float(end[1]):.3f}")


if __name__ == "__main__":
    main()
