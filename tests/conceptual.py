"""Recogniser and interpreter of the part of coNCePTuaL 1.5 that generated programs use."""

from __future__ import annotations

import operator
import re

_TOKEN = re.compile(
    r"\s+|#[^\n]*|(?P<text>\"(?:[^\"\\\n]|\\.)*\")|(?P<number>\d+)|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<sign>\.\.\.|/\\|\\/|<>|<=|>=|\*\*|[-+*/=<>(){},.])"
)
_VERBS = {
    "send": "send", "sends": "send", "receive": "receive", "receives": "receive",
    "await": "await", "awaits": "await", "multicast": "multicast", "multicasts": "multicast",
    "reduce": "reduce", "reduces": "reduce", "synchronize": "synchronize",
    "synchronizes": "synchronize", "compute": "compute", "computes": "compute",
}  # fmt: skip
_COMPARISONS = {"=": operator.eq, "<>": operator.ne, "<": operator.lt, ">": operator.gt,
                "<=": operator.le, ">=": operator.ge}  # fmt: skip
_WORDS = {"doubleword": 8, "doublewords": 8, "integer": 4, "integers": 4}
_KEYWORDS = {*_VERBS, "tasks", "task", "all", "such", "that", "then", "for", "each", "in", "is",
             "if", "otherwise", "mod", "xor", "to", "from", "using", "tag", "a", "byte", "message",
             "unsuspecting", "asynchronously", "completion", "even", "odd", "divides", "with",
             "require", "assert", "repetitions", "let", "while"}  # fmt: skip


class UnknownError(Exception):
    """A text that is no program of the language."""


def tokens(source):
    place, found = 0, []
    while place < len(source):
        match = _TOKEN.match(source, place)
        if match is None:
            raise UnknownError(f"{source[place : place + 20]!r}")
        if match.lastgroup:
            text = match[0]
            found.append((match.lastgroup, text if match.lastgroup == "text" else text.lower()))
        place = match.end()
    return found


class Parser:
    """A parser by descent; statements and formulas are functions of an environment."""

    def __init__(self, source):
        self._tokens, self._at = [*tokens(source), ("end", "")], 0
        self.statements = 0

    def peek(self, ahead=0):
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)][1]

    def kind(self):
        return self._tokens[self._at][0]

    def next(self):
        self._at += 1
        return self._tokens[self._at - 1][1]

    def take(self, *words):
        """Take one of some words, or fail."""
        if self.peek() not in words:
            raise UnknownError(f"{self.peek()!r} instead of {words}")
        return self.next()

    def given(self, *words):
        """Take words if they come next."""
        if all(self.peek(k) == word for k, word in enumerate(words)):
            self._at += len(words)
            return True
        return False

    def program(self):
        body = []
        while self.kind() != "end":
            if self.given("require"):
                for word in ("language", "version"):
                    self.take(word)
                if self.next() != '"1.5"':
                    raise UnknownError("another version")
            elif self.given("assert", "that"):
                self.next()
                self.take("with")
                condition = self.condition()
                body.append(("assert", condition))
            else:
                body.append(self.statement())
            self.statements += 1
            self.given(".")
        return body

    def statement(self):
        if self.given("{"):
            body = []
            while not self.given("}"):
                body.append(self.statement())
                self.statements += 1
                if self.peek() != "}":
                    self.take("then")
                    if self.peek() == "}":
                        raise UnknownError("nothing after THEN")
            return ("body", body)
        if self.given("for", "each"):
            name = self.name()
            self.take("in")
            values = self.ranges()
            return ("each", name, values, self.statement())
        if self.given("for"):
            count = self.expression()
            self.take("repetitions")
            return ("repeat", count, self.statement())
        return self.action()

    def name(self):
        if self.kind() != "word" or self.peek() in _KEYWORDS:
            raise UnknownError(f"{self.peek()!r} is no name")
        return self.next()

    def action(self):
        who = self.tasks()
        is_started = self.given("asynchronously")
        verb = _VERBS.get(self.next(), "nothing")
        if is_started and verb not in {"send", "receive"}:
            raise UnknownError("ASYNCHRONOUSLY")
        found = getattr(self, f"after_{verb}")()
        return (verb, who, *((is_started,) if verb in {"send", "receive"} else ()), *found)

    def after_nothing(self):
        raise UnknownError("no verb")

    def after_send(self):
        message = self.message()
        self.take("to")
        is_explicit = self.given("unsuspecting")
        return message, is_explicit, self.tasks()

    def after_receive(self):
        message = self.message()
        self.take("from")
        return message, self.tasks()

    def after_await(self):
        self.take("completion")
        return ()

    def after_synchronize(self):
        return ()

    def after_multicast(self):
        message = self.message()
        self.take("to")
        return message, self.tasks()

    def after_reduce(self):
        count = self.expression()
        width = _WORDS[self.take(*_WORDS)]
        return count, width, self.tasks() if self.given("to") else None

    def after_compute(self):
        self.take("for")
        duration = self.expression()
        self.take("microseconds", "microsecond")
        return (duration,)

    def message(self):
        self.take("a", "an")
        size = self.expression()
        self.take("byte")
        self.take("message")
        tag = self.expression() if self.given("using", "tag") else lambda _env: 0
        return size, tag

    def tasks(self):
        if self.given("all", "tasks"):
            is_named = self.kind() == "word" and self.peek() not in _KEYWORDS
            return ("all", self.name() if is_named else None)
        if self.given("task"):
            return ("one", self.expression())
        self.take("tasks")
        name = self.name()
        self.take("such")
        self.take("that")
        return ("such", name, self.condition())

    def ranges(self):
        parts = [self.range()]
        while self.peek() == "," and self.peek(1) == "{":
            self.next()
            parts.append(self.range())
        return lambda env: [value for part in parts for value in part(env)]

    def range(self):
        self.take("{")
        items = [self.expression()]
        last = None
        while self.given(","):
            if self.given("..."):
                self.take(",")
                last = self.expression()
                break
            items.append(self.expression())
        self.take("}")

        def values(env):
            listed = [item(env) for item in items]
            if last is None:
                return listed
            step = listed[1] - listed[0] if len(listed) > 1 else 1
            return list(range(listed[0], last(env) + 1, step))

        return values

    def condition(self):
        found = self.conjunction()
        while self.given("\\/"):
            found = _either(found, self.conjunction())
        return found

    def conjunction(self):
        found = self.comparison()
        while self.given("/\\"):
            found = _both(found, self.comparison())
        return found

    def comparison(self):
        left = self.expression()
        if self.given("is", "even"):
            return lambda env: left(env) % 2 == 0
        if self.given("is", "odd"):
            return lambda env: left(env) % 2 == 1
        if self.given("is", "in"):
            values = self.ranges()
            return lambda env: left(env) in values(env)
        if self.given("divides"):
            right = self.expression()
            return lambda env: right(env) % left(env) == 0
        compare = _COMPARISONS[self.take(*_COMPARISONS)]
        right = self.expression()
        return lambda env: compare(left(env), right(env))

    def expression(self):
        found = self.product()
        while self.peek() in {"+", "-", "xor"}:
            apply = {"+": operator.add, "-": operator.sub, "xor": operator.xor}[self.next()]
            found = _applied(apply, found, self.product())
        if self.given("if"):
            condition = self.condition()
            self.take("otherwise")
            return _either_of(condition, found, self.expression())
        return found

    def product(self):
        found = self.factor()
        while self.peek() in {"*", "/", "mod"}:
            apply = {"*": operator.mul, "/": operator.floordiv, "mod": operator.mod}[self.next()]
            found = _applied(apply, found, self.factor())
        return found

    def factor(self):
        if self.given("("):
            found = self.expression()
            self.take(")")
            return found
        if self.given("-"):
            inner = self.factor()
            return lambda env: -inner(env)
        if self.kind() == "number":
            value = int(self.next())
            return lambda _env: value
        name = self.name()
        return lambda env: env[name]


