"""Kinds of findings about a series of runs, and about models, targets and comparisons."""

from __future__ import annotations

from callpath_modeler.diagnostics.findings_of_profiles import FindingKind

OF_SERIES = {
    "CPM102": FindingKind(
        what="The name of a run and its profile disagree on a parameter",
        why="A wrong value moves the run to a wrong scale, which bends all models.",
        remedy="Decide with `--param p=name` or `--param p=processes`, or rename the run.",
        example="app.p64: p = 64 in the name, 32 in the profile: the profile is used",
    ),
    "CPM113": FindingKind(
        what="Some call paths do not occur in every run",
        why="Each is modelled from the runs that have it.",
        remedy="Choose runs that have the same call paths with `--where`.",
        example="time: 25 of 4581 call paths do not occur in every run",
    ),
    "CPM115": FindingKind(
        what="The listed times add up to more than the run time",
        why="Each is the maximum over processes, and different processes are slowest in "
        "different call paths.",
        remedy="Use `--locations mean` for shares of the run time.",
        example="app.p64: time: call paths add up to 39 % more than the program took",
    ),
    "CPM116": FindingKind(
        what="A second parameter varies together with the first",
        why="The models cannot separate the effects of the two.",
        remedy="Choose runs with one value of the second with `--where`.",
        example="n: 3 values over those of p",
    ),
    "CPM119": FindingKind(
        what="Some runs lack a metric",
        why="Models of the metric rest on the other runs.",
        remedy="Measure all runs with the same metrics.",
        example="app.p16: no metric bytes_sent",
    ),
    "CPM121": FindingKind(
        what="The two experiments seem to be different programs",
        why="Differences between different programs mean little.",
        remedy="Compare two experiments of one program.",
        example="base and new: share hardly a function",
    ),
    "CPM123": FindingKind(
        what="Functions with one name were matched by their order",
        why="Their line numbers differ between builds, so two of them may be exchanged.",
        remedy="Build all runs from the same source.",
        example="sort: first lines differ between runs, so their order was used",
    ),
    "CPM125": FindingKind(
        what="Some columns of the table were not used",
        why="The models do not depend on them.",
        remedy="Move columns that matter into parameters or call paths of the table.",
        example="runs.csv: comment, date",
    ),
    "CPM131": FindingKind(
        what="The runs differ in more than their scale",
        why="The models mix the effect of this difference with the effect of the scale.",
        remedy="Exclude the different runs with `--where`, or remove them from the list.",
        example="hostname: nodeA in 5 runs (first app.p8), nodeB in 1 run (first app.p64)",
    ),
    "CPM134": FindingKind(
        what="Too few repetitions to know means to 5 %",
        why="The bands are wide because the means are uncertain.",
        remedy="Add repetitions, or measure on a quieter machine.",
        example="time: the mean of main/solve at p = 8 may be off by 12 %; runs to add: 4 at p = 8",
    ),
    "CPM135": FindingKind(
        what="The times look inclusive and are read as inclusive",
        why="Exclusive times would give another ranking.",
        remedy="If they are exclusive, name the column `time (exc)`.",
        example="time: each caller takes at least the time of its callees",
    ),
    "CPM136": FindingKind(
        what="Some runs were slower than their repetitions in nearly all call paths",
        why="Another job or a slow node may be the cause, and models bend with such runs.",
        remedy="Repeat these runs, or remove them from the list.",
        example="time: longer than repetitions: app.p64.r3 by 20 % (95 % of call paths)",
    ),
    "CPM185": FindingKind(
        what="Repetitions are in two groups, far apart",
        why="The machine was in two states, and the mean is the time of no run.",
        remedy="Model the runs of one state, or measure all scales in one state.",
        example="time: longer than the other repetitions: app.p64.r2, app.p64.r4 by 36 %, "
        "2 of 5 runs",
    ),
    "CPM137": FindingKind(
        what="A call path seems to have another name in other runs",
        why="A renamed function has two incomplete models instead of one.",
        remedy="Build all runs from the same source and libraries, or select those of one "
        "with `--where`.",
        example="main/solve: in 2 of 5 runs, main/solve_v2 in the others",
    ),
    "CPM139": FindingKind(
        what="Call paths were excluded with --ignore",
        why="Their cost is in no sum and no share.",
        remedy="Omit `--ignore` to include them.",
        example="call paths: 2 call paths, 12 % of the time of all runs",
    ),
    "CPM140": FindingKind(
        what="Call paths were folded into their callers with --hide",
        why="Their cost is part of the cost of their callers.",
        remedy="Omit `--hide` to list them separately.",
        example="call paths: 2 call paths, 12 % of the time of all runs",
    ),
    "CPM141": FindingKind(
        what="A number in the names of runs or in a column is not used",
        why="The models do not depend on it. If it is a parameter, they mix different experiments.",
        remedy="Use it with `--param NAME`, or confirm this with `--param NAME=none`.",
        example="job: 1001 ... 1015 in directory names: a run number, because it differs in "
        "every run",
    ),
    "CPM142": FindingKind(
        what="A number in the names of runs is used as a parameter",
        why="The models depend on it, whether or not it has a meaning.",
        remedy="If it is only a label, exclude it with `--param NAME=none`.",
        example="v: 1 2 in directory names: a parameter, because it is the only number that varies",
    ),
    "CPM143": FindingKind(
        what="Runs at one scale have different inputs",
        why="They are treated as repetitions, so the models mix the inputs.",
        remedy="Choose one input with `--where`, rank each with `--group-by NAME`, or name the "
        "input as a parameter.",
        example="InputType: Random in 5 runs, Sorted in 5 runs, at 5 of 5 points; "
        "choose with --where InputType=Random, or rank each with --group-by InputType",
    ),
    "CPM148": FindingKind(
        what="Some runs have no lines of calls, so no run has separate call sites",
        why="All calls of a function by one caller are one call path in every run.",
        remedy="Measure these runs with debugging information (`-g`), or exclude them with "
        "`--where`.",
        example="lines of calls: 1 run of 4 (first app.p8)",
    ),
    "CPM149": FindingKind(
        what="A costly call path is missing in one of several repetitions",
        why="It is 0 there, so the total of this run is too small if its file is not complete.",
        remedy="Check the file, or leave the run out with `--where`.",
        example="app.p32.r2: main/solve: 0, but 50 % of the total in a repetition",
    ),
    "CPM155": FindingKind(
        what="The times of functions contain each other",
        why="They cannot be added, so the result has neither a total nor shares.",
        remedy="Name callers in the table (`main->solve`), or name exclusive times `time (exc)`.",
        example="time: 3 functions take the same, largest time in every run",
    ),
    "CPM156": FindingKind(
        what="The runs do not show whether the scaling is weak or strong",
        why="Excess work and the scalability of the computation are not defined.",
        remedy="State the kind: `--scaling weak` if the problem grows with the number of workers, "
        "`--scaling strong` if it stays the same.",
        example="scaling: computation per process goes as p^-0.40",
    ),
    "CPM157": FindingKind(
        what="The kind of scaling contradicts what the profiles state",
        why="Excess work has another meaning than the measurement had.",
        remedy="Omit `--scaling`, unless the profiles are wrong.",
        example="scaling: weak (as told), but the profiles state scalability = strong",
    ),
}


