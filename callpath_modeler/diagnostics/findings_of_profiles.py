"""Kinds of findings about single profiles, traces and their formats."""

from __future__ import annotations

from msgspec import Struct


class FindingKind(Struct, frozen=True, kw_only=True):
    """One numbered kind of finding, with the parts of its message.

    Attributes
    ----------
    what : what happened, as a clause without a full stop
    why : why it matters to the result, in sentences
    remedy : what the user can do about it, in sentences
    example : subject and message of such a finding
    """

    what: str
    why: str
    remedy: str
    example: str


OF_PROFILES = {
    "CPM101": FindingKind(
        what="A profile was not used",
        why="The models rest on the other runs.",
        remedy="Measure the run again, or remove it from the list. `--strict` makes this an error.",
        example="runs/app.p64.r3/profile.cubex: the file is cut off",
    ),
    "CPM103": FindingKind(
        what="The data of a metric end too early",
        why="Missing values are zero, so costs of this run are too low.",
        remedy="Copy the profile again, or repeat the run.",
        example="app.p16: time: 12 rows are cut off",
    ),
    "CPM104": FindingKind(
        what="A counter has values below zero",
        why="Such values are zero in the result.",
        remedy="Use another metric with `-m`, or check how the counter was measured.",
        example="app.p16: PAPI_TOT_INS: 3 values",
    ),
    "CPM105": FindingKind(
        what="Callees cost more than their caller",
        why="The exclusive cost of such callers would be negative, and is zero in the result.",
        remedy="Check the measurement of these call paths.",
        example="app.p16: time, down to -0.002",
    ),
    "CPM106": FindingKind(
        what="The call tree was cut at a depth limit",
        why="All calls below the limit are one call path, so the ranking cannot name them.",
        remedy="Set SCOREP_PROFILING_MAX_CALLPATH_DEPTH to a larger depth and measure again.",
        example="app.p16: calls below the depth limit are merged into COLLAPSE",
    ),
    "CPM107": FindingKind(
        what="Some metrics cannot be read",
        why="They can be neither modelled nor ranked. Other metrics are not affected.",
        remedy="For derived metrics of Cube, store their values with `cube_remap2 -d`.",
        example="app.p16: stalls, ipc",
    ),
    "CPM108": FindingKind(
        what="The profile does not hold values of single threads",
        why="Means, maxima and imbalance over processes may be wrong.",
        remedy="Measure with SCOREP_PROFILING_FORMAT=default.",
        example="app.p16: the columns are named Average thread",
    ),
    "CPM109": FindingKind(
        what="The call paths of tasks were not used",
        why="Their time is already part of the regions that executed the tasks.",
        remedy="You need not do anything.",
        example="app.p16: 7 call paths of tasks",
    ),
    "CPM110": FindingKind(
        what="Some locations of the profile are not threads of processes",
        why="The metrics of threads do not include their values, such as the time on GPUs.",
        remedy="List the metrics with `cpmodel info`. One of them may be `time on GPU streams`.",
        example="app.p16: 4 GPU streams, whose values are separate metrics",
    ),
    "CPM111": FindingKind(
        what="The definitions of a profile were repaired",
        why="Names of functions may be wrong, because the XML was not well-formed.",
        remedy="Check the names of the call paths in the ranking.",
        example="app.p16: the definitions are not well-formed XML",
    ),
    "CPM112": FindingKind(
        what="Call paths with one name were added",
        why="The ranking shows their sum.",
        remedy="Give them different names if you need separate models.",
        example="app.p16: 2 call paths added to a sibling of the same name",
    ),
    "CPM114": FindingKind(
        what="The call paths do not add up to the recorded total",
        why="Data were lost, so costs and shares may be wrong.",
        remedy="Copy the profile again. If that does not help, please report it.",
        example="app.p16: time: call paths add up to 20.1, the program took 22.6",
    ),
    "CPM117": FindingKind(
        what="Some values are not finite numbers",
        why="They are missing in the result.",
        remedy="Check the source of these values.",
        example="app.p16: time: 3 values",
    ),
    "CPM118": FindingKind(
        what="Two metrics have one name",
        why="Only the first of them is used.",
        remedy="Rename one of the two.",
        example="app.p16: metric time is defined more than once",
    ),
    "CPM120": FindingKind(
        what="The measurement clustered the iterations of a loop",
        why="Clusters differ from run to run, so models of single iterations mean nothing.",
        remedy="Set SCOREP_PROFILING_ENABLE_CLUSTERING=false and measure again.",
        example="app.p16: iterations are numbered by cluster",
    ),
    "CPM122": FindingKind(
        what="A profile was given twice",
        why="It is used once.",
        remedy="Remove one of the two from the command line.",
        example="runs/app.p16.cubex: given twice, used once",
    ),
    "CPM124": FindingKind(
        what="The headers of an archive do not match its contents",
        why="Values were found between the headers, and may be incomplete.",
        remedy="Copy the profile again, or repeat the run.",
        example="app.p16: members are not where the headers say",
    ),
    "CPM126": FindingKind(
        what="The database holds only sums over processes",
        why="Maxima, imbalance and the time of the slowest process are unknown.",
        remedy="Keep the metric-db files, or use hpcprof of HPCToolkit 2022.10 or later.",
        example="app.p16: values of single processes are not stored",
    ),
    "CPM127": FindingKind(
        what="Some regions have no end in the trace",
        why="Their time ends with the last event of the process, which may be too early.",
        remedy="Trace a run that ends normally.",
        example="app.p16: 2 regions are never left",
    ),
    "CPM128": FindingKind(
        what="Calls and returns in the trace do not match",
        why="A call without a return ends with its caller. A return without a call does not count.",
        remedy="Check the manual instrumentation of the program.",
        example="app.p16: 2 calls without return, or returns without call",
    ),
    "CPM129": FindingKind(
        what="The measurement was paused",
        why="The time of the pauses is missing from the run time.",
        remedy="If the trace buffer was flushed, raise SCOREP_TOTAL_MEMORY and measure again.",
        example="app.p16: 1.5 s of 4 locations are excluded",
    ),
    "CPM130": FindingKind(
        what="The file holds means instead of single repetitions",
        why="The noise is unknown, so bands may be too narrow or too wide.",
        remedy="Export the experiment with all of its values.",
        example="series.json: 40 values are means; the file does not contain their repetitions",
    ),
    "CPM132": FindingKind(
        what="Some processes have no values",
        why="Means, maxima and imbalance describe the other processes only.",
        remedy="Give the profiles of all processes.",
        example="app.p16: 2 of 16 processes have no profile; p = 16",
    ),
    "CPM133": FindingKind(
        what="The trace has communication outside all regions",
        why="No call path holds this communication, so it is missing from the result.",
        remedy="Instrument at least main and measure again.",
        example="app.p16: 5 messages and operations are outside all regions",
    ),
    "CPM138": FindingKind(
        what="Some communication or time of the trace is not in the output",
        why="The generated program communicates or computes less than the traced one.",
        remedy="Check that the missing operations and times do not matter for your purpose.",
        example="app.p16: 2 one-sided calls",
    ),
    "CPM144": FindingKind(
        what="The communication can hang",
        why="Ranks wait for each other if the MPI library lets a send wait for its receive. "
        "Large messages do.",
        remedy="Post the receives before the sends, or use MPI_Sendrecv.",
        example="app.p2: the program can hang if sends wait for their receives: rank 0 in line 1 "
        "(send of 2048 bytes to rank 1 of main) waits for rank 1, rank 1 in line 1 (send of 2048 "
        "bytes to rank 0 of main) waits for rank 0",
    ),
    "CPM145": FindingKind(
        what="Receives from any source can lead to a deadlock",
        why="The traced run was lucky: its messages arrived in another order. cpmodel keeps the "
        "recorded order. It simulates one order only, so other deadlocks are possible.",
        remedy="Name the source in the receive, or use different tags for different messages.",
        example="app.p3: the program can hang if messages arrive in another order: rank 1 in line "
        "3 (receive from rank 0 of main) waits for rank 0, which has ended; 1 rank blocked",
    ),
    "CPM146": FindingKind(
        what="Ranks answer the source of receives from any source",
        why="The partners depend on the order of messages. In the program that cpmodel writes, "
        "they take turns, and rounds whose number depends on the order are shared out. It is a "
        "possible run, not the recorded one. If the run does not tell the numbers of rounds, "
        "cpmodel names the reason and keeps the recorded order, which is told without loops.",
        remedy="You need not do anything. Traces of fewer rounds give shorter programs.",
        example="app.p8: rank 0 answers the source of each message",
    ),
    "CPM147": FindingKind(
        what="Some communication does not repeat",
        why="Its lines grow with the length of the run, so they describe this run and not the "
        "program.",
        remedy="Use `--any-source` if these receives are from any source; else trace fewer rounds.",
        example="app.p8: 63 lines for main/farm/MPI_Recv of rank 0",
    ),
    "CPM151": FindingKind(
        what="TAU cut call paths at a depth limit",
        why="Callers above the limit are unknown, so these call paths start below the program.",
        remedy="Set TAU_CALLPATH_DEPTH above the depth of the program and measure again.",
        example="app.p16: the callers of 12 call paths are unknown",
    ),
    "CPM152": FindingKind(
        what="Timers that repeat the time of other timers were not used",
        why="Every time counts once.",
        remedy="You need not do anything.",
        example="app.p16: 9 timers of samples, parameters or call sites repeat the time of others",
    ),
    "CPM159": FindingKind(
        what="Serial work of one rank grows with the number of processes",
        why="The other ranks wait for it, so it limits the run time at larger scales.",
        remedy="Distribute this work, or replace it by a tree.",
        example="p = 64: rank 0 computes 320 us before line 3 (MPI_Bcast), and 80.0 us at p = 16",
    ),
    "CPM160": FindingKind(
        what="A time has no unit in the profile",
        why="The values are read as seconds.",
        remedy="Give the unit if it is another one, e.g. `--unit time=us`.",
        example="app.p16: time has no unit: read as seconds",
    ),
    "CPM161": FindingKind(
        what="The number of processes is an estimate from sums and averages",
        why="It is wrong if the averages leave out processes without the call path.",
        remedy="Record mpi.world.size: enable Caliper's mpi service, or Adiak's jobsize.",
        example="app.p16: sums are 16 times the averages, so p = 16",
    ),
    "CPM162": FindingKind(
        what="Stacks have frames without a name",
        why="Such a frame is called (unnamed), so different functions may share one call path.",
        remedy="Build the program with symbols, so that the profiler finds the names of functions.",
        example="app.folded: 3 stacks with frames called (unnamed)",
    ),
    "CPM163": FindingKind(
        what="The stacks have two counts each",
        why="The first is the default metric; the second is another profile.",
        remedy="Model the second with `-m samples_2`.",
        example="diff.folded: 120 stacks have two counts",
    ),
    "CPM164": FindingKind(
        what="No reader recognises some files",
        why="They are not part of the answer.",
        remedy="Give one of them alone to learn the reason, or move them out of the directory.",
        example="runs: notes.csv and 2 more",
    ),
    "CPM165": FindingKind(
        what="Texts of a table are used as call paths",
        why="The table has no column that is called callpath, and texts about runs look the same.",
        remedy="Call the column of call paths `callpath`.",
        example="runs.csv: the columns kernel, variant",
    ),
    "CPM166": FindingKind(
        what="Failed runs are not part of the answer",
        why="Models rest on the other runs, and a scale at which all runs failed is missing.",
        remedy="Repeat the failed runs.",
        example="results.latest.json: 2 of 12 runs failed",
    ),
    "CPM167": FindingKind(
        what="Several columns of a table are times, and no title says which one is the run time",
        why="The first one is ranked, and the others are metrics of their own.",
        remedy="Name the run time with `--time COLUMN`. If they are parts of one run time, add its "
        "column, e.g. `total`.",
        example="runs.csv: GPU time is used, not CPU time",
    ),
    "CPM168": FindingKind(
        what="Values of some runs are not known",
        why="An empty cell is not 0. If the table states no total, the total of such a run has "
        "the mean of its repetitions there.",
        remedy="Fill in the cells, or leave out these runs.",
        example="runs.csv: line 7: io: no value",
    ),
    "CPM169": FindingKind(
        what="Some times of a table exceed the run time",
        why="Their columns are metrics of their own, because parts never exceed the run time.",
        remedy="Correct or remove these rows. Then the columns are call paths of the run time.",
        example="runs.csv: line 7: io: more than total",
    ),
    "CPM170": FindingKind(
        what="A run has no factors of parallel efficiency",
        why="They need the times of single processes, because a maximum of sums over call paths is "
        "not a sum of maxima.",
        remedy="Measure with Score-P, HPCToolkit or TAU, and keep the values of all processes.",
        example="app.p16: its values are sums over processes",
    ),
    "CPM171": FindingKind(
        what="Only the costliest subtrees have factors of parallel efficiency",
        why="The sums of all threads over more subtrees do not fit into the memory.",
        remedy="Leave out others with `--ignore`, or look at a single run with fewer processes.",
        example="app.p65536: 80 subtrees of 341",
    ),
    "CPM172": FindingKind(
        what="A run of several processes has no call of communication",
        why="All its time would count as computation, and its efficiency would be too high. So its "
        "factors are not given.",
        remedy="Measure the calls of MPI as well, e.g. with Caliper's mpi service.",
        example="app.p16: 16 processes, but no call of MPI or SHMEM",
    ),
    "CPM173": FindingKind(
        what="Some call paths run only on threads that are not the longest ones of their processes",
        why="Threads run side by side, so only the longest thread of a process gives its time. "
        "These call paths have zero time.",
        remedy="Rank the sums over all threads: `-m 'time of all threads'`.",
        example="app.p4: time: 2 call paths, the longest worker/solve with 83 % of the run time",
    ),
    "CPM180": FindingKind(
        what="A profile holds predictions and not measurements",
        why="A model of predictions repeats their errors. Costs below zero are read as zero.",
        remedy="Move the file of `cpmodel export -f cubex` out of the directory of the runs.",
        example="models.cubex: models of p = 4096",
    ),
    "CPM181": FindingKind(
        what="Some keys of a configuration file beside the profiles are not used",
        why="Whoever made the profiles may have written the file. So the results, verdicts and "
        "notes are those without these keys.",
        remedy="Read the file first. Then trust its directory, or name the file with `--config`. "
        "You can also set a key on the command line, in your own configuration file, or in a "
        "variable such as CPMODEL_JOBS.",
        example="runs/cpmodel.toml: ignore, jobs",
    ),
    "CPM182": FindingKind(
        what="The list of runs in a directory leaves out some of its profiles",
        why="The models rest on the profiles that the list names.",
        remedy="Add the profiles to the list, or remove the list to read all of them.",
        example="runs/runs.toml: app.p64.r2.cubex, app.p64.r3.cubex",
    ),
    "CPM183": FindingKind(
        what="A configuration file beside the profiles may not replace their number of processes",
        why="Whoever made the profiles may have written the file. So p is the number of processes "
        "in the profiles.",
        remedy="Read the file first. Then trust its directory, or state the source on the command "
        "line, e.g. `--param p=name`.",
        example='runs/cpmodel.toml: p "name"',
    ),
    "CPM184": FindingKind(
        what="Runs at one scale are of several cases",
        why="They differ in words about inputs, algorithms, machines or programs. So they are not "
        "repetitions of each other, and no model describes them together.",
        remedy="Choose one case with `--case NAME`, or compare all with `cpmodel rank`. If they "
        "are repetitions, add `--param NAME=none`. In a table, call a column of call paths "
        "`callpath`.",
        example="algorithm: heap, quick; choose one with --case heap, or compare all: cpmodel rank",
    ),
    "CPM186": FindingKind(
        what="Some events of a GPU profile have no clear place in the call tree",
        why="Events without a valid start and end are left out. The launch of other GPU activities "
        "is not recorded, so they are below `(launch not recorded)`.",
        remedy="Record the program from its first to its last call. Make ranges with the functions "
        "for push and pop.",
        example="app.p16: 3 events without a valid start and end, left out",
    ),
    "CPM187": FindingKind(
        what="Some events of a trace cannot be read",
        why="Their text is damaged, or their times make no sense. Their costs are missing.",
        remedy="Copy the trace again, or repeat the run.",
        example="run.p8: 3 events cannot be read",
    ),
    "CPM188": FindingKind(
        what="The first steps of a run take longer than the others",
        why="A program compiles, tunes and fills caches in its first steps. Their cost is in all "
        "sums, and a longer run has the same number of them.",
        remedy="Use the other steps only, e.g. `--steps 3-`.",
        example="run.p8: ProfilerStep 0 takes 2.1 times the median of the 5 later steps, which "
        "scatter by 8 %; --steps 1- leaves it out",
    ),
    "CPM189": FindingKind(
        what="Only some steps of the runs are used",
        why="The cost of other steps, and of the program outside of steps, is in no sum.",
        remedy="Omit `--steps` to include all events.",
        example="run.p8: steps 3-, 9 in this run",
    ),
    "CPM190": FindingKind(
        what="Launches of kernels take longer than the kernels",
        why="The GPU is idle until the host has launched the next kernel, so a faster GPU gains "
        "nothing.",
        remedy="Join short kernels, use CUDA graphs, or launch larger batches.",
        example="bottleneck: launches take 95 ms (42 % of the run time), and their kernels 12 ms "
        "of the GPU; most for add below main/step/cudaLaunchKernel; the GPU is idle for 83 % of "
        "its time; p = 8",
    ),
    "CPM191": FindingKind(
        what="Communication is not hidden behind computation",
        why="The program waits while processes communicate.",
        remedy="Start the communication earlier, in parts, or send less. `cpmodel why` tells the "
        "law of a collective operation.",
        example="bottleneck: communication of GPUs takes 1.20 s (63 % of the run time), and 48 % "
        "of it overlaps no computation; p = 8",
    ),
    "CPM192": FindingKind(
        what="A training run loads data for a large part of its time",
        why="The step waits for its batch.",
        remedy="Load data in more processes, prefetch batches, or use a faster format.",
        example="bottleneck: data loading takes 310 ms (22 % of the run time); most in "
        "ProfilerStep/data; p = 8",
    ),
    "CPM193": FindingKind(
        what="Some processes compute longer than the others",
        why="All others wait for them in the next collective operation.",
        remedy="Balance the batches, or look for slow nodes and GPUs: `cpmodel show "
        "--per-process`.",
        example="bottleneck: the slowest process computes 1.33 times the mean in "
        "ProfilerStep/forward, which is 120 ms (11 % of the run time) more; p = 8",
    ),
}
