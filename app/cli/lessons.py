"""`academy lessons`: check lesson files, and print their schema. May import lessons and schema."""

import sys
from pathlib import Path

from rich.console import Console

from app.lessons import check_folder
from app.schema import lesson_json_schema
from app.settings import Settings


def check(folder: Path | None) -> int:
    """Print every mistake as file:line:column; 1 if there is any, 2 if there is no such folder."""
    console = Console(stderr=True, markup=False, highlight=False, soft_wrap=True)
    where = folder if folder is not None else Settings().content / "lessons"
    if not where.is_dir():
        console.print(f"academy lessons check: {where} is not a folder")
        return 2
    problems = check_folder(where)
    for problem in problems:
        sys.stdout.write(f"{problem}\n")
    if problems:
        console.print(f"mistakes: {len(problems)}; more may show once these are corrected")
        return 1
    console.print(f"{where}: no mistakes")
    return 0


def schema() -> int:
    """Print the JSON schema of lesson files."""
    sys.stdout.write(lesson_json_schema())
    return 0
