# SPDX-License-Identifier: Apache-2.0
"""One server of a testbed, kept running: its log, its restarts, and how it died."""
import os
import re
import signal
import subprocess
import threading
import time

RESTART_S = (1, 2, 4, 8)  # Waits before the first restarts; the last for all further ones.
STEADY_S = 30  # Who ran this long begins again with the first wait.
TAIL_BYTES = 16384
# Lines that tell why: klog's errors, containerd's, structured logs', Go's.
TELLING = re.compile(r'^[EF]\d{4} |level=(error|fatal)|"level":"(error|fatal)"|^panic:|^[Ee]rror|[Ff]ailed|cannot')

# Of the servers: nothing of the caller's, least of all the proxies; and none of them shall write to a home.
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/run/testbed",
               "LANG": "C.UTF-8"}


class Component:
    """Started by start(); restarted whenever it ends, until stop(). on_end(component) is called at every end
    that was not requested."""

    def __init__(self, name, argv, log, on_end, passed=(), environment=None):
        self.name = name
        self.argv = [str(word) for word in argv]
        self.log = log
        self.on_end = on_end
        self.passed = passed  # Descriptors it inherits.
        self.environment = environment or ENVIRONMENT
        self.restarts = 0
        self.ended = ""  # How it ended last, in words.
        self.since = None
        self.process = None
        self._wanted = threading.Event()
        self._changed = threading.Condition()

    @property
    def state(self):
        if not self._wanted.is_set():
            return "stopped"
        return "running" if self.process and self.process.poll() is None else "restarting"

    def start(self):
        with self._changed:
            if self._wanted.is_set():
                return
            self._wanted.set()
            self._spawn()
        threading.Thread(target=self._keep, daemon=True).start()

    def stop(self):
        """Kills it, as a crash would, and leaves it dead."""
        with self._changed:
            self._wanted.clear()
            self._changed.notify_all()
            if self.process and self.process.poll() is None:
                self.process.send_signal(signal.SIGKILL)
                self.process.wait()

    def signal(self, number):
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)

    def last_line(self):
        try:
            with open(self.log, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
                lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
        except OSError:
            lines = []
        telling = [line for line in lines[-40:] if TELLING.search(line)]
        return (telling or lines or ["it logged nothing"])[-1]

    def _spawn(self):
        self.since = time.time()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                            env=self.environment, cwd="/", pass_fds=self.passed,
                                            start_new_session=True)

    def _keep(self):
        attempt = 0
        while True:
            process = self.process
            status = process.wait()
            with self._changed:
                if not self._wanted.is_set() or self.process is not process:
                    return
            self.ended = f"{how_it_ended(status)}: {self.last_line()}"
            self.on_end(self)
            attempt = 0 if time.time() - self.since > STEADY_S else attempt
            with self._changed:
                self._changed.wait_for(lambda: not self._wanted.is_set(), RESTART_S[min(attempt, len(RESTART_S) - 1)])
                if not self._wanted.is_set() or self.process is not process:
                    return
                self.restarts += 1
                self._spawn()
            attempt += 1


def how_it_ended(status):
    return f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
