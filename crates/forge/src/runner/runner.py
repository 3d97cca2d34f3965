import os
import sys


def main():
    import json
    import types

    # What the skill prints goes to standard error; the answer has a descriptor of its own.
    answer = os.dup(1)
    os.dup2(2, 1)
    order = json.loads(sys.stdin.buffer.read())
    sys.path.extend(order["site_packages"])

    def tell(kind, value):
        data = json.dumps({kind: value}, allow_nan=False, separators=(",", ":")).encode("ascii")
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BaseException:
                pass
        while data:
            data = data[os.write(answer, data) :]
        os._exit(0)

    def module(name, source=None, file=None):
        made = types.ModuleType(name)
        sys.modules[name] = made
        if source is None:
            made.__path__ = []
            made.__package__ = name
            return made
        made.__package__ = name.rpartition(".")[0]
        made.__file__ = file
        exec(compile(source, file, "exec", dont_inherit=True), made.__dict__)
        return made

    # Nothing is cut here but at the bound of all texts: whoever reads the answer takes the secrets out first.
    def text(value):
        try:
            made = str(value)
        except BaseException:
            made = "(it cannot be shown)"
        return made[: order["longest"]].encode("utf-8", "replace").decode("utf-8", "replace")

    def refuse(place, what):
        names = []
        while place:
            place, name = place
            names.append(name)
        tell("misfit", {"place": text("/".join(reversed(names))), "what": text(what)})

    # A place is the one above it and a name.
    def fit(value, place, depth):
        if depth > 64:
            refuse(place, "is nested deeper than 64 levels")
        kind = type(value)
        if value is None or kind is bool:
            return
        if kind is str:
            try:
                value.encode("utf-8")
            except UnicodeEncodeError:
                refuse(place, "holds half a character")
        elif kind is int:
            if not -(2**63) <= value < 2**64:
                refuse(place, "is a number beyond 64 bits")
        elif kind is float:
            if value != value or value in (float("inf"), float("-inf")):
                refuse(place, "is not a finite number")
        elif kind is list or kind is tuple:
            for index, item in enumerate(value):
                fit(item, (place, str(index)), depth + 1)
        elif kind is dict:
            for key, item in value.items():
                if type(key) is not str:
                    refuse(place, "has a key that is no text")
                fit(key, (place, key), depth + 1)
                fit(item, (place, key), depth + 1)
        else:
            refuse(place, "is of the type " + text(kind.__name__) + ", which JSON does not have")

    def error_number(raised):
        for _ in range(8):
            if raised is None:
                return None
            if isinstance(raised, OSError) and type(raised.errno) is int:
                return raised.errno if -4096 < raised.errno < 4096 else None
            raised = raised.__cause__ or raised.__context__
        return None

    def trace(raised):
        import traceback

        try:
            shown = traceback.TracebackException.from_exception(raised, limit=-12, compact=True)
            lines = "".join(shown.format()).split("\n")
            own = '  File "<string>"'
            kept, skipping = [], False
            for line in lines:
                if line.startswith("  File "):
                    skipping = line.startswith(own)
                elif not line.startswith("    "):
                    skipping = False
                if not skipping:
                    kept.append(line)
            return text("\n".join(kept).rstrip("\n"))
        except BaseException:
            return ""

    # A skill that only reads has no place for SQLite's temporary files: they stay in memory.
    def keep_temporaries_in_memory():
        import sqlite3

        connect = sqlite3.connect

        def connect_in_memory(*arguments, **named):
            base = connect(*arguments, **named)
            base.execute("PRAGMA temp_store = MEMORY").close()
            return base

        sqlite3.connect = connect_in_memory

    try:
        package, skill = order["package"], order["skill"]
        if "sqlite3" in skill:
            try:
                keep_temporaries_in_memory()
            except ImportError:
                pass
        module(package)
        module(package + ".skills")
        module(package + ".skills.base", order["base"], order["base_file"])
        made = module(order["module"], skill.encode("utf-8"), order["file"])
        result = getattr(made, order["class"])().execute(order["input"])
        top = (None, "the result")
        if type(result) is not dict:
            refuse(top, "has to be a dict; it is of the type " + text(type(result).__name__))
        fit(result, top, 0)
        tell("returned", result)
    except BaseException as raised:
        tell(
            "raised",
            {
                "kind": text(type(raised).__name__),
                "message": text(raised),
                "traceback": trace(raised),
                "errno": error_number(raised),
            },
        )


main()
