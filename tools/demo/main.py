"""`make demo`: pods for real on the embedded default, every part killed on the way, and a checked summary.

`main.py` runs the demo; `main.py end` ends what a run with KEEP=1 left running.
"""

import os
import signal
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Started as a script: what is to be importable is the checkout, not this folder.
sys.path[0] = str(ROOT)

from tools.demo import leftovers, options, story  # noqa: E402

FOLDER = ROOT / ".demo"


def main(arguments: list[str]) -> int:
    """0: every check passed; 1: one failed; 2: wrong usage; 130: interrupted."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        if arguments == ["end"]:
            leftovers.end(FOLDER)
            return 0
        return story.run(options.read(os.environ), FOLDER, examples=ROOT / "examples")
    except (options.InvalidOption, leftovers.InUseError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
