"""Cube 4 files: their archive, their definitions, and models for viewers of Cube."""

from __future__ import annotations

from callpath_modeler.report.cube.models import CubeModels, cube_of_models

__all__ = ["CubeModels", "cube_of_models"]
