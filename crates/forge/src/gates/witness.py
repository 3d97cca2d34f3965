"""Tells how a run of pytest ended: what was collected, what came of each test, in how many of them the skill itself was run, and which
file it was imported from.

The word that signs what is told comes through the standard input, which is read and closed before any test is imported. What is told
goes to a descriptor that tests do not write to by accident. Whoever is given no word tells nothing.
"""

import json
import os
import sys
import threading

import pytest

MOST = 60
LONG = 400


def begin():
    said = b""
    while True:
        piece = os.read(0, 65536)
        if not piece:
            break
        said += piece
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    if not said:
        return None
    # pytest takes descriptor 1 for what tests print, but not yet.
    return [*said.decode().split("\n"), os.dup(1)]


def short(text):
    return str(text)[:LONG]


def told(told_by_us):
    word, module, out = told_by_us
    write = os.write
    dumps = json.dumps
    modules = sys.modules
    watch_here = sys.setprofile
    watch_threads = threading.setprofile
    counts = dict.fromkeys(("passed", "failed", "errors", "skipped", "xfailed", "xpassed"), 0)
    state = {"collected": 0, "finished": 0, "ran": 0, "exit": None, "module": None, "complaints": [], "left_out": []}

    def look():
        if state["module"] is None:
            file = getattr(modules.get(module), "__file__", None)
            if file:
                state["module"] = os.path.realpath(file)

    def complain(place, line, text):
        if len(state["complaints"]) < MOST:
            state["complaints"].append({"test": short(place), "line": line, "text": short(text)})

    def reason(report):
        # The line in the test itself, where there is one, rather than the place where it was raised.
        name = report.location[0]
        entries = getattr(getattr(report.longrepr, "reprtraceback", None), "reprentries", None) or []
        lines = [
            entry.reprfileloc.lineno
            for entry in entries
            if getattr(entry, "reprfileloc", None) is not None and entry.reprfileloc.path == name
        ]
        crash = getattr(report.longrepr, "reprcrash", None)
        text = crash.message if crash is not None else str(report.longrepr)
        first = text.strip().split("\n")
        return (lines[0] if lines else report.location[1] + 1, first[0])

    class Witness:
        @pytest.hookimpl(trylast=True)
        def pytest_collection_finish(self, session):
            state["collected"] = len(session.items)
            look()

        def pytest_collectreport(self, report):
            if report.failed:
                counts["errors"] += 1
                text = str(report.longrepr).strip().split("\n")
                complain(report.nodeid, None, text[-1])
            elif report.skipped:
                counts["skipped"] += 1
                state["left_out"].append(short(report.nodeid))

        @pytest.hookimpl(hookwrapper=True)
        def pytest_runtest_protocol(self, item):
            # The method of the module itself, however it is called; not one that a test put in its place.
            names = getattr(modules.get(module), "__dict__", None)
            seen = []

            def watch(frame, event, _given):
                if event == "call" and frame.f_code.co_name == "execute" and frame.f_globals is names:
                    seen.append(event)
                    watch_here(None)

            watch_threads(watch)
            watch_here(watch)
            try:
                yield
            finally:
                watch_here(None)
                watch_threads(None)
            state["ran"] += bool(seen)

        @pytest.hookimpl(trylast=True)
        def pytest_runtest_logreport(self, report):
            look()
            expected = hasattr(report, "wasxfail")
            if report.when == "teardown":
                state["finished"] += 1
            if report.failed:
                counts["failed" if report.when == "call" else "errors"] += 1
                line, text = reason(report)
                complain(report.nodeid, line, text)
            elif expected:
                if report.when == "call" or report.skipped:
                    counts["xfailed" if report.skipped else "xpassed"] += 1
                    state["left_out"].append(short(report.nodeid))
            elif report.skipped:
                counts["skipped"] += 1
                state["left_out"].append(short(report.nodeid))
            elif report.when == "call":
                counts["passed"] += 1

        @pytest.hookimpl(trylast=True)
        def pytest_sessionfinish(self, session, exitstatus):
            look()
            state["exit"] = int(exitstatus)

        @pytest.hookimpl(trylast=True)
        def pytest_unconfigure(self, config):
            state["left_out"] = state["left_out"][:MOST]
            text = dumps({**state, **counts})
            data = ("\n" + word + " " + text + "\n").encode("ascii")
            while data:
                data = data[write(out, data):]

    return Witness()


BEGUN = begin()


def pytest_configure(config):
    global BEGUN
    if BEGUN is not None:
        config.pluginmanager.register(told(BEGUN))
        BEGUN = None
