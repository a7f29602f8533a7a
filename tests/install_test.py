#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `cmake --install` puts into a prefix: a program that finds its scenarios and policies from any folder, and completion.

RUDDERFISH names the program in its build folder; default: build/release/rudderfish.
"""
import os
import pathlib
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = pathlib.Path(os.environ.get("RUDDERFISH", TOP / "build/release/rudderfish")).resolve()


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.prefix = pathlib.Path(holder.name) / "prefix"
        cls.elsewhere = pathlib.Path(holder.name) / "elsewhere"
        cls.elsewhere.mkdir()
        subprocess.run(["cmake", "--install", PROGRAM.parent, "--prefix", cls.prefix], check=True, stdout=subprocess.DEVNULL)

    def ask(self, *words):
        done = subprocess.run([self.prefix / "bin/rudderfish", *words], cwd=self.elsewhere, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_installed_program_finds_scenarios_and_policies_from_any_folder(self):
        shipped = {path.stem for path in (TOP / "scenarios").glob("*.yaml")}
        listed = self.ask("scenario", "list")
        for name in shipped:
            self.assertIn(name, listed)
        self.assertIn("continuum-7x21", self.ask("scenario", "show", "continuum-7x21"))

    def test_the_examples_of_the_docs_are_installed_without_what_runs_leave(self):
        examples = self.prefix / "share/rudderfish/examples"
        self.assertTrue((examples / "continuum/rudderfish.yaml").is_file())
        self.assertEqual([*examples.rglob("*.db*"), *examples.rglob("*.sock")], [])

    def test_completion_of_bash_is_a_script_that_bash_reads(self):
        script = self.prefix / "share/bash-completion/completions/rudderfish"
        done = subprocess.run(["bash", "-c", f"source {script}; complete -p rudderfish"], stdout=subprocess.PIPE, check=True)
        self.assertIn(b"_rudderfish", done.stdout)
        for path in ("share/zsh/site-functions/_rudderfish", "share/fish/vendor_completions.d/rudderfish.fish"):
            self.assertIn("evaluate", (self.prefix / path).read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
