"""The tool API through Debian's python3-pmix: attaches to the server of a process, queries, publishes, spawns, pulls, pushes, leaves."""

import os
import sys
import time

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


def yes(key):
    return {"key": key, "flags": 0, "value": True, "val_type": pmix.PMIX_BOOL}


tool = pmix.PMIxTool()
version = text(tool.get_version())
say(f"library {version}")
# A push without a callback, the only form in the bindings, never returns in 4.2.2.
pushes = version.startswith("Phalanx")
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

# An empty "info" of the program becomes garbage in the bindings: it is left out. Where they set the directory themselves, its name must be ASCII.
how = [yes(pmix.PMIX_NOHUP)]
if pushes:
    how.append({"key": pmix.PMIX_FWD_STDIN, "flags": 0, "value": 0, "val_type": pmix.PMIX_PROC_RANK})
script = "read line; echo got $line > \"$0.new\"; mv \"$0.new\" \"$0\""
app = {"cmd": "/bin/sh", "argv": ["sh", "-c", script, sys.argv[2]], "env": [], "maxprocs": 1, "cwd": "/"}
status, child = tool.spawn(how, [app])
check(status, "spawn")
say(f"child {text(child)}")
if pushes:
    # The bindings always send eight bytes.
    check(tool.iof_push([{"nspace": child, "rank": 0}], {"bytes": "python!\n", "size": 8}, []), "push")

pulled = []
take = lambda number, channel, source, data, info: pulled.append(data["bytes"])
stdout = 2
status, _ = tool.iof_pull([{"nspace": sys.argv[3], "rank": 0}], stdout, [yes(pmix.PMIX_IOF_COPY)], take)
check(status, "pull")
while b"tick\n" not in b"".join(pulled):
    time.sleep(0.005)
say(f"pulled {b''.join(pulled)[:4].decode()}")
check(tool.finalize(), "finalize")
say("left")
# The bindings leave a thread behind, for which the interpreter would wait.
os._exit(0)
