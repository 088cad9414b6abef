"""Options of the group may follow the command, and every mistake has one clear error."""

from __future__ import annotations

import click

from callpath_modeler.cli.group import cpmodel, with_global_options_first
from callpath_modeler.cli.settings import commands_of
from cells import cells


def moved(line):
    context = click.Context(cpmodel, info_name="cpmodel")
    return " ".join(with_global_options_first(context, line.split()))


@cells(
    ("given", "read"),
    [
        ("rank runs --target 64", "rank runs --target 64"),
        ("-q rank runs", "-q rank runs"),
        ("rank -q runs", "-q rank runs"),
        ("rank runs --color never --ascii", "--color never --ascii rank runs"),
        ("rank runs --color=never", "--color=never rank runs"),
        ("rank runs -qn 5", "-q rank runs -n 5"),
        ("rank runs -vin5", "-v rank runs -i -n5"),
        ("rank runs --select -q", "rank runs --select -q"),
        ("rank -- -q", "rank -- -q"),
        ("info --config runs -v", "-v info --config runs"),
        ("guidelines -q check runs", "-q guidelines check runs"),
        ("guidelines runs --rule -q -v", "-v guidelines runs --rule -q"),
        ("trace spec --config my.toml x.otf2", "--config my.toml trace spec x.otf2"),
        ("watch status h.db --no-progress", "--no-progress watch status h.db"),
    ],
)
def test_global_options_may_follow_the_command(given, read):
    assert moved(given) == read


def test_one_command_has_an_option_of_the_group_itself():
    of_group = {name for option in cpmodel.params for name in option.opts}
    commands = commands_of(click.Context(cpmodel, info_name="cpmodel"))
    both = {(each.name, name) for each in commands for option in each.params for name in option.opts
            if name in of_group}  # fmt: skip
    assert both == {("info", "--config")}


@cells(
    ("line", "error"),
    [
        ("rank runs --color", "Option '--color' requires an argument."),
        ("rank runs --color blue", "Invalid value for '--color': 'blue' is not one of"),
        ("rank runs --config none.toml", "none.toml: No such file"),
        ("rank runs -xq", "No such option '-x'."),
        ("rnk runs -q", "no command 'rnk'; did you mean 'rank'?"),
        ("trace spec runs --ignore-findings CPM9", "there is no finding 'CPM9'"),
    ],
)
def test_a_mistake_after_the_command_has_one_error(run, line, error):
    done = run(*line.split())
    done.fails(2, error)
    assert len(done.err.strip().splitlines()) == 2
