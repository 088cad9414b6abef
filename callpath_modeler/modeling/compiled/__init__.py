"""The modeller's inner loops in C, where a compiler was there when the package was installed.

The modules of `callpath_modeler.modeling.mixture` say what is computed, in numpy; these functions
compute the same, row by row instead of operation by operation. Without them models are the same,
and take several times as long.
"""
