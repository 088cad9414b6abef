"""Readers of profiles of GPU programs, with host calls and GPU activities on one call tree."""

from __future__ import annotations
