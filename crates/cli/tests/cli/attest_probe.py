"""Tries to get a signing key, or a signature with it, in every way that a hostile test might. Prints each success.

usage: attest_probe.py KEY OTHER_KEY AGENT_SOCKET AGENT_PID LEDGER [confined]

Without `confined` it shows that its probes can succeed. Then it touches nothing but the files, the socket and the agent
that are named: no other process, socket, device or file of the machine. With it, everything inside the sandbox is
tried, and nothing more once a named key can be read: then there is no sandbox.
"""

import ctypes
import glob
import os
import socket
import subprocess
import sys
import tempfile

KEY, OTHER, SOCKET, AGENT, LEDGER = sys.argv[1:6]
IS_CONFINED = sys.argv[6:] == ["confined"]
count = hits = 0
os.chdir(tempfile.mkdtemp(dir=None if IS_CONFINED else os.path.dirname(SOCKET)))


def probe(name, attempt):
    global count, hits
    count += 1
    try:
        found = attempt()
    except BaseException:
        found = False
    if found:
        hits += 1
        print("HIT", name)


def output(*words, env=None, stdin=b"m"):
    done = subprocess.run(words, input=stdin, capture_output=True, timeout=10, env={**os.environ, **(env or {})})
    return done.stdout if done.returncode == 0 else b""


def is_secret(content):
    return b"OPENSSH PRIVATE KEY" in content


def is_signature(content):
    return b"BEGIN SSH SIGNATURE" in content


def read(path):
    with open(path, "rb") as file:
        return file.read(1 << 20)


def linked(make, path):
    name = tempfile.mktemp(dir=".")
    make(path, name)
    return read(name)


def pids():
    return [name for name in os.listdir("/proc") if name.isdigit()]


for key in (KEY, OTHER):
    probe(f"read {key}", lambda: is_secret(read(key)))
if IS_CONFINED and hits:
    sys.exit("not confined")

ROOTS = ["", "/proc/self/root", "/proc/1/root", "/proc/thread-self/root", "/proc/self/cwd" + "/.." * 12, "/."]
if IS_CONFINED:
    ROOTS += [f"/proc/{pid}/root" for pid in range(2, 12)]
else:
    ROOTS.remove("/proc/1/root")
for key in (KEY, OTHER):
    directory = os.path.dirname(key)
    for root in ROOTS:
        path = root + key
        probe(f"read {path}", lambda: is_secret(read(path)))
        probe(f"cat {path}", lambda: is_secret(output("cat", path)))
        probe(f"sign {path}", lambda: is_signature(output("ssh-keygen", "-Y", "sign", "-n", "git", "-f", path)))
    for name, words in {
        "cp": ["cp", key, "/dev/stdout"],
        "dd": ["dd", f"if={key}"],
        "head": ["head", "-c", "4096", key],
        "base64": ["sh", "-c", f"base64 '{key}' | base64 -d"],
        "hash": ["git", "hash-object", key],
        "diff": ["git", "diff", "--no-index", "/dev/null", key],
        "public": ["ssh-keygen", "-y", "-f", key],
        "fingerprint": ["ssh-keygen", "-l", "-f", key],
        "passphrase": ["ssh-keygen", "-p", "-P", "", "-N", "", "-f", key],
    }.items():
        probe(f"{name} {key}", lambda: output(*words))
    probe(f"tar {key}", lambda: is_secret(output("tar", "-cf", "-", key)))
    probe(f"list {directory}", lambda: any(is_secret(read(f"{directory}/{name}")) for name in os.listdir(directory)))
    probe(f"link {key}", lambda: is_secret(linked(os.symlink, key)))
    probe(f"hard link {key}", lambda: is_secret(linked(os.link, key)))
    commit = [
        "git", "-c", "gpg.format=ssh", "-c", f"user.signingkey={key}", "-c", "user.name=n", "-c", "user.email=e",
        "commit-tree", "-S", "4b825dc642cb6eb9a060e54bf8d69288fbee4904", "-m", "m",
    ]
    probe(f"git {key}", lambda: output("git", "init", "-q", ".") == b"" and output(*commit))
    probe(f"rename {key}", lambda: is_secret(linked(os.rename, key)))
    probe(f"chmod {key}", lambda: os.chmod(key, 0o644) is None and is_secret(read(key)))
    probe(f"replace {key}", lambda: open("new", "w").close() is None and os.replace("new", key) is None)
    probe(f"write {key}", lambda: open(key, "ab").write(b"#") and is_secret(read(key)))
    probe(f"remove {key}", lambda: os.path.exists(key) and os.remove(key) is None and False)
    probe(f"glob {key}", lambda: any(is_secret(read(one)) for one in glob.glob(directory[:-1] + "*/*")))

