"""A rank that sends hand-made bytes to its server.

usage: hostile.py MISCHIEF FRIENDS

Prints the server's reaction in one line. Then it creates the file `begin` in the directory INTEROP_MEETING, which makes
the other ranks (pmix_bystander) start their work, and stays until each of them has left a file there as well.
Encodings follow docs/wire.md: flexible integers, buffers without descriptions.
"""

import os
import resource
import socket
import struct
import sys
import time

NSPACE = os.environ["PMIX_NAMESPACE"]
MEETING = os.environ["INTEROP_MEETING"]
RANK = int(os.environ["PMIX_RANK"])
HOST, PORT = os.environ["PMIX_SERVER_URI41"].split(";")[1][len("tcp4://"):].rsplit(":", 1)

# Commands and types, as docs/wire.md numbers them.
REQ, COMMIT, FENCE, GET, FINALIZE, PUBLISH, LOOKUP = 0, 2, 3, 4, 5, 6, 7
STRING, INFO, DATA_ARRAY = 3, 24, 39


def connection():
    sock = socket.create_connection((HOST, int(PORT)))
    sock.settimeout(60)
    return sock


def text(value):
    return value.encode() + b"\0"


def hello(nspace=NSPACE, rank=RANK, flag=0, codec="v41", store="hash", security="native", kind=1, credential=None):
    if credential is None:
        credential = struct.pack("=II", os.geteuid(), os.getegid())
    body = text(security) + struct.pack(">I", len(credential)) + credential + bytes([flag])
    body += text(nspace) + struct.pack(">I", rank) + text("5.0.0") + text(codec) + bytes([kind]) + text(store)
    return struct.pack("=iIII", -1, 0xFFFFFFFF, len(body), 0) + body


def receive(sock, count):
    data = b""
    while len(data) < count:
        piece = sock.recv(count - len(data))
        if not piece:
            raise ConnectionError("closed")
        data += piece
    return data


def connected():
    sock = connection()
    sock.sendall(hello())
    status, _ = struct.unpack(">iI", receive(sock, 8))
    if status != 0:
        raise ConnectionError(f"status {status}")
    return sock


def integer(value):
    """An unsigned flexible integer."""
    groups = bytearray()
    while True:
        if len(groups) == 8:
            groups.append(value & 0xFF)
            return bytes(groups)
        groups.append((value & 0x7F) | (0x80 if value > 0x7F else 0))
        value >>= 7
        if not value:
            return bytes(groups)


def one(encoded):
    """A pack call of one value: the count, zigzag, then the value."""
    return integer(2) + encoded


def string(value):
    return integer(2 * (len(value) + 1)) + text(value)


def message(sock, tag, payload):
    sock.sendall(struct.pack(">iIII", 0, tag, len(payload), 0) + payload)


def reply(sock):
    _, tag, length, _ = struct.unpack(">iIII", receive(sock, 16))
    return tag, receive(sock, length)


def request(sock, command, payload=b"", tag=101):
    message(sock, tag, one(bytes([command])) + payload)
    answered, data = reply(sock)
    return f"answered {len(data)} bytes" if answered == tag else f"tag {answered}"


def outcome(sock):
    """The server's reaction to a connection that it should reject."""
    try:
        data = sock.recv(65536)
    except socket.timeout:
        return "left open"
    except ConnectionError:
        return "closed"
    return f"answered {len(data)} bytes" if data else "closed"


def status_of(data):
    """The status at the start of a reply: count, then zigzag."""
    value, shift = 0, 0
    for byte in data[1:]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            break
    return -(value >> 1) - 1 if value & 1 else value >> 1


def garbage():
    sock = connection()
    sock.sendall(bytes(range(256)) * 64)
    return outcome(sock)


def huge_hello():
    sock = connection()
    sock.sendall(struct.pack("=iIII", -1, 0xFFFFFFFF, 0x7FFFFFFF, 0))
    return outcome(sock)


def half_hello():
    """Half a handshake and then nothing: the server may wait, but must not make others wait."""
    sock = connection()
    sock.sendall(hello()[:40])
    keep.append(sock)
    return "sent half"


def silence():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    for _ in range(1000):
        keep.append(connection())
    return "opened 1000"


def wrong_codec():
    sock = connection()
    sock.sendall(hello(codec="v99"))
    return outcome(sock)


def wrong_security():
    sock = connection()
    sock.sendall(hello(security="trust-me"))
    return outcome(sock)


