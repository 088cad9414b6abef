"""Reader of traces of PyTorch (Kineto), and of other traces in the format of Chrome."""

from __future__ import annotations

from cpmodel_kineto.reader import KinetoReader

__all__ = ["KinetoReader"]
