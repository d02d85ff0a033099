"""The gradient flow of the closed form by collocation, in compiled code."""

from popdyn.dynamics.collocation.path import Collocation as Collocation
from popdyn.dynamics.collocation.path import CollocationPath as CollocationPath
from popdyn.dynamics.collocation.path import tolerances as tolerances
