#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes one operator or constant of src/model and src/task at a time and asks whether a test notices.

A mutant is caught if a test fails, crashes or hangs, survives if all pass, and does not count if it does not compile or
is listed, with a reason, in equivalent.txt. Works on copies of the sources, one for each job if they are many, in build/mutation.

  mutate.py                      all mutants: more than a day
  mutate.py --sample 16 --seed 1 those 16 whose digests come first: mostly the same ones after a change elsewhere
  mutate.py --list               what would be changed
"""
import argparse
import collections
import concurrent.futures
import hashlib
import math
import os
import pathlib
import queue
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("src/model", "src/task")
COPIED = ("src", "cmake", "tests", "scenarios", "policies", "examples", "docs")
MODULES = "base;nn;cluster;model;task;scenario;policy;sim"
# In the order in which they are built and asked; the first that notices ends the round.
TESTS = {
    "src/model": ("src/model_test", "src/task_test", "src/scenario_test", "src/sim_test", "src/policy_test"),
    "src/task": ("src/task_test", "src/sim_test", "src/policy_test"),  # model and scenario do not know of task.
}
PAGE = "tests/observation_doc"
REQUIRED = 0.90
WORTH_A_BUILD = 16  # Mutants: fewer are tried sooner than a second copy is compiled.

# clang-format puts a space on both sides of a binary operator, and never inside template brackets.
SWAPS = {
    " + ": [" - "], " - ": [" + "], " * ": [" / "], " / ": [" * "],
    " += ": [" -= "], " -= ": [" += "], " *= ": [" /= "],
    " < ": [" <= ", " >= "], " <= ": [" < ", " > "], " > ": [" >= ", " < "], " >= ": [" > ", " <= "],
    " == ": [" != "], " != ": [" == "], " && ": [" || "], " || ": [" && "], " & ": [" | "],
    "std::max": ["std::min"], "std::min": ["std::max"],
}
OPERATOR = re.compile(r"(?<=\S)(?: (?:\+|-|\*|/|\+=|-=|\*=|<|<=|>|>=|==|!=|&&|\|\||&) (?=\S))|std::(?:max|min)(?=[(<])")
CONSTANT = re.compile(r"(?<![\w.'])(\d+\.\d*(?:[eE][+-]?\d+)?|\d+(?:[eE][+-]?\d+)?)([fF]?)(?![\w.'])")
# Lines that state what never happens, or only reserve memory, or are no code.
SKIPPED = re.compile(r"\bCHECK(_\w+)?\(|static_assert|\.reserve\(|^\s*#|^\s*(using|template)\b|^} *//|^namespace")

Mutant = collections.namedtuple("Mutant", "path line column begin end old new text")


def mask(source):
    """The source with comments and literals blanked, positions kept."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", "\x01", m.group()), source)


def change_constant(digits, suffix):
    """Neighbours of a constant: one more and, above zero, one less; twice and half for fractions."""
    if re.fullmatch(r"\d+", digits):
        value = int(digits)
        return [str(value + 1) + suffix] + ([str(value - 1) + suffix] if value > 0 else [])
    value = float(digits)
    if value == 0:
        return ["1.0" + suffix]
    return [repr(value * 2) + suffix, repr(value / 2) + suffix]


def mutants_of(path):
    source = (TOP / path).read_text(encoding="utf-8")
    position = 0
    for number, (line, shown) in enumerate(zip(mask(source).split("\n"), source.split("\n")), 1):
        if not SKIPPED.search(line):
            for match in OPERATOR.finditer(line):
                for new in SWAPS[match.group()]:
                    yield Mutant(path, number, match.start(), position + match.start(), position + match.end(),
                                 match.group(), new, shown.strip())
            for match in CONSTANT.finditer(line):
                for new in change_constant(*match.groups()):
                    yield Mutant(path, number, match.start(), position + match.start(), position + match.end(),
                                 match.group(), new, shown.strip())
        position += len(line) + 1


def all_mutants():
    for folder in FOLDERS:
        for file in sorted((TOP / folder).glob("*.cc")):
            if not file.name.endswith("_test.cc"):
                yield from mutants_of(str(file.relative_to(TOP)))


def read_equivalents():
    """Lines 'path | source line | old -> new | reason'; '#' begins a comment."""
    entries = {}
    path = pathlib.Path(__file__).with_name("equivalent.txt")
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split(" | ")]
        if len(parts) < 4 or " -> " not in parts[-2] or not parts[-1]:
            sys.exit(f"{path}:{number}: expected 'path | source line | old -> new | reason'")
        old, new = (side.strip() for side in parts[-2].split(" -> "))
        entries[(parts[0], " | ".join(parts[1:-2]), old, new)] = number
    return entries


def key(mutant):
    return (mutant.path, mutant.text, mutant.old.strip(), mutant.new.strip())


def where(mutant):
    return f"{mutant.path}:{mutant.line}: {mutant.old.strip()} -> {mutant.new.strip()}"


