"""``python -m benchmarks [names] --scale full``: run benchmarks, print their tables."""

import argparse
import importlib

from benchmarks import BENCHMARKS
from benchmarks.harness import table, timed


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(BENCHMARKS))
    parser.add_argument("--scale", choices=["toy", "full"], default="toy")
    args = parser.parse_args()
    if unknown := set(args.names) - set(BENCHMARKS):
        parser.error(
            f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}"
        )
    for name in args.names or BENCHMARKS:
        module = importlib.import_module(f"benchmarks.{name}")
        seconds, rows = timed(module.run, args.scale)
        print(f"{name}: {module.__doc__.splitlines()[0]} ({args.scale}, {seconds:.1f} s)")
        print(table(rows), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
