"""Courses and lessons: the model, and how it is read from a folder of YAML files.

May import schema, i18n and the engine's leaves.
"""

from app.lessons.model import (
    Block,
    Catalogue,
    Cell,
    Course,
    CourseLesson,
    FaqEntry,
    Lesson,
    Localized,
    MatchCheck,
    MatchChoice,
    MatchFeedback,
    MatchItem,
    NotFound,
    Panel,
    Prose,
    RankRange,
    Section,
    Snippet,
    Text,
)
from app.lessons.reading import check_folder, load_catalogue
from app.schema import LessonError, Problem

__all__ = [
    "Block",
    "Catalogue",
    "Cell",
    "Course",
    "CourseLesson",
    "FaqEntry",
    "Lesson",
    "LessonError",
    "Localized",
    "MatchCheck",
    "MatchChoice",
    "MatchFeedback",
    "MatchItem",
    "NotFound",
    "Panel",
    "Problem",
    "Prose",
    "RankRange",
    "Section",
    "Snippet",
    "Text",
    "check_folder",
    "load_catalogue",
]
