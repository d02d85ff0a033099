"""Jumps over many steps of gradient descent, along the generator of the map (MODEL §6).

The map `x -> x - eta g(x)` is the flow of its generator `log(1 + Delta)` over one unit of the step
number. Seven differences of the map give the generator where its steps are smooth, a Runge-Kutta
method integrates it, and patches stand in for the gradient: what comes out is the discrete descent
and not the gradient flow.
"""

import numpy as np
from numpy import float64
from numpy.typing import NDArray
from scipy.integrate import DOP853

from popdyn.compiled import kernel
from popdyn.coordinates import Head
from popdyn.dynamics.descent_steps import LOST, State, steps_of
from popdyn.dynamics.surrogate import NODES, SCALES, Patches, Surrogate, excess_unit, patch_gradient
from popdyn.risk.corpus_kernels import two_sum
from popdyn.risk.protocol import Risk

__all__ = ["PROMISED", "Jumps"]

PROMISED = 1e-11  # the most that a run may err, relative in the scale and absolute in the excess

# The run and its shadow, which is worse in all three approximations and runs beside it: the run
# errs less than the two differ. Differences of the map, coefficients of the patches left out,
# tolerance of the integration. The gradients of the shadow are larger by what rounding may do.
_RUN, _SHADOW = (7, 0, 1e-13), (6, 1, 1e-12)
_ROUNDING = 1e-14
_SMOOTH = 1e-13  # the last difference of the run, relative to the head, from which on it jumps
# The generator is the logarithm of the map, whose least eigenvalue is one less the product of step
# size and curvature. There is none from 1 on, at half the stability limit.
_MOST_PRODUCT = 1.0
_SHORTEST = 4  # steps of a stride: shorter ones hardly pay for their 13 generators on any risk
_MOST_STEPS = 256  # of the integration in one jump: some milliseconds
_MOST_PATCHES = 8  # for one jump: a path that asks for more has left them
_WAIT, _LONGEST_WAIT = 16, 1024  # plain steps before another attempt: doubled after each failure

# Dormand and Prince's method of order 8, with two estimates of its error, of orders 5 and 3.
_A, _B, _E3, _E5 = (np.array(x) for x in (DOP853.A, DOP853.B, DOP853.E3, DOP853.E5))
_N_STAGES = _B.size
_SAFETY, _LEAST_FACTOR, _MOST_FACTOR, _EXPONENT = 0.9, 0.2, 5.0, -1.0 / 8.0

_GOING, _OUTSIDE, _SHORT, _UNRESOLVED, _AT_REST = range(5)

_UNSTABLE = "the step size is above half the local stability limit"
_TRANSIENT = "they are not smooth"
_ROUGH = "no patch holds the gradient"
_UNMET = f"the error of a jump is estimated above {PROMISED:g}"