def unknown_nspace():
    sock = connection()
    sock.sendall(hello(nspace="somebody-else"))
    return outcome(sock)


def unknown_rank():
    sock = connection()
    sock.sendall(hello(rank=4711))
    return outcome(sock)


def unknown_flag():
    sock = connection()
    sock.sendall(hello(flag=200))
    return outcome(sock)


def foreign_credential():
    sock = connection()
    sock.sendall(hello(credential=struct.pack("=II", os.geteuid() + 1, os.getegid())))
    return outcome(sock)


def honest():
    sock = connection()
    sock.sendall(hello())
    return outcome(sock)


def replayed_credential():
    """The credential that the rank itself has sent, replayed from another place."""
    sock = connection()
    sock.sendall(hello(credential=bytes.fromhex(os.environ["INTEROP_CREDENTIAL"])))
    return outcome(sock)


def huge_frame():
    sock = connected()
    sock.sendall(struct.pack(">iIII", 0, 101, 0xFFFFFFF0, 0) + b"x" * 4096)
    return outcome(sock)


def unknown_command():
    sock = connected()
    message(sock, 101, one(bytes([250])))
    _, data = reply(sock)
    return f"status {status_of(data)}"


def unknown_type():
    """A value of type 4000 in a commit."""
    sock = connected()
    pair = one(string("key") + integer(4000) + b"whatever")
    bucket = one(bytes([1]) + integer(len(pair)) + pair)
    message(sock, 101, one(bytes([COMMIT])) + one(bytes([1])) + bucket)
    _, data = reply(sock)
    return f"status {status_of(data)}"


def many_elements():
    """A publish that announces 2^40 infos, and an info whose array announces 2^40 elements."""
    sock = connected()
    message(sock, 101, one(bytes([PUBLISH])) + one(integer(os.geteuid())) + one(integer(1 << 40)))
    _, data = reply(sock)
    first = status_of(data)
    array = string("key") + integer(0) + integer(DATA_ARRAY) + integer(INFO) + integer(1 << 40)
    message(sock, 102, one(bytes([PUBLISH])) + one(integer(os.geteuid())) + one(integer(1)) + one(array))
    _, data = reply(sock)
    return f"status {first} and {status_of(data)}"


def deep_nesting():
    """Arrays of arrays, a hundred thousand deep."""
    sock = connected()
    info = string("key") + integer(0) + integer(DATA_ARRAY) + (integer(DATA_ARRAY) + integer(1)) * 100000
    message(sock, 101, one(bytes([PUBLISH])) + one(integer(os.geteuid())) + one(integer(1)) + one(info))
    _, data = reply(sock)
    return f"status {status_of(data)}"


def truncated():
    sock = connected()
    message(sock, 101, one(bytes([GET])) + integer(2) + integer(2 * 200) + b"short")
    _, data = reply(sock)
    return f"status {status_of(data)}"


def unread_replies():
    """Requests the job data repeatedly and never reads an answer."""
    sock = connected()
    sock.setblocking(False)
    payload = one(bytes([REQ]))
    frame = struct.pack(">iIII", 0, 101, len(payload), 0) + payload
    sent = 0
    try:
        while sent < 1 << 26:
            sent += sock.send(frame * 1000)
    except (BlockingIOError, ConnectionError):
        pass
    keep.append(sock)
    return "stopped listening"


def finalize_twice():
    sock = connected()
    request(sock, REQ)
    first = request(sock, FINALIZE, tag=102)
    try:
        second = request(sock, FINALIZE, tag=103)
    except ConnectionError:
        second = "closed"
    return f"{first}, then {second}"


def second_connection():
    """The same rank connects again while its first connection is open, and leaves again."""
    first, second = connected(), connected()
    keep.extend([first, second])
    answers = [request(sock, REQ) for sock in (second, first)]
    answers.append(request(second, FINALIZE, tag=102))
    second.close()
    answers.append(request(first, REQ, tag=103))
    return "both served" if all(answer.startswith("answered") for answer in answers) else str(answers)


def connection_flood():
    """The same rank keeps connecting until the server refuses it."""
    while True:
        try:
            keep.append(connected())
        except ConnectionError as refusal:
            return f"{refusal} after {len(keep)}"


keep = []
verdict = globals()[sys.argv[1]]()
print(f"{sys.argv[1]}: {verdict}", flush=True)
open(os.path.join(MEETING, "begin"), "w").close()
# Connections stay open while the others work.
while len(os.listdir(MEETING)) < 1 + int(sys.argv[2]):
    time.sleep(0.005)
