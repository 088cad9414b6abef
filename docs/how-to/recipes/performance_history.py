"""A ReFrame test that keeps the runs of a commit in a history, and fails if a call path is worse.

CPMODEL_COMMIT names the commit, and CPMODEL_HISTORY the history. CPMODEL_MEASURE is a script that
runs the program and writes the profiles into the directory that is its argument.
"""

import os
import shlex

import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class PerformanceHistory(rfm.RunOnlyRegressionTest):
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    sourcesdir = None
    executable = os.environ["CPMODEL_MEASURE"]
    executable_opts = ["runs"]

    @run_before("run")
    def keep_and_judge(self):
        commit = shlex.quote(os.environ["CPMODEL_COMMIT"])
        history = shlex.quote(os.environ["CPMODEL_HISTORY"])
        self.postrun_cmds = [
            f"cpmodel watch add {history} runs --commit {commit}",
            f"cpmodel watch status {history}; echo status $?",
        ]

    @sanity_function
    def no_call_path_is_worse(self):
        return sn.assert_found(r"^status 0$", self.stdout)
