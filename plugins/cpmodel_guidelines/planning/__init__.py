"""Plans of campaigns: what to measure, how often, and the files that do it.

`workloads` finds the functions that a suite has to measure for guidelines. `costs` estimates times
of calls. `pilot` takes times, repetitions and noise from a measured campaign instead. `plan`
chooses mpiruns, sizes and repetitions for a budget. `scripts` and `files` make the files of a plan,
and `text` its lines.
"""
