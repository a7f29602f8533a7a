# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, in words: one line for the user. Anything else that is raised is a bug."""
import sys


class Refusal(Exception):
    """The command cannot be done: exit status 1."""


class Misuse(Exception):
    """The command was given wrongly: exit status 2."""


def exit_status(program, act):
    """Of a command; says in one line why it is not 0."""
    try:
        return act() or 0
    except Refusal as refusal:
        print(f"{program}: {refusal}", file=sys.stderr)
        return 1
    except Misuse as misuse:
        print(f"{program}: {misuse}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        return 130
