"""Courses and lessons: the model, and how it is read from a folder of YAML files.

May import schema, i18n and the engine's leaves.
"""

from app.lessons.checks import (
    Check,
    FillCheck,
    Gap,
    MatchCheck,
    MatchChoice,
    MatchFeedback,
    MatchItem,
    Misconception,
    MultipleCheck,
    NumericCheck,
    Option,
    OrderCheck,
    OrderLine,
    SingleCheck,
    WrongNumber,
    WrongText,
)
from app.lessons.model import (
    Block,
    Catalogue,
    Cell,
    Course,
    CourseLesson,
    FaqEntry,
    Lesson,
    NotFound,
    Panel,
    Prose,
    RankRange,
    Section,
    Snippet,
)
from app.lessons.reading import check_folder, load_catalogue
from app.lessons.texts import Localized, Text
from app.schema import LessonError, Problem

__all__ = [
    "Block",
    "Catalogue",
    "Cell",
    "Check",
    "Course",
    "CourseLesson",
    "FaqEntry",
    "FillCheck",
    "Gap",
    "Lesson",
    "LessonError",
    "Localized",
    "MatchCheck",
    "MatchChoice",
    "MatchFeedback",
    "MatchItem",
    "Misconception",
    "MultipleCheck",
    "NotFound",
    "NumericCheck",
    "Option",
    "OrderCheck",
    "OrderLine",
    "Panel",
    "Problem",
    "Prose",
    "RankRange",
    "Section",
    "SingleCheck",
    "Snippet",
    "Text",
    "WrongNumber",
    "WrongText",
    "check_folder",
    "load_catalogue",
]
