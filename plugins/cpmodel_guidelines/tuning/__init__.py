"""Action on violated guidelines: rules that make an MPI library use the faster way.

Data flow: `sweeps` adds measured algorithms to a campaign, as functions with guidelines of their
own. `cpmodel_guidelines.verification` judges all guidelines. `gains` reads the gains from its
verdicts. `choices` selects one way for each function, number of processes and message size, in the
terms of a library: `open_mpi` or `pgmpitunelib`. `ranges` extends the choices to ranges between
the measured sizes. `rules_files` writes them. `promises` holds the gains against a campaign that
was measured with the rules, and `report` prints all of it.
"""
