"""Profiles of one process, by profilers of all programs: perf, pprof, callgrind, cProfile, ..."""
