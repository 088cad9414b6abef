"""The modeller's inner loops in C, if there was a compiler when the package was installed.

`callpath_modeler.modeling.numpy_kernels` defines the results, in numpy. These functions compute the
same results row by row instead of operation by operation. Without them models are the same, and
take 30 to 60 times as long.

See docs/explanation/architecture.md, 'Inner loops in numpy and in C'.
"""
