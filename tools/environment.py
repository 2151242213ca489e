"""Make .venv with everything the book needs, or stop with one clear line and leave nothing behind.

Runs on the reader's own Python, whatever its version, so it uses nothing newer than Python 3.6.
"""

import fcntl
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OLDEST, NEWEST = (3, 11), (3, 14)
DISK_GB = 9
EXTRAS = "book,test,pdf,bench,corpus,cluster"


def problem(version, free_gb):
    """What keeps this machine from holding the environment, or None."""
    if not OLDEST <= tuple(version[:2]) < NEWEST:
        span = "%d.%d to %d.%d" % (OLDEST[0], OLDEST[1], NEWEST[0], NEWEST[1] - 1)
        return "this is Python %d.%d, the book needs %s; name one with `make PYTHON=python3.11 …`" % (
            version[0],
            version[1],
            span,
        )
    if free_gb < DISK_GB:
        return "%.1f GB of disk are free here, the environment needs %d GB" % (free_gb, DISK_GB)
    return None


def build(venv):
    """Create the environment, or bring an existing one up to date; return what went wrong in one line, or None.

    A new environment that fails is removed whole; one that was there before is never removed.
    """
    log = venv + ".log"
    new = not os.path.exists(os.path.join(venv, "bin", "python"))
    pip = [
        os.path.join(venv, "bin", "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "-c",
        "constraints.txt",
        "-e",
        ".[%s]" % EXTRAS,
    ]
    with open(log, "w") as out:
        for command in ([[sys.executable, "-m", "venv", "--clear", venv]] if new else []) + [pip]:
            if subprocess.call(command, cwd=ROOT, stdout=out, stderr=out):
                if new:
                    shutil.rmtree(venv, ignore_errors=True)
                return "`%s` failed (no network, or no room?); the whole story is in %s" % (" ".join(command[1:4]), log)
    os.remove(log)
    return None


def main():
    venv = os.path.join(ROOT, sys.argv[1])
    new = not os.path.exists(os.path.join(venv, "bin", "python"))
    wrong = problem(sys.version_info, shutil.disk_usage(ROOT).free / 1e9 if new else DISK_GB)
    if wrong is None:
        with open(venv + ".lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                wrong = "another make is just making it; wait for that one and start again"
            else:
                print(
                    "%s the environment in %s …" % ("Making (about 3 minutes and 7 GB, once)" if new else "Updating", sys.argv[1])
                )
                sys.stdout.flush()
                wrong = build(venv)
    if wrong is not None:
        sys.stderr.write("environment: %s\n" % wrong)
        return 1
    open(os.path.join(venv, ".ready"), "w").close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
