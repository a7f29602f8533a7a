#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the live tests of placing read in an API server's audit log (live_support.py)."""
import json
import pathlib
import tempfile
import unittest

from live_support import BindingLog


def answered(second, uid, node, status):
    meta = {"uid": uid} if uid else {}
    return json.dumps({"stageTimestamp": f"2026-01-01T00:00:{second:02}.000000Z", "responseStatus": {"code": status},
                       "requestObject": {"metadata": meta, "target": {"kind": "Node", "name": node}}})


class Log(unittest.TestCase):
    def read(self, *lines):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "audit.log"
            path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
            return BindingLog(path)

    def test_pods_that_are_bound_once_or_asked_about_again_are_in_order(self):
        log = self.read(answered(3, "a", "n1", 409), answered(1, "a", "n1", 201), answered(2, "b", "n2", 500),
                        answered(4, "b", "n3", 201), answered(5, "", "n1", 201), answered(6, "", "n2", 201))
        self.assertEqual((log.done_twice(), log.sent_elsewhere()), ({}, {}))
        self.assertEqual(log.sent["a"], [("n1", 201), ("n1", 409)])

    def test_a_pod_that_is_bound_twice_is_found(self):
        log = self.read(answered(1, "a", "n1", 201), answered(2, "a", "n1", 201), answered(3, "b", "n1", 201))
        self.assertEqual(list(log.done_twice()), ["a"])

    def test_a_pod_that_is_sent_to_another_node_once_it_has_one_is_found(self):
        log = self.read(answered(2, "a", "n2", 409), answered(1, "a", "n1", 201), answered(1, "b", "n2", 409),
                        answered(2, "b", "n1", 201))
        self.assertEqual(list(log.sent_elsewhere()), ["a"])


if __name__ == "__main__":
    unittest.main()