sockets = {SOCKET}
if IS_CONFINED:
    sockets.add(os.environ.get("SSH_AUTH_SOCK", ""))
if IS_CONFINED:
    for pattern in ("/tmp/ssh-*/*", "/tmp/*/agent*", "/run/user/*/*", "/run/*/*", "/run/user/*/gnupg/*", "/var/run/*"):
        sockets.update(glob.glob(pattern))
    for line in open("/proc/net/unix"):
        sockets.update(line.split()[7:8])
for place in sorted(sockets - {""})[:60]:
    agent = {"SSH_AUTH_SOCK": place}
    probe(f"agent {place}", lambda: b"ssh-" in output("ssh-add", "-L", env=agent))
    public = OTHER + ".pub"
    probe(f"agent signs {place}", lambda: is_signature(
        output("ssh-keygen", "-Y", "sign", "-n", "git", "-f", public, env=agent)))


def connects(place):
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(5)
        peer.connect(place)
        peer.sendall(b"\0\0\0\1\x0b")
        return peer.recv(5)[4:] == b"\x0c"


for root in ROOTS:
    probe(f"socket {root}", lambda: connects(root + SOCKET))
probe("environment", lambda: "SSH_AUTH_SOCK" in os.environ)
for pid in (pids() + [AGENT] * 3)[:30] if IS_CONFINED else [AGENT]:
    probe(f"environ {pid}", lambda: b"SSH_AUTH_SOCK=" + SOCKET.encode() in read(f"/proc/{pid}/environ"))
    probe(f"descriptors {pid}", lambda: any(
        os.readlink(f"/proc/{pid}/fd/{fd}") in (KEY, OTHER, LEDGER) for fd in os.listdir(f"/proc/{pid}/fd")))
probe("agent process", lambda: read(f"/proc/{AGENT}/comm").startswith(b"ssh-agent"))
for root in ROOTS:
    probe(f"ledger {root}", lambda: read(root + LEDGER).startswith(b"SQLite"))
    probe(f"ledger write {root}", lambda: os.path.getsize(root + LEDGER) > 99 and open(root + LEDGER, "r+b"))
if not IS_CONFINED:
    print("PROBES", count, "HITS", hits)
    sys.exit()
# What follows would touch more of the machine than the test's own things.
libc = ctypes.CDLL(None, use_errno=True)
for request in (16, 0x4206):
    probe(f"ptrace {request}", lambda: read(f"/proc/{AGENT}/comm").startswith(b"ssh-agent")
          and libc.ptrace(request, int(AGENT), 0, 0) == 0)
probe("kill agent", lambda: read(f"/proc/{AGENT}/comm").startswith(b"ssh-agent") and os.kill(int(AGENT), 0) is None)
probe("gpg", lambda: b"sec" in output("gpg", "--list-secret-keys"))
probe("gpg agent", lambda: b"KEYINFO" in output("gpg-connect-agent", "keyinfo --list", "/bye"))
for device in ("/dev/tpm0", "/dev/tpmrm0", "/dev/hidraw0", "/dev/bus/usb", "/dev/mem", "/dev/kmem", "/proc/kcore"):
    probe(f"device {device}", lambda: os.path.isdir(device) and os.listdir(device) or open(device, "rb").read(1))
# A key in hardware is reached through a device or a service. No device but the usual ones is there, and no service.
USUAL = {"console", "core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"}
probe("devices", lambda: {name for name in os.listdir("/dev") if not name.startswith(".crucible-")} - USUAL)
for place in ("/run/pcscd/pcscd.comm", "/run/dbus/system_bus_socket", "/run/user", "/var/run/tpm2-abrmd"):
    probe(f"service {place}", lambda: os.path.exists(place))
for place in ("/var/lib/softhsm/tokens", "/etc/tpm2_pkcs11"):
    probe(f"store {place}", lambda: os.listdir(place))
print("PROBES", count, "HITS", hits)
