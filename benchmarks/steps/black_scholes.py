"""black_scholes: a million call prices, float64; delta, vega, rho and theta of every option as the gradient of the sum of the prices."""

import math

import numpy as np
from common import Prog

import adjit as aj


def normal_cdf(x):
    return 0.5 * (1.0 + aj.erf(x / math.sqrt(2.0)))


def total_price(spot, volatility, rate, expiry, strike):
    v = volatility * np.sqrt(expiry)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility * volatility) * expiry) / v
    d2 = d1 - v
    return np.sum(spot * normal_cdf(d1) - strike * np.exp(-rate * expiry) * normal_cdf(d2))


def adjit_step(inputs):
    market = [inputs[name] for name in ("S", "sig", "r", "T", "K")]
    f = aj.function(aj.value_and_grad(total_price, argnums=(0, 1, 2, 3)))

    def outputs(out):
        total, greeks = out
        return [total, *greeks]

    return Prog(lambda: f(*market), outputs)