class Build:
    """A copy of the sources with a build tree of its own, so that no other work is disturbed."""

    def __init__(self, number, jobs):
        self.jobs = jobs  # While it tries mutants.
        self.tree = TOP / f"build/mutation/{number}"
        self.build = self.tree / "build/release"  # As in a checkout: it takes from the cache what was compiled there.

    def prepare(self, jobs):
        self.tree.mkdir(parents=True, exist_ok=True)
        wanted = {"CMakeLists.txt"}
        for folder in COPIED:
            for file in (TOP / folder).rglob("*"):
                if file.is_file() and "__pycache__" not in file.parts:
                    wanted.add(str(file.relative_to(TOP)))
        for name in wanted:
            source, copy = TOP / name, self.tree / name
            if not copy.exists() or copy.read_bytes() != source.read_bytes():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, copy)
        for file in list(self.tree.rglob("*")):
            if file.is_file() and self.build not in file.parents and str(file.relative_to(self.tree)) not in wanted:
                file.unlink()
        self.call(["cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                   "-DRUDDERFISH_MUTATED=model;task", f"-DRUDDERFISH_ONLY_MODULES={MODULES}"], 600)
        built = self.make([*TESTS["src/model"], PAGE], jobs)
        if built.returncode != 0:
            sys.stdout.write(built.stdout.decode(errors="replace")[-4000:])
            sys.exit("mutation: the unchanged sources do not build")

    def call(self, command, timeout, cpu_limit=None):
        """`cpu_limit`: seconds of CPU time, which do not depend on what else the machine does."""
        limit = None if cpu_limit is None else lambda: resource.setrlimit(resource.RLIMIT_CPU, (cpu_limit, cpu_limit))
        return subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=timeout, check=False, cwd=self.tree, preexec_fn=limit)

    def make(self, tests, jobs=None):
        return self.call(["ninja", "-C", self.build, f"-j{jobs or self.jobs}", *(pathlib.Path(test).name for test in tests)], 3600)

    def measure(self):
        """How long each test takes; much more, and it hangs."""
        self.limits = {}
        for test in TESTS["src/model"]:
            began = time.monotonic()
            done = self.call([self.build / test, "--gtest_brief=1"], 1200)
            if done.returncode != 0:
                sys.stdout.write(done.stdout.decode(errors="replace"))
                sys.exit(f"mutation: {test} fails on the unchanged sources")
            self.limits[test] = int(10 + 5 * (time.monotonic() - began))
        self.page = self.call([self.build / PAGE], 60).stdout

    def outcome(self, mutant):
        """'survives', 'does not compile', or who noticed."""
        for test in TESTS[str(pathlib.Path(mutant.path).parent)]:
            if self.make([test]).returncode != 0:
                return "does not compile"
            try:
                status = self.call([self.build / test, "--gtest_fail_fast", "--gtest_brief=1"], 1200,
                                   self.limits[test]).returncode
            except subprocess.TimeoutExpired:
                status = -signal.SIGXCPU  # It waits, and not for the processor.
            if status != 0:
                return test + (" (hangs)" if status in (-signal.SIGXCPU, -signal.SIGKILL) else "")
        self.make([PAGE])
        return PAGE if self.call([self.build / PAGE], 60).stdout != self.page else "survives"

    def try_mutant(self, mutant):
        file = self.tree / mutant.path
        source = file.read_text(encoding="utf-8")
        try:
            file.write_text(source[:mutant.begin] + mutant.new + source[mutant.end:], encoding="utf-8")
            return self.outcome(mutant)
        finally:
            file.write_text(source, encoding="utf-8")


def try_all(mutants, jobs):
    """Yields (mutant, outcome) as they come."""
    builds = queue.SimpleQueue()
    count = max(1, min(jobs, len(mutants) // WORTH_A_BUILD))
    for number in range(count):
        build = Build(number, jobs // count)
        build.prepare(jobs)
        build.measure()
        builds.put(build)

    def try_one(mutant):
        build = builds.get()
        try:
            return mutant, build.try_mutant(mutant)
        finally:
            builds.put(build)

    with concurrent.futures.ThreadPoolExecutor(max_workers=count) as pool:
        for done in concurrent.futures.as_completed([pool.submit(try_one, mutant) for mutant in mutants]):
            yield done.result()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, help="try only so many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", help="where PATH:LINE: OLD -> NEW contains this; any of several")
    parser.add_argument("--jobs", type=int, default=2, help="so many mutants at a time")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()

    equivalents = read_equivalents()
    mutants = list(all_mutants())
    unknown = set(equivalents) - {key(mutant) for mutant in mutants}
    for entry in sorted(unknown):
        print(f"equivalent.txt:{equivalents[entry]}: no such mutant any more: {' | '.join(entry)}")
    if unknown:
        sys.exit(1)
    mutants = [mutant for mutant in mutants if key(mutant) not in equivalents
               and (not options.only or any(part in where(mutant) for part in options.only))]
    if options.sample is not None:
        digest = lambda m: hashlib.sha256(f"{options.seed} {key(m)} {m.column}".encode()).digest()
        mutants = sorted(mutants, key=digest)[:options.sample]
    if options.list:
        for mutant in mutants:
            print(f"{where(mutant)}   {mutant.text}")
        print(f"{len(mutants)} mutants")
        return 0

    caught, survivors, invalid = 0, [], 0
    for number, (mutant, outcome) in enumerate(try_all(mutants, options.jobs), 1):
        print(f"[{number}/{len(mutants)}] {where(mutant)}: {outcome}", flush=True)
        if outcome == "survives":
            survivors.append(f"{where(mutant)}   {mutant.text}")
        elif outcome == "does not compile":
            invalid += 1
        else:
            caught += 1
    counted = caught + len(survivors)
    if survivors:
        print("survived:")
        for survivor in survivors:
            print(f"  {survivor}")
    share = caught / counted if counted else 1.0
    print(f"{caught} of {counted} mutants caught ({share:.0%})" + (f", {invalid} did not compile" if invalid else ""))
    if options.sample is None:
        return 0 if share >= REQUIRED else 1
    # A sample cannot show 90 %; it fails if it would be improbable (1 in 40) were 90 % of all caught.
    improbable = sum(math.comb(counted, k) * REQUIRED**k * (1 - REQUIRED) ** (counted - k) for k in range(caught + 1))
    return 0 if improbable >= 0.025 else 1


if __name__ == "__main__":
    sys.exit(main())
