#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads safetensors files with the published package and prints what is in them.

  checkpoint_reader.py FILE...

Exit status 1 where a file cannot be read or a tensor of floats holds a number that is not finite.
"""

import sys

import numpy as np
from safetensors import SafetensorError, safe_open


def describe(path):
    with safe_open(path, "np") as file:
        for key, value in sorted((file.metadata() or {}).items()):
            print(f"{path}: {key} = {value}")
        for name in file.keys():
            tensor = file.get_tensor(name)
            print(f"{path}: {name} {tensor.dtype} {list(tensor.shape)}")
            if tensor.dtype.kind == "f" and not np.isfinite(tensor).all():
                return f"{name} holds a number that is not finite"
    return None


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    failed = False
    for path in sys.argv[1:]:
        try:
            problem = describe(path)
        except (OSError, SafetensorError) as error:
            problem = str(error)
        if problem:
            print(f"{path}: {problem}", file=sys.stderr)
            failed = True
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
