#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes for ctest's -I the numbers of a build's tests, without the long ones that compute.

  short_cases.py BUILD REPORT SECONDS OUTPUT [ctest argument...]

Left out are cases of the programs in COMPUTING that took more than SECONDS when they last ran:
REPORT is what ctest --output-junit wrote about the run of another build. A case that is not in it
stays. The arguments are those that ctest will be given beside -I, because it counts only the tests
that they let pass. Prints how many cases were left out.
"""
import json
import re
import subprocess
import sys
import xml.etree.ElementTree


# What is long in others waits for a server or a clock, and stays.
COMPUTING = re.compile(
    r"/(nn|model|task|policy|sim|learn|scenario|evaluation|report|cli|contract)_test$")


def without_parameter(name):
    """GoogleTest shows the bytes of a parameter that it cannot print, and they differ between builds."""
    return name.split("  # ")[0]


def main():
    build, report, limit, output, *chosen = sys.argv[1:]
    cases = xml.etree.ElementTree.parse(report).getroot().iter("testcase")
    long = {
        without_parameter(case.get("name"))
        for case in cases
        if float(case.get("time") or 0) > float(limit)
    }
    command = ["ctest", "--test-dir", build, "--show-only=json-v1", *chosen]
    listed = subprocess.run(command, check=True, capture_output=True, text=True)
    tests = json.loads(listed.stdout)["tests"]
    numbers = [
        str(at)
        for at, test in enumerate(tests, 1)
        if without_parameter(test["name"]) not in long
        or not COMPUTING.search(test.get("command", [""])[0])
    ]
    with open(output, "w", encoding="utf-8") as file:
        file.write(",".join([numbers[0], numbers[0], "1", *numbers[1:]]) + "\n")
    print(len(tests) - len(numbers))


if __name__ == "__main__":
    main()
