"""The engine of models: inner loops in C, compiled when the package is installed.

The functions work row by row. Tests compare them with the equations in numpy, in ``tests/oracle``.

See docs/explanation/architecture.md, 'The engine in C'.
"""
