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

    def misfit(value, place, depth):
        if depth > 64:
            return place + " is nested deeper than 64 levels"
        kind = type(value)
        if value is None or kind is bool:
            return None
        if kind is str:
            try:
                value.encode("utf-8")
            except UnicodeEncodeError:
                return place + " holds half a character"
            return None
        if kind is int:
            return None if -(2**63) <= value < 2**64 else place + " is a number beyond 64 bits"
        if kind is float:
            finite = value == value and value not in (float("inf"), float("-inf"))
            return None if finite else place + " is no finite number"
        if kind is list or kind is tuple:
            for index, item in enumerate(value):
                found = misfit(item, place + "/" + str(index), depth + 1)
                if found:
                    return found
            return None
        if kind is dict:
            for key, item in value.items():
                if type(key) is not str:
                    return place + " has a key that is no text"
                found = misfit(key, "a key of " + place, depth + 1)
                found = found or misfit(item, place + "/" + key[:40], depth + 1)
                if found:
                    return found
            return None
        return place + " is of the type " + kind.__name__[:80] + ", which JSON does not have"

    def text(value, most):
        try:
            made = str(value)
        except BaseException:
            made = "(it cannot be shown)"
        made = made.encode("utf-8", "replace").decode("utf-8", "replace")
        return made if len(made) <= most else made[:most] + "…"

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
            lines = "".join(shown.format()).splitlines()
            own = '  File "<string>"'
            kept, skipping = [], False
            for line in lines:
                if line.startswith("  File "):
                    skipping = line.startswith(own)
                elif not line.startswith("    "):
                    skipping = False
                if not skipping:
                    kept.append(line)
            return text("\n".join(kept), 8000)
        except BaseException:
            return ""

    try:
        package, skill = order["package"], order["skill"]
        module(package)
        module(package + ".skills")
        module(package + ".skills.base", order["base"], order["base_file"])
        made = module(order["module"], skill.encode("utf-8"), order["file"])
        result = getattr(made, order["class"])().execute(order["input"])
        if type(result) is not dict:
            tell("misfit", "the result is of the type " + type(result).__name__[:80] + "; it has to be a dict")
        wrong = misfit(result, "the result", 0)
        if wrong:
            tell("misfit", text(wrong, 400))
        tell("returned", result)
    except BaseException as raised:
        tell(
            "raised",
            {
                "kind": text(type(raised).__name__, 120),
                "message": text(raised, 2000),
                "traceback": trace(raised),
                "errno": error_number(raised),
            },
        )


main()
