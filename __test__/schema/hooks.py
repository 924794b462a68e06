"""Duty: what Schemathesis cannot read in the document: CBOR, `Accept`, polls that wait, and what the
database of run.mjs has."""

import collections
import itertools
import os
import re

import schemathesis

WAIT_MS_MAX = 20
# A duration as a text.
DURATION = re.compile(r"(\d+(\.\d+)?(ms|s|m|h|d))+")

# As in run.mjs: the dead letters of `letters` have the numbers from 1 on, the messages of `mail` the next
# ones, those of `kept`, which no request consumes, the next ones, and that of `ended`, which has a result, the next one.
MESSAGES = 300
# As in run.mjs: the schedules s0, s1, … of `mail`.
SCHEDULES = 20
LINE = b'{"key":[{"type":"string","value":"entry"}],"value":{"type":"number","value":1}}\n'
PRESENT = {"key": '["entry",42n]', "keys": '[["entry"],["entry",42n]]', "prefix": "entry", "queue": "mail"}

forms = itertools.count()
lines = itertools.count()
# Of each queue: two operations do not get the same message.
numbers = collections.defaultdict(itertools.count)
# Of each operation, so that one does not depend on how many requests another one has sent.
turns = collections.defaultdict(itertools.count)


@schemathesis.serializer("application/cbor")
def cbor(_context, value):
    return value if isinstance(value, bytes) else str(value).encode()


@schemathesis.serializer("application/x-ndjson")
def ndjson(_context, value):
    """Any text, and an entry in half of the texts."""
    return LINE if isinstance(value, str) and next(lines) % 2 == 0 else str(value).encode()


@schemathesis.hook
def before_call(_context, case, **_kwargs):
    """Asks for each form of an answer in turn, waits shortly where a poll would wait for long, and
    asks for what is there in half of the requests that are as documented."""
    ok = case.operation.definition.raw["responses"].get("200", {})
    offered = list(ok.get("content", {}))
    if offered and "Accept" not in (case.headers or {}):
        case.headers = {**(case.headers or {}), "Accept": offered[next(forms) % len(offered)]}
    query = dict(case.query or {})
    wait = str(query.get("wait"))
    if wait.isdecimal() and WAIT_MS_MAX < int(wait) <= 60_000:
        query["wait"] = WAIT_MS_MAX
    if DURATION.fullmatch(wait):
        query["wait"] = f"{WAIT_MS_MAX}ms"
    if case.meta and case.meta.generation.mode.is_positive and next(turns[case.operation.label]) % 2 == 0:
        query |= {name: value for name, value in PRESENT.items() if name in query}
        if "path" in (case.path_parameters or {}) and case.method == "GET":
            case.path_parameters = {**case.path_parameters, "path": "entry"}
        if "id" in (case.path_parameters or {}):
            queue, first, count = ("kept", 1 + 2 * MESSAGES, MESSAGES)
            if "/dlq/" in case.path:
                queue, first = ("letters", 1)
            if case.path.endswith(("/result", "/progress")):
                queue, first, count = ("ended", 1 + 3 * MESSAGES, 1)
            number = first + next(numbers[queue]) % count
            case.path_parameters = {**case.path_parameters, "id": number}
            query["queue"] = queue
        if case.path.endswith("/queue/schedules/{name}"):
            case.path_parameters = {"name": f"s{next(numbers['schedules']) % SCHEDULES}"}
            query["queue"] = "mail"
            if case.method == "PUT":
                case.body = {"value": 1, "every": 86_400_000}
        if case.path.endswith("/search"):
            if case.method == "GET":
                query |= {"prefix": "text", "query": "word"}
            else:
                case.body = {"prefix": ["text"], "query": "word"}
        if case.path.endswith("/indexes") and case.method == "POST":
            case.body = {"prefix": ["entry"], "fields": ["name"]}
    if query:
        case.query = query


@schemathesis.hook
def after_call(_context, case, response):
    """Tells run.mjs what was answered."""
    with open(os.environ["ANSWERS"], "a", encoding="utf-8") as answers:
        answers.write(f"{response.status_code} {case.operation.label}\n")
