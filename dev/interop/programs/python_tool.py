"""The tool API through Debian's python3-pmix: attaches to the server of a process, asks, publishes, spawns, leaves."""

import os
import sys

import pmix


def check(status, what):
    if status != pmix.PMIX_SUCCESS:
        sys.stderr.write(f"{what}: status {status}\n")
        sys.stderr.flush()
        os._exit(1)


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def say(words):
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


tool = pmix.PMIxTool()
say(f"library {text(tool.get_version())}")
pid = {"key": pmix.PMIX_SERVER_PIDINFO, "flags": 0, "value": int(sys.argv[1]), "val_type": pmix.PMIX_PID}
status, me = tool.init([pid])
check(status, "init")
say(f"tool {text(me['nspace'])}")

status, answer = tool.query([{"keys": [pmix.PMIX_QUERY_NAMESPACES], "qualifiers": []}])
check(status, "query")
say("jobs " + " ".join(text(info["value"]) for info in answer))

data = {"key": "python.tool", "flags": 0, "value": "published", "val_type": pmix.PMIX_STRING}
check(tool.publish([data]), "publish")
status, found = tool.lookup([{"key": "python.tool"}], [])
check(status, "lookup")
say("found " + text(found[0]["value"]))

# An empty "info" of the program is garbage to the bindings: it is left out.
nohup = {"key": pmix.PMIX_NOHUP, "flags": 0, "value": True, "val_type": pmix.PMIX_BOOL}
app = {"cmd": "/bin/sh", "argv": ["sh", "-c", f"echo spawned > {sys.argv[2]}"], "env": [], "maxprocs": 1}
status, child = tool.spawn([nohup], [app])
check(status, "spawn")
say(f"child {text(child)}")
check(tool.finalize(), "finalize")
say("left")
# The bindings leave a thread behind that the interpreter would wait for.
os._exit(0)
