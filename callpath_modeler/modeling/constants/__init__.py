"""Constants of models that are judgements: each with its unit, its meaning and its evidence.

A docstring ends with the unit and the evidence. ``ablation`` names a rule of `benchmarks/run.py
ablation`, ``paper`` a source, ``measured`` a measurement, ``mathematics`` a fact.
``by convention`` means that nothing was measured. See docs/explanation/hypotheses.md, 'What each
rule is worth'.
"""
