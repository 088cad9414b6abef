"""Campaigns: observed times of functions, with the mpirun that made them.

The unit of repetition is the mpirun. Observations inside one mpirun share its placement of
processes, its connections and its noise, so they are not independent of each other. A campaign
keeps all observations, and every test uses one median per mpirun (Hunold and Carpen-Amarie:
Reproducible MPI benchmarking is still not as easy as you think, IEEE TPDS 27(12), 2016).

Data flow: `cpmodel_guidelines.suites` reads files into sections, one per mpirun. `campaign_of`
numbers the mpiruns and makes a `Campaign`. `medians` reduces it. `experiment_of` hands the medians
to the checks, and `nrep` uses the observations themselves.
"""
