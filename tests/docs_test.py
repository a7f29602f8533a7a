#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of README.md and docs/*.md, follows their links, and compares their pictures with the report's.

Blocks fenced as `sh` hold commands; in blocks fenced as `console` these stand after "$ ", the rest is their output. The
blocks of one page run in order, in one temporary folder that has scenarios/, experiments/, policies/ and tests/ of this tree. A
command must succeed; "# exits N" at its end says otherwise; `evaluate` may also say "not better" (3). Commands that are
not `rudderfish` or `curl` (./demo, git, cmake) are not run: ./test and .ci/run do, but a script they name must exist. A
command that ends in & is a server: it is up before the next command runs, and must end well on SIGTERM after the page. Its
ports are replaced by free ones.

So that this takes seconds, --time is cut to RUDDERFISH_DOCS_TIME (default 2s), --episodes to 20 and --steps to 20000.
"""
import os
import pathlib
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as ElementTree

TOP = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = pathlib.Path(os.environ.get("RUDDERFISH", TOP / "build/release/rudderfish")).resolve()
TIME = os.environ.get("RUDDERFISH_DOCS_TIME", "2s")
PAGES = [TOP / "README.md", TOP / "CONTRIBUTING.md", *sorted((TOP / "docs").rglob("*.md"))]


def commands_of(page):
    """(line number, command, exit status) of every command of a page."""
    commands = []
    fence, pending = None, ""
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            fence = None if fence is not None else line[3:].strip()
            continue
        if fence not in ("sh", "console"):
            continue
        if fence == "console" and not pending:
            if not line.startswith("$ "):
                continue
            line = line[2:]
        pending += line.strip()
        if pending.endswith("\\"):
            pending = pending[:-1] + " "
            continue
        command, pending = pending, ""
        status = re.search(r"\s+# exits (\d+)\s*$", command)
        command = re.sub(r"\s+#( .*)?$", "", command)
        if command and not command.startswith("#"):
            commands.append((number, command, int(status.group(1)) if status else 0))
    return commands


def shorten(command):
    command = re.sub(r"--time[ =]\S+", f"--time {TIME}", command)
    for option, limit in (("--episodes", 20), ("--steps", 20000)):
        command = re.sub(rf"{option}[ =](\d+)", lambda m, o=option, k=limit: f"{o} {min(int(m.group(1)), k)}", command)
    return command


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Servers:
    """Those of one page, and the ports they were given in place of those in the text."""

    def __init__(self):
        self.running = []
        self.ports = {}

    def with_free_ports(self, command):
        if " serve " in command and "--listen" not in command:
            command = command.replace(" serve reach", " serve reach --listen 127.0.0.1:5000")
        return re.sub(r"127\.0\.0\.1:(\d+)",
                      lambda m: f"127.0.0.1:{self.ports.setdefault(m.group(1), free_port())}", command)

    def start(self, command, folder, environment):
        words = shlex.split(command)[:-1]  # Without &.
        process = subprocess.Popen(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        self.running.append((command, process))
        port = int(re.search(r"127\.0\.0\.1:(\d+)", command).group(1))
        for _ in range(600):
            with socket.socket() as probe:
                if process.poll() is not None or probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.05)

    def stop(self):
        """What did not end well."""
        bad = []
        for command, process in self.running:
            process.terminate()
            try:
                said, _ = process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                said, _ = process.communicate()
            if process.returncode != 0:
                bad.append(f"{command}\n{said.decode(errors='replace')}")
        self.running = []
        return bad


class Docs(unittest.TestCase):
    def run_page(self, page):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("scenarios", "experiments", "policies", "tests"):
                (pathlib.Path(folder) / name).symlink_to(TOP / name)
            programs = pathlib.Path(folder) / "bin"
            programs.mkdir()
            (programs / "rudderfish").symlink_to(PROGRAM)
            environment = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}", HOME=folder, NO_COLOR="1")
            servers = Servers()
            self.addCleanup(servers.stop)
            for number, command, status in commands_of(page):
                place = f"{page.relative_to(TOP)}:{number}: {command}"
                words = shlex.split(command, comments=True)
                if words[0].startswith("./"):
                    self.assertTrue(os.access(TOP / words[0], os.X_OK), f"{place}: no such script")
                if words[0] not in ("rudderfish", "curl"):
                    continue
                command = servers.with_free_ports(command)
                if words[-1] == "&":
                    servers.start(command, folder, environment)
                    continue
                if words[0] == "curl":
                    command = command.replace("curl ", "curl --fail ", 1)
                done = subprocess.run(["bash", "-c", shorten(command)], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False)
                expected = {status, 3} if words[1] == "evaluate" and status == 0 else {status}  # Training was cut short.
                self.assertIn(done.returncode, expected, f"{place}\n{done.stdout.decode(errors='replace')}")
            self.assertEqual(servers.stop(), [])

    def test_every_command_of_readme_runs(self):
        self.assertTrue(any(command.startswith("rudderfish") for _, command, _ in commands_of(PAGES[0])))
        self.run_page(PAGES[0])

    def test_every_command_of_the_other_pages_runs(self):
        for page in PAGES[1:]:
            with self.subTest(page=page.name):
                self.run_page(page)

    def test_every_page_says_what_it_is_for_and_who_needs_it(self):
        for page in sorted((TOP / "docs").glob("*.md")):
            title, opening = page.read_text(encoding="utf-8").split("\n\n")[:2]
            self.assertRegex(title, r"^# [^\n]+$", page.name)
            self.assertRegex(opening, r"(?s)^This page .*\b(is for|for)\b", page.name)

    def test_readme_fits_on_a_few_screens(self):
        lines = PAGES[0].read_text(encoding="utf-8").splitlines()
        self.assertLessEqual(len(lines), 180)
        # Commands and their output, and the texts of pictures, are not wrapped.
        self.assertEqual([line for line in lines if len(line) > 130 and line[0] not in "$#<|"], [])

    @staticmethod
    def anchors_of(page):
        """Of its headings, as GitHub names them."""
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        headings = re.findall(r"^#+ +(.*?) *$", text, flags=re.M)
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}

    def test_every_link_leads_somewhere(self):
        dead = []
        for page in PAGES:
            for link in re.findall(r"\]\(([^)\s]+)[^)]*\)|(?:src|href)=\"([^\"]+)\"", page.read_text(encoding="utf-8")):
                target, _, anchor = (link[0] or link[1]).partition("#")
                if "://" in target:
                    continue
                file = page.parent / target if target else page
                if not file.exists() or (anchor and anchor not in self.anchors_of(file)):
                    dead.append(f"{page.relative_to(TOP)}: {link[0] or link[1]}")
        self.assertEqual(dead, [])

    @staticmethod
    def words_of(picture):
        """Its caption and the labels of its axes: what is the same for every run."""
        root = ElementTree.parse(picture).getroot()
        return [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")
                if element.get("class") in ("caption", "explanation", "axis-label")]

    def test_pictures_are_those_of_a_report(self):
        kept = sorted((TOP / "docs/images").glob("*.svg"))
        self.assertLess(sum(picture.stat().st_size for picture in kept), 150_000)
        for picture in kept:
            self.assertTrue(any(f"images/{picture.name}" in page.read_text(encoding="utf-8") for page in PAGES), picture.name)
            self.assertNotRegex(picture.read_text(encoding="utf-8"), r"var\(|url\(|<script|href=|@import")
        with tempfile.TemporaryDirectory() as folder:
            scenario = TOP / "scenarios/continuum-7x21.yaml"
            for command in (["train", scenario, "-d", "run", "--steps", "140000", "-q"],
                            ["evaluate", scenario, "--policy", "stay,greedy,learned=run", "--episodes", "20", "-q",
                             "--report", "report.html"]):
                done = subprocess.run([PROGRAM, *command], cwd=folder, stdout=subprocess.DEVNULL, check=False)
                self.assertIn(done.returncode, (0, 3), command)
            subprocess.run([sys.executable, TOP / "docs/images/extract.py", "report.html", "-o", "."], cwd=folder, check=True)
            fresh = sorted(pathlib.Path(folder).glob("*.svg"))
            self.assertEqual([picture.name for picture in fresh], [picture.name for picture in kept])
            for old, new in zip(kept, fresh):
                self.assertEqual(self.words_of(old), self.words_of(new), old.name)

    def test_pictures_of_scaling_are_those_that_plot_draws(self):
        kept = sorted((TOP / "docs/images/scaling").glob("*.svg"))
        self.assertTrue(kept)
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([PROGRAM, "evaluate", TOP / "scenarios/redis.yaml", "--task", "scale", "--load", "ramp",
                                   "--policy", "hold,hpa:cpu=60", "--episodes", "1", "-o", "json", "-q"],
                                  stdout=subprocess.PIPE, check=False)
            self.assertIn(done.returncode, (0, 3))
            (pathlib.Path(folder) / "e.json").write_bytes(done.stdout)
            for picture in kept:
                self.assertLess(picture.stat().st_size, 50_000)
                subprocess.run([PROGRAM, "plot", "e.json", "--figure", picture.stem, "-o", "f.svg", "-q"], cwd=folder, check=True)
                old, new = ([word for word in self.words_of(file) if word and "episode" not in word]
                            for file in (picture, pathlib.Path(folder) / "f.svg"))
                self.assertEqual(old, new, picture.name)

    def test_help_names_every_command_of_readme(self):
        words = {shlex.split(command)[1] for _, command, _ in commands_of(PAGES[0])
                 if command.startswith("rudderfish ")}
        text = subprocess.run([PROGRAM, "help"], stdout=subprocess.PIPE, check=True).stdout.decode()
        for word in sorted(words):
            self.assertRegex(text, rf"(?m)^\s+{re.escape(word)}\b")


if __name__ == "__main__":
    unittest.main()