def _both(a, b):
    return lambda env: a(env) and b(env)


def _either(a, b):
    return lambda env: a(env) or b(env)


def _applied(apply, a, b):
    return lambda env: apply(a(env), b(env))


def _either_of(condition, a, b):
    return lambda env: a(env) if condition(env) else b(env)


class Run:
    """The events of each task of a program."""

    def __init__(self, source, processes):
        parser = Parser(source)
        self._processes = processes
        self.events = [[] for _ in range(processes)]
        body = parser.program()
        self.statements = parser.statements
        self._run(("body", body), {"num_tasks": processes})

    def _members(self, who, env):
        """Yield tasks, each with the environment of its variable."""
        if who[0] == "one":
            rank = who[1](env)
            # The language drops such messages without a word.
            if not 0 <= rank < self._processes:
                raise UnknownError(f"task {rank}")
            yield rank, env
            return
        for rank in range(self._processes):
            own = {**env, who[1]: rank} if who[1] else env
            if who[0] == "all" or who[2](own):
                yield rank, own

    def _run(self, node, env):
        getattr(self, f"_{node[0]}")(env, *node[1:])

    def _body(self, env, nodes):
        for node in nodes:
            self._run(node, env)

    def _assert(self, env, condition):
        if not condition(env):
            raise UnknownError("the assertion does not hold")

    def _each(self, env, name, values, body):
        for value in values(env):
            self._run(body, {**env, name: value})

    def _repeat(self, env, count, body):
        for _ in range(count(env)):
            self._run(body, env)

    def _send(self, env, who, is_started, message, is_explicit, to):
        sent = [
            (rank, peer, message[0](own), message[1](own))
            for rank, own in self._members(who, env)
            for peer, _ in self._members(to, own)
        ]
        for rank, peer, size, tag in () if is_explicit else sent:
            self.events[peer].append(("receive", rank, size, tag, is_started))
        for rank, peer, size, tag in sent:
            self.events[rank].append(("send", peer, size, tag, is_started))

    def _receive(self, env, who, is_started, message, source):
        for rank, own in self._members(source, env):
            for peer, _ in self._members(who, own):
                size, tag = message[0](own), message[1](own)
                self.events[peer].append(("receive", rank, size, tag, is_started))

    def _await(self, env, who):
        for rank, _ in self._members(who, env):
            self.events[rank].append(("await",))

    def _synchronize(self, env, who):
        self._together(env, who, lambda members: ("synchronize", members))

    def _multicast(self, env, who, message, to):
        senders = [rank for rank, _ in self._members(who, env)]
        receivers = [rank for rank, _ in self._members(to, env)]
        for rank in sorted({*senders, *receivers}):
            told = ("multicast", tuple(senders), tuple(receivers), message[0](env))
            self.events[rank].append(told)

    def _reduce(self, env, who, count, width, target):
        root = None if target is None else [rank for rank, _ in self._members(target, env)]
        self._together(
            env, who, lambda members: ("reduce", members, count(env) * width, root and root[0])
        )

    def _together(self, env, who, event):
        members = tuple(rank for rank, _ in self._members(who, env))
        for rank in members:
            self.events[rank].append(event(members))

    def _compute(self, env, who, duration):
        for rank, own in self._members(who, env):
            self.events[rank].append(("compute", duration(own)))