class Jumps:
    """The jumps of one run, its plain steps, and what is known of its error.

    Attributes
    ----------
    error_estimate : float
        Of the run so far, relative in the scale and absolute in the excess.
    at_rest : bool
        Whether the updates are below the noise of the patches.
    wait : int
        Plain steps to take before the next attempt to jump.
    """

    def __init__(self, risk: Risk, step_size: float) -> None:
        self.risk, self.step_size = risk, step_size
        self.surrogate = Surrogate(risk)
        self.error_estimate = 0.0
        self.at_rest = False
        self.wait = 0
        self._steps = steps_of(risk)
        self._gap = np.zeros(2)  # from the run to its shadow, in excess and scale
        self._shadow_steps = 0  # plain ones
        self._clear = False  # whether nothing is in the way of a jump
        self._next_wait = _WAIT
        self._why = ""
        self._plain_steps = dict.fromkeys((_UNSTABLE, _TRANSIENT, _ROUGH, _UNMET), 0)
        self._lengths = {_RUN: float(_SHORTEST), _SHADOW: float(_SHORTEST)}

    @property
    def n_evaluations(self) -> int:
        """Gradients of the risk, besides those of the plain steps of the run."""
        return self.surrogate.n_evaluations + self._shadow_steps

    def jump(self, state: State, room: int, left: int, level: float) -> int:
        """Move a state on by at most `room` steps, to a scale below `level`; returns how many.

        None is moved where plain steps are called for. `left` is how many the run may still take.
        """
        if self.wait > 0:
            return 0
        if not self._clear:
            hindrance = self._hindrance(state, left, level)
            if hindrance is not None:
                return self._failed(hindrance)
            self._clear = True
        if room < _SHORTEST:
            return 0
        run = state[:4].copy()
        taken, outcome = self._follow(run, room, level, _RUN)
        if taken == 0 and outcome != _AT_REST:
            return self._failed(_ROUGH if outcome in (_OUTSIDE, _UNRESOLVED) else "")
        shadow = self._shadow_of(state)
        if not self._led(shadow, taken):
            return self._failed(_UNMET)
        gap = _difference(shadow, run)
        error = _error(gap, run)
        if not error <= PROMISED:
            return self._failed(_UNMET)
        state[:4] = run
        self._gap, self.error_estimate = gap, max(self.error_estimate, error)
        self.at_rest = outcome == _AT_REST
        self._next_wait = _WAIT
        return taken

    def steps(
        self, state: State, step_size: float, n_steps: int, lowest: float, highest: float
    ) -> tuple[int, int]:
        """Plain steps of the run, which its shadow takes too."""
        shadow = self._shadow_of(state)
        taken, outcome = self._steps(state, step_size, n_steps, lowest, highest)
        if self._gap.any():
            followed, _ = self._steps(shadow, step_size, taken, -np.inf, np.inf)
            self._shadow_steps += followed
            self._gap = _difference(shadow, state) if followed == taken else np.full(2, np.inf)
            self.error_estimate = max(self.error_estimate, _error(self._gap, state))
        if self.wait > 0 and self._why:
            self._plain_steps[self._why] += taken
        self.wait = max(self.wait - taken, 0)
        return taken, outcome

    def message(self) -> str:
        """Where plain steps had to be taken, and why."""
        return "".join(
            f"; {steps} of the steps were taken one by one, where {why}"
            for why, steps in self._plain_steps.items()
            if steps
        )

    def _shadow_of(self, state: State) -> State:
        shadow = state.copy()
        # The gap may be less than one rounding of the head.
        for i, gap in zip((0, 2), self._gap, strict=True):
            shadow[i], shadow[i + 1] = two_sum(state[i], state[i + 1] + gap)
        return shadow

    def _failed(self, why: str) -> int:
        self._clear, self._why = False, why
        self.wait = self._next_wait
        # A transient passes and a step size becomes stable; what the patches or their error forbid
        # here, which is costly to find, they mostly go on to forbid.
        longest = np.inf if why in (_ROUGH, _UNMET) else _LONGEST_WAIT
        self._next_wait = int(min(2 * self.wait, longest))
        return 0

    def _hindrance(self, state: State, left: int, level: float) -> str | None:
        """Why not to begin to jump, empty if it goes without saying; None if nothing is in the way.

        The steps have to be stable, smooth, and many enough for a patch to pay.
        """
        excess, scale = np.array(state[0]), np.array(state[2])
        hessian = self.risk.hessian(Head.from_excess(excess, scale, self.risk.half_width))
        if not np.isfinite(hessian).all():
            return _ROUGH
        if not self.step_size * float(np.linalg.eigvalsh(hessian)[-1]) < _MOST_PRODUCT:
            return _UNSTABLE
        steps = np.empty((_RUN[0], 2))
        for k in range(_RUN[0]):
            steps[k] = -self.step_size * self.surrogate.gradient(excess, scale)
            if not np.isfinite(steps[k]).all():
                return _ROUGH
            if k == 0 and not self._pays(steps[0], state, left, level):
                return ""
            excess, scale = excess + steps[k, 0], scale + steps[k, 1]
        size = excess_unit(state[0], state[2], self.risk.half_width), abs(state[2])
        last = np.diff(steps, n=_RUN[0] - 1, axis=0)[0]
        return None if (np.abs(last) <= _SMOOTH * np.array(size)).all() else _TRANSIENT

    def _pays(self, step: NDArray[float64], state: State, left: int, level: float) -> bool:
        """Whether so many steps lie ahead, of the run and on a patch, that a patch pays.

        A patch costs a corpus little more than a step for each of its scales, other risks a step
        for each node; but the steps that are smooth are mostly slow, and a patch holds for many.
        """
        return bool(
            left >= NODES
            and self.surrogate.lasts(state[0], state[2], step, SCALES)
            and NODES * max(step[1], 0.0) <= level - state[2]
        )

    def _led(self, shadow: NDArray[float64], n_steps: int) -> bool:
        """Lead the shadow as far as the run has come."""
        while n_steps > 0:
            taken, outcome = self._follow(shadow, n_steps, np.inf, _SHADOW)
            if outcome == _AT_REST:
                return True
            if taken == 0:
                return False
            n_steps -= taken
        return True

    def _follow(
        self, point: NDArray[float64], length: int, level: float, how: tuple[int, int, float]
    ) -> tuple[int, int]:
        """Integrate over at most so many steps, with new patches where there is none yet."""
        taken, outcome, outside = 0, _OUTSIDE, np.empty(2)
        for _ in range(_MOST_PATCHES):
            more, outcome, self._lengths[how] = _march(
                point,
                self.surrogate.patches,
                self.step_size * (1.0 + _ROUNDING if how == _SHADOW else 1.0),
                self.risk.half_width,
                length - taken,
                level,
                self._lengths[how],
                *how,
                outside,
            )
            taken += more
            if outcome != _OUTSIDE or not self.surrogate.cover(outside[0], outside[1]):
                break
        return taken, outcome


