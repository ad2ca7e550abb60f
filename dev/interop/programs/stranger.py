"""A server of another user: accepts connections on some ports and prints what it receives. It never answers."""
import os
import select
import socket
import sys

quiet, waiting = 3, 2
doors = []
for number in range(quiet + waiting):
    door = socket.create_server(("127.0.0.1", 0), backlog=64)
    address = "127.0.0.1:%d" % door.getsockname()[1]
    print("port", door.getsockname()[1])
    # Clients of ours try this socket first.
    beside = socket.socket(socket.AF_UNIX)
    beside.bind("\0phalanx/" + address)
    beside.listen(64)
    # The last ones accept no connections.
    if number < quiet:
        doors += [door, beside]
    else:
        globals()["kept_%d" % number] = (door, beside)
print("ready", os.getuid(), flush=True)

peers = []
while True:
    ready, _, _ = select.select([sys.stdin] + doors + peers, [], [])
    for one in ready:
        if one is sys.stdin:
            sys.exit()
        if one in doors:
            peers.append(one.accept()[0])
            continue
        try:
            heard = one.recv(1 << 16)
        except OSError:
            heard = b""
        if heard:
            print("heard", len(heard), heard[:200], flush=True)
        else:
            peers.remove(one)
