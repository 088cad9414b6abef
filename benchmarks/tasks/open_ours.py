"""Open an HPCToolkit database in the browser; print the cost until the first screen.

python open_ours.py DATABASE
"""

import asyncio
import gc
import json
import sys
import time

from callpath_modeler.analysis.answer import answer_at
from callpath_modeler.analysis.answer_bands import AnswerInputs
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.assemble import ReadOptions
from callpath_modeler.studies.loading import LoadOptions
from callpath_modeler.studies.study import Study
from callpath_modeler.tui.app import Browser
from callpath_modeler.tui.services import BrowserServices
from callpath_modeler.tui.session import Session


def main() -> None:
    gc.set_threshold(10_000)  # as `cpmodel` does
    imported = time.process_time()
    options = LoadOptions(read=ReadOptions(locations=Reduction.MEAN))
    fitted, target = Study(sys.argv[1], options).at()
    read = time.process_time()
    session = Session(answer_at(AnswerInputs(fitted), target, bands=False))

    def nothing(*_: object) -> str:
        return ""

    given = BrowserServices(nothing, nothing, lambda text, _: float(text), *[nothing] * 5)
    app = Browser(session, given)
    costs = {}

    async def browse() -> None:
        async with app.run_test(size=(160, 50)):
            costs["shown"] = time.process_time()

    asyncio.run(browse())
    tree = fitted.experiment.tree
    report = {"import": imported, "read": read - imported, "opened": costs["shown"] - imported}
    print(json.dumps({**report, "call paths": len(tree), "total": session.forecast.total[0]}))


if __name__ == "__main__":
    main()