def _difference(shadow: NDArray[float64], run: NDArray[float64]) -> NDArray[float64]:
    """In excess and scale, of what rounding has left out, too."""
    difference = shadow[:4] - run[:4]
    return difference[[0, 2]] + difference[[1, 3]]


def _error(gap: NDArray[float64], run: NDArray[float64]) -> float:
    """Absolute in the excess, relative in the scale."""
    scale = abs(float(run[2]))
    return max(abs(float(gap[0])), abs(float(gap[1])) / scale if scale > 0.0 else np.inf)


@kernel
def _generator(
    patches: Patches,
    step_size: float,
    n_differences: int,
    n_dropped: int,
    excess: float,
    scale: float,
    room: tuple[NDArray[float64], NDArray[float64]],
    outside: NDArray[float64],
) -> tuple[float, float, float]:
    """`log(1 + Delta)` of excess and scale, and the noise of a step; nan where no patch is."""
    steps, row = room
    noise = 0.0
    for k in range(n_differences):
        by_excess, by_scale, noise = patch_gradient(patches, n_dropped, excess, scale, row)
        if np.isnan(by_excess):
            outside[0], outside[1] = excess, scale
            return np.nan, np.nan, np.nan
        steps[k, 0], steps[k, 1] = -step_size * by_excess, -step_size * by_scale
        excess += steps[k, 0]
        scale += steps[k, 1]
    along_excess, along_scale = steps[0, 0], steps[0, 1]
    sign = 1.0
    for k in range(1, n_differences):
        for i in range(n_differences - k):
            steps[i, 0] = steps[i + 1, 0] - steps[i, 0]
            steps[i, 1] = steps[i + 1, 1] - steps[i, 1]
        sign = -sign
        along_excess += sign * steps[0, 0] / (k + 1)
        along_scale += sign * steps[0, 1] / (k + 1)
    return along_excess, along_scale, step_size * noise


