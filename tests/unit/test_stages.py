from __future__ import annotations

from callpath_modeler.support import front_ends


class Heard:
    def __init__(self):
        self.told, self.took = [], []

    def progress(self, stage, *, noted):
        assert not noted
        return lambda done, total: self.told.append((stage, done, total))

    def ended(self, stage, seconds):
        self.took.append((stage, seconds >= 0))


def heard_by(listener, work):
    front_ends.listen(listener)
    try:
        return work()
    finally:
        front_ends.listen(None)


def test_a_stage_tells_its_seconds():
    heard = Heard()

    def work():
        with front_ends.stage("read"):
            pass

    heard_by(heard, work)
    assert heard.took == [("read", True)]


def test_a_map_tells_how_many_rows_are_done():
    heard, parts = Heard(), ["ab", "c", "def"]
    made = heard_by(heard, lambda: list(front_ends.counted_map("fit", map, 6)(str.upper, parts)))
    assert made == ["AB", "C", "DEF"]
    assert heard.told == [("fit", n, 6) for n in (0, 2, 3, 6)]


def test_a_map_takes_parts_on_demand():
    taken = []

    def parts():
        for part in ("a", "b", "c"):
            taken.append(part)
            yield part

    def first():
        return next(iter(front_ends.counted_map("fit", map, 3)(str.upper, parts())))

    assert heard_by(Heard(), first) == "A"
    assert taken == ["a"]


def test_without_a_listener_the_map_is_unchanged():
    assert front_ends.counted_map("fit", map, 3) is map
