"""The YAML format of courses and lessons: models, and errors as file:line:column.

May import i18n, the engine's leaves, pydantic and ruamel.yaml.
"""

from app.schema.checks import MisconceptionsFile
from app.schema.models import CourseFile, LessonFile, lesson_json_schema
from app.schema.positions import Document, Path
from app.schema.problems import LessonError, Problem
from app.schema.validation import validate
from app.schema.yaml import read_yaml

__all__ = [
    "CourseFile",
    "Document",
    "LessonError",
    "LessonFile",
    "MisconceptionsFile",
    "Path",
    "Problem",
    "lesson_json_schema",
    "read_yaml",
    "validate",
]
