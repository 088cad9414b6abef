"""Run a command and write its cost to a file.

python -I -S launch.py FILE COMMAND...

The system reports the largest resident set of a process including that of its parent at the fork.
This program is small and imports almost nothing, so the figure is that of the command.
"""

import os
import sys
import time


def main() -> None:
    file, *command = sys.argv[1:]
    start = time.perf_counter()
    child = os.fork()
    if not child:
        try:
            os.execvp(command[0], command)  # noqa: S606
        except OSError as cause:
            os.write(2, f"{command[0]}: {cause.strerror}\n".encode())
            os._exit(127)
    # Unlike the usage of all children, that of `wait4` is this child's alone.
    _, status, usage = os.wait4(child, 0)
    wall = time.perf_counter() - start
    with open(file, "w", encoding="ascii") as out:  # noqa: PTH123 # loads nothing
        numbers = usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * 1024
        print(*numbers, os.waitstatus_to_exitcode(status), file=out)


main()