@kernel
def _march(
    point: NDArray[float64],
    patches: Patches,
    step_size: float,
    width: float,
    length: int,
    level: float,
    wanted: float,
    n_differences: int,
    n_dropped: int,
    tolerance: float,
    outside: NDArray[float64],
) -> tuple[int, int, float]:
    """Integrate the generator in strides of whole steps, below the level and not through zero.

    `point` is excess and scale, each with what rounding has left out, and is moved. Returns how
    many steps it was moved by, why no more, and the stride wanted next.
    """
    taken = 0
    room = np.empty((n_differences, 2)), np.empty(patches[1].shape[2])
    slopes = np.empty((_N_STAGES + 1, 2))
    v_excess, v_scale, noise = _generator(
        patches, step_size, n_differences, n_dropped, point[0], point[2], room, outside
    )
    if np.isnan(v_excess):
        return taken, _OUTSIDE, wanted
    slopes[0, 0], slopes[0, 1] = v_excess, v_scale
    for _ in range(_MOST_STEPS):
        if abs(slopes[0, 0]) <= noise and abs(slopes[0, 1]) <= noise:
            largest = max(abs(slopes[0, 0]), abs(slopes[0, 1]) * width)
            at_rest = largest <= LOST * max(abs(point[0]), abs(point[2]) * width)
            return taken, _AT_REST if at_rest else _UNRESOLVED, wanted
        if taken == length:
            break
        stride = np.floor(min(wanted, float(length - taken)))
        excess, scale = 0.0, 0.0
        for i in range(1, _N_STAGES + 1):
            excess, scale = 0.0, 0.0
            for j in range(i):
                weight = _A[i, j] if i < _N_STAGES else _B[j]
                excess += weight * slopes[j, 0]
                scale += weight * slopes[j, 1]
            excess *= stride
            scale *= stride
            v_excess, v_scale, noise = _generator(
                patches,
                step_size,
                n_differences,
                n_dropped,
                point[0] + excess,
                point[2] + scale,
                room,
                outside,
            )
            if np.isnan(v_excess):
                return taken, _OUTSIDE, wanted
            slopes[i, 0], slopes[i, 1] = v_excess, v_scale
        unit = tolerance * excess_unit(point[0], point[2], width), tolerance * abs(point[2])
        fifth, third = 0.0, 0.0
        for c in range(2):
            e5, e3 = 0.0, 0.0
            for j in range(_N_STAGES + 1):
                e5 += _E5[j] * slopes[j, c]
                e3 += _E3[j] * slopes[j, c]
            fifth += (e5 / unit[c]) ** 2
            third += (e3 / unit[c]) ** 2
        error = stride * fifth / np.sqrt(2.0 * (fifth + 0.01 * third)) if fifth > 0.0 else 0.0
        factor = min(_MOST_FACTOR, max(_LEAST_FACTOR, _SAFETY * max(error, 1e-8) ** _EXPONENT))
        # The highest scale may also lie within the stride.
        highest = point[2] + max(scale, 0.0 if v_scale >= 0.0 else stride * slopes[0, 1])
        if error > 1.0:
            wanted = stride * min(factor, 1.0)
        elif highest >= level or (point[2] + scale) * point[2] <= 0.0:
            wanted = stride / 2.0
        else:
            point[0], tail = two_sum(point[0], excess + point[1])
            point[1] = tail
            point[2], tail = two_sum(point[2], scale + point[3])
            point[3] = tail
            taken += int(stride)
            slopes[0] = slopes[_N_STAGES]
            # A stride cut short by the end of the jump says nothing of the next one.
            wanted = max(wanted, stride * factor) if stride < np.floor(wanted) else stride * factor
        if wanted < _SHORTEST:
            return taken, _SHORT, float(_SHORTEST)
    return taken, _GOING, wanted
