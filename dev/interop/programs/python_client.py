"""The client API through Debian's python3-pmix: init, get, put, commit, fence, get, finalize."""

import os
import sys

import pmix


def check(status, what):
    if status != pmix.PMIX_SUCCESS:
        sys.stderr.write(f"{what}: status {status}\n")
        os._exit(1)


client = pmix.PMIxClient()
status, me = client.init([])
check(status, "init")
nspace, rank = me["nspace"], me["rank"]

status, size = client.get({"nspace": nspace, "rank": pmix.PMIX_RANK_WILDCARD}, pmix.PMIX_JOB_SIZE, [])
check(status, "get of the job size")
size = size["value"]

check(client.put(pmix.PMIX_GLOBAL, f"python-{rank}", {"value": f"value of {rank}", "val_type": pmix.PMIX_STRING}), "put")
check(client.commit(), "commit")
collect = [{"key": pmix.PMIX_COLLECT_DATA, "flags": 0, "value": True, "val_type": pmix.PMIX_BOOL}]
check(client.fence([{"nspace": nspace, "rank": pmix.PMIX_RANK_WILDCARD}], collect), "fence")
for peer in range(size):
    status, value = client.get({"nspace": nspace, "rank": peer}, f"python-{peer}", [])
    check(status, f"get from rank {peer}")
    text = value["value"]
    text = text.decode() if isinstance(text, bytes) else text
    if text != f"value of {peer}":
        sys.stderr.write(f"rank {peer} gave {value}\n")
        os._exit(1)
check(client.finalize([]), "finalize")

sys.stdout.write(f"rank {rank} of {size}: python3-pmix is right\n")
sys.stdout.flush()
# The bindings leave a thread behind, for which the interpreter would wait.
os._exit(0)