OF_MODELS = {
    "CPM201": FindingKind(
        what="Some call paths have no model, because they occur at too few scales",
        why="They are missing from the ranking and from sums of predictions.",
        remedy="Measure at more scales.",
        example="models: 171 call paths, 3 % of the cost of all scales, measured at too few points",
    ),
    "CPM202": FindingKind(
        what="Some call paths follow none of the models",
        why="Their formulas miss measured values.",
        remedy="Trust their bands instead of their formulas, and measure at more scales.",
        example="models: 4 call paths, 9 % of the cost of all scales, "
        "whose values are farther from each model than the noise",
    ),
    "CPM203": FindingKind(
        what="Some call paths are too noisy for a model",
        why="No growth can be found in such measurements.",
        remedy="Repeat the measurements.",
        example="models: 3 call paths, 2 % of the cost of all scales, "
        "whose repetitions differ more than their scales",
    ),
    "CPM204": FindingKind(
        what="The models rest on fewer than five scales",
        why="Many formulas fit so few scales, so the growth is uncertain.",
        remedy="Measure at five scales or more.",
        example="models: 4 points of p",
    ),
    "CPM205": FindingKind(
        what="The target lies far beyond the data",
        why="The program may behave differently at scales that were never measured.",
        remedy="Measure a larger scale: `cpmodel info EXP --advise` names one.",
        example="target: p = 262144 is 262 times the largest run",
    ),
    "CPM206": FindingKind(
        what="A parameter without a target keeps its largest measured value",
        why="Another value of it gives another prediction.",
        remedy="Give all parameters, e.g. `--at p=4096,n=40`.",
        example="target: n = 40, the largest measured",
    ),
    "CPM207": FindingKind(
        what="The parameters were varied one at a time",
        why="The data do not tell whether their effects add up or multiply.",
        remedy="Measure one more run with all parameters at their largest values.",
        example="models: whether they add up or multiply is assumed; a run at p = 64, n = 40 "
        "would tell",
    ),
    "CPM208": FindingKind(
        what="One scale differs from all others in nearly all call paths",
        why="The models give this scale little weight.",
        remedy="Repeat it on the same machine, with as many processes per node as the others.",
        example="models: at p = 128 nearly all call paths are 1.6 times what the other scales say",
    ),
    "CPM209": FindingKind(
        what="Some call paths follow another law beyond a change point",
        why="Their model is the law beyond. It rests on the scales beyond alone, and the law "
        "before says nothing about larger scales.",
        remedy="Find out what changes there, e.g. an algorithm or a full cache. To model the "
        "scales beyond alone, select them with `--where`.",
        example="models: 1 call path, 97 % of the cost of all scales, from p = 256 on; select "
        "these scales with --where 'p>=256'",
    ),
    "CPM210": FindingKind(
        what="An exponential fits some call paths far better than every power law",
        why="Exponentials are not compared by default, so their models miss the measurements.",
        remedy="If the parameter is one of an algorithm, such as a number of dimensions, fit "
        "again with `--exponential 1/2,1`.",
        example="models: 2 call paths, 80 % of the cost of all scales; k^4 * 2^k is off by 1 %, "
        "the model by 12 %",
    ),
    "CPM214": FindingKind(
        what="The target combines values that no run has at once",
        why="The prediction rests on runs that were each smaller in some parameter.",
        remedy="Measure one run with all parameters at such values.",
        example="target: no run has p >= 256 and n >= 800000",
    ),
    "CPM215": FindingKind(
        what="Counters of 32 bits started again at 0",
        why="Their values fall where they should rise, and 2^32 or a multiple brings them back to "
        "the law of the smaller scales. Models of these values are wrong, and so are causes.",
        remedy="Count with 64 bits, or give the scales alone at which the counter did not start "
        "again.",
        example="models: 1 call path of bytes_sent, from p = 512 on",
    ),
    "CPM301": FindingKind(
        what="The sizes of messages are unknown",
        why="They are assumed to be equal, which may hide violated guidelines.",
        remedy="Give the size as a parameter, e.g. as a column `size` of a table.",
        example="osu: no parameter is the message size",
    ),
    "CPM302": FindingKind(
        what="The calls of a program were compared instead of a benchmark",
        why="Calls of a program differ in size and wait for late processes.",
        remedy="Measure each collective with a benchmark.",
        example="app: time divided by visits",
    ),
    "CPM303": FindingKind(
        what="Times of zero or less were not used",
        why="The clock is too coarse for such short calls, so their medians rest on the other "
        "times.",
        remedy="Measure several calls at once, or use a finer clock.",
        example="osu_bcast.p16.r1.txt: 2 times of zero, the first in line 4",
    ),
    "CPM304": FindingKind(
        what="Files repeat times that other files have in more detail",
        why="Using both would count mpiruns twice, so only the more detailed files are used.",
        remedy="Name the files to check if this is wrong.",
        example="results/summary.csv: 1 file repeats times that other files have in more detail",
    ),
    "CPM305": FindingKind(
        what="Lines of a benchmark were not used",
        why="They are error messages, or repetitions that failed. Too many of them may hide a "
        "problem of the measurement. PGChecker's grouped table has mock-ups only where they were "
        "faster, and a test of such a selection would find violations by chance.",
        remedy="Look at these lines. Enlarge the window of ReproMPI if its repetitions fail. Give "
        "the table raw of PGChecker instead of grouped.",
        example="mpi_bench_r3.dat: 10 lines not used, the first is 22",
    ),
}
