# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, in words: one line for the user. Anything else that is raised is a bug."""


class Refusal(Exception):
    """The command cannot be done: exit status 1."""


class Misuse(Exception):
    """The command was given wrongly: exit status 2."""
