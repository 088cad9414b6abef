"""Kinds of findings about models, targets and comparisons."""

from __future__ import annotations

from callpath_modeler.diagnostics.finding_kind import FindingKind

OF_MODELS = {
    "CPM201": FindingKind(
        what="Some call paths have no model, because they occur at too few scales",
        why="They are missing from the ranking and from sums of predictions.",
        remedy="Measure at more scales.",
        example="models: 171 call paths, 3 % of the cost of all scales, measured at too few points",
    ),
    "CPM202": FindingKind(
        what="Some call paths follow none of the models",
        why="Their formulas miss measured values by more than the noise.",
        remedy="Trust their bands instead of their formulas, and measure at more scales.",
        example="models: 4 call paths, 9 % of the cost of all scales, "
        "off every model by more than noise explains",
    ),
    "CPM203": FindingKind(
        what="Some call paths are too noisy for a model",
        why="Their repetitions differ more than their scales, so no growth can be found.",
        remedy="Repeat the measurements.",
        example="models: 3 call paths, 2 % of the cost of all scales, "
        "with repetitions further apart than points",
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
