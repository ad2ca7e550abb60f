"""A server through Debian's python3-pmix: python_server.py COUNT PROGRAM [ARGUMENT ...]

Starts the program COUNT times as the clients of a job, and prints their requests and exit codes.
"""

import os
import subprocess
import sys

import pmix

seen = set()


def check(status, what):
    if status not in (pmix.PMIX_SUCCESS, pmix.PMIX_OPERATION_SUCCEEDED):
        sys.stderr.write(f"{what}: status {status}\n")
        os._exit(1)


def connected(proc):
    seen.add("connected")
    return pmix.PMIX_SUCCESS


def finalized(proc):
    seen.add("finalized")
    return pmix.PMIX_SUCCESS


count = int(sys.argv[1])
server = pmix.PMIxServer()
hostname = os.uname().nodename
info = [
    {"key": pmix.PMIX_SERVER_NSPACE, "value": "python-server", "val_type": pmix.PMIX_STRING},
    {"key": pmix.PMIX_SERVER_RANK, "value": 0, "val_type": pmix.PMIX_PROC_RANK},
]
check(server.init(info, {"clientconnected": connected, "clientfinalized": finalized}), "init")
print("server on", server.get_version(), file=sys.stderr)
status, nodes = server.generate_regex([hostname])
check(status, "generate_regex")
status, ranks = server.generate_ppn([",".join(str(rank) for rank in range(count))])
check(status, "generate_ppn")
job = [
    {"key": pmix.PMIX_NODE_MAP, "value": nodes, "val_type": pmix.PMIX_REGEX},
    {"key": pmix.PMIX_PROC_MAP, "value": ranks, "val_type": pmix.PMIX_REGEX},
    {"key": pmix.PMIX_JOB_SIZE, "value": count, "val_type": pmix.PMIX_UINT32},
    {"key": pmix.PMIX_UNIV_SIZE, "value": count, "val_type": pmix.PMIX_UINT32},
]
check(server.register_nspace("python-job", count, job), "register_nspace")
environments = []
for rank in range(count):
    proc = {"nspace": "python-job", "rank": rank}
    check(server.register_client(proc, os.geteuid(), os.getegid()), "register_client")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PMIX_")}
    check(server.setup_fork(proc, environment), "setup_fork")
    environments.append(environment)
# Only after all are registered: the module holds Python's lock while it waits for the library, which waits for that lock when it
# reports a client.
clients = [subprocess.Popen(sys.argv[2:], env=environment) for environment in environments]
codes = [client.wait() for client in clients]
for rank in range(count):
    server.deregister_client({"nspace": "python-job", "rank": rank})
server.deregister_nspace("python-job")
check(server.finalize(), "finalize")
print("server:", *sorted(seen), "codes", *codes, flush=True)
# The module's own thread would keep the process alive.
os._exit(any(codes))
