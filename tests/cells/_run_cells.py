#!/usr/bin/env python3
"""Run acceptance cells against a command and compare with what their headers promise.

    run_cells.py DIR [DIR ...] [--command "academy run {file} --ranks {ranks} --json"] [--only NAME]

A cell is DIR/*.py whose first lines are comments:
    # kind: A                    (A..F, for the reader)
    # ranks: 4
    # outcome: deadlock|error    (alternatives)
    # says: REGEX                (each must be found in the ranks' output)
    # diagnosis: REGEX           (each must be found, ignoring case, in one diagnosis: its code, its message or "code: message")
    # no-diagnosis               (there must be none)
    # why: ...
The command prints JSON lines (other lines are ignored): {"kind":"output","rank":r,"text":...} and at the end
{"kind":"outcome","status":S,"diagnosis":[{"code":..,"message":..}]}. The cell is handed over as a copy with the header
blanked out (same line numbers), so that the answer cannot be read from the question.
Prints one line per failing cell, then "N passed, M failed"; exits 1 if any failed or none was found.
"""

import argparse
import fnmatch
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HEADER = re.compile(r"#\s*(kind|ranks|outcome|says|diagnosis|no-diagnosis|why)\b\s*:?\s*(.*?)\s*$")
COMMAND = "academy run {file} --ranks {ranks} --json"


class Cell:
    def __init__(self, path):
        self.path, self.name = path, f"{path.parent.name}/{path.stem}"
        self.kind = self.why = ""
        self.ranks, self.outcomes, self.says, self.diagnosis, self.quiet = None, [], [], [], False
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        for used, line in enumerate(lines):
            match = HEADER.match(line)
            if not match:
                break
            key, value = match.groups()
            if key == "ranks":
                self.ranks = int(value)
            elif key == "outcome":
                self.outcomes = [s.strip() for s in value.split("|")]
            elif key == "says":
                self.says.append(re.compile(value))
            elif key == "diagnosis":
                self.diagnosis.append(re.compile(value, re.I | re.S))
            elif key == "no-diagnosis":
                self.quiet = True
            else:
                setattr(self, key, value)
            lines[used] = "#\n"
        if self.ranks is None or not self.outcomes or (self.quiet and self.diagnosis):
            raise ValueError(
                "header needs ranks and outcome, and not both diagnosis and no-diagnosis"
            )
        self.program = "".join(lines)


def last_line(text):
    return next((line.strip()[:160] for line in reversed(text.splitlines()) if line.strip()), "")


def run(argv, limit):
    """-> (stdout, last line of stderr, problem or None); a command that outlives the limit is stopped with its children"""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            child = subprocess.Popen(
                argv, stdout=out, stderr=err, stdin=subprocess.DEVNULL, start_new_session=True
            )
        except OSError as e:
            return "", "", f"cannot start {argv[0]}: {e.strerror}"
        problem = None
        try:
            child.wait(limit)
        except subprocess.TimeoutExpired:
            problem = f"command still running after {limit:g} s"
            for sig, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
                try:
                    os.killpg(child.pid, sig)  # the group this function started, nothing else
                except ProcessLookupError:
                    pass
                try:
                    child.wait(patience)
                    break
                except subprocess.TimeoutExpired:
                    pass
        out.seek(0)
        err.seek(0)
        return (
            out.read().decode("utf-8", "replace"),
            last_line(err.read().decode("utf-8", "replace")),
            problem,
        )


def read_events(stdout):
    events = []
    for line in stdout.split("\n"):
        line = line.strip()
        if line.startswith("{"):
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and "kind" in event:
                events.append(event)
    return events


def diagnoses(outcome):
    found = []
    for d in outcome.get("diagnosis") or []:
        code, message = (
            (str(d.get("code") or ""), str(d.get("message") or ""))
            if isinstance(d, dict)
            else ("", str(d))
        )
        found.append((code, message, f"{code}: {message}"))
    return found


def judge(cell, stdout, complaint, problem):
    """-> list of reasons why the cell fails"""
    events = read_events(stdout)
    outcome = next((e for e in reversed(events) if e["kind"] == "outcome"), None)
    if outcome is None:
        hint = last_line(stdout) if not complaint else complaint
        return [
            (problem or "no outcome line in the command's output")
            + (f" (last line: {hint})" if hint else "")
        ]
    reasons = [problem] if problem else []
    output = [e for e in events if e["kind"] == "output"]
    in_order = "".join(str(e.get("text", "")) for e in output)
    ranks = sorted({str(e.get("rank")) for e in output})
    by_rank = "\n".join(
        "".join(str(e.get("text", "")) for e in output if str(e.get("rank")) == r) for r in ranks
    )
    status = outcome.get("status")
    if status not in cell.outcomes:
        reasons.append(
            f"outcome {status}, wanted {' or '.join(cell.outcomes)} (last line: {last_line(in_order)})"
        )
    for pattern in cell.says:
        if not pattern.search(in_order) and not pattern.search(by_rank):
            reasons.append(f"output does not say {pattern.pattern!r}")
    found = diagnoses(outcome)
    for pattern in cell.diagnosis:
        if not any(pattern.search(part) for d in found for part in d):
            got = "; ".join(d[2][:120] for d in found) or "none"
            reasons.append(f"no diagnosis matches {pattern.pattern!r} (got: {got})")
    if cell.quiet and found:
        reasons.append("unwanted diagnosis: " + "; ".join(d[2][:160] for d in found))
    return reasons


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("dirs", nargs="+", type=Path, metavar="DIR")
    ap.add_argument("--command", default=COMMAND, help="default: %(default)s")
    ap.add_argument(
        "--only",
        metavar="NAME",
        help="only cells whose file name starts with NAME or matches it as a pattern",
    )
    ap.add_argument("--limit", type=float, default=120, help="seconds per cell (default 120)")
    ap.add_argument(
        "--verbose", action="store_true", help="also print passing cells, with their diagnosis"
    )
    args = ap.parse_args()

    paths = [p for d in args.dirs for p in sorted(d.glob("*.py")) if not p.name.startswith("_")]
    if args.only:
        wanted = Path(args.only).name.removesuffix(".py")
        paths = [p for p in paths if p.stem.startswith(wanted) or fnmatch.fnmatch(p.stem, wanted)]
    if not paths:
        print("no cells found")
    passed = failed = 0
    for path in paths:
        name, began = f"{path.parent.name}/{path.stem}", time.monotonic()
        try:
            cell = Cell(path)
        except (ValueError, re.error) as e:
            reasons = [f"bad cell: {e}"]
        else:
            with tempfile.TemporaryDirectory(prefix="cell-") as folder:
                copy = Path(folder) / "program.py"
                copy.write_text(cell.program, encoding="utf-8")
                argv = [
                    a.replace("{file}", str(copy)).replace("{ranks}", str(cell.ranks))
                    for a in shlex.split(args.command)
                ]
                stdout, complaint, problem = run(argv, args.limit)
            reasons = judge(cell, stdout, complaint, problem)
        took = time.monotonic() - began
        if reasons:
            failed += 1
            print(f"FAIL {name}: " + " | ".join(reasons), flush=True)
        else:
            passed += 1
            if args.verbose:
                last = next(e for e in reversed(read_events(stdout)) if e["kind"] == "outcome")
                print(
                    f"ok   {name} ({took:.1f} s) {last.get('status')} "
                    + "; ".join(d[2][:160] for d in diagnoses(last)),
                    flush=True,
                )
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
