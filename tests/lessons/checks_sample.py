"""A lesson with a check of each kind, and its catalogue of misconceptions."""

from pathlib import Path

from tests.lessons.test_malformed import COURSE

MISCONCEPTIONS = """\
misconceptions:
  - id: sum-is-mean
    title: {ja: all_reduce は平均を取る, en: all_reduce takes the mean}
  - id: one-process
    title: {en: Ranks are threads of one process}
"""

CHECKED = """\
id: lesson
course: course
title: {ja: 題, en: Title}
subtitle: {ja: 副題, en: Subtitle}
minutes: 5
objectives:
  - {ja: 目標, en: Objective}
sections:
  - id: first
    title: {ja: 最初, en: First}
    blocks:
      - single:
          id: one
          prompt: {ja: 何をしますか。, en: What does it do?}
          options:
            - {id: sum, text: {ja: 足す, en: It adds}}
            - id: mean
              text: {ja: 平均, en: It averages}
              feedback: {ja: 割りません。, en: Nothing is divided.}
              misconception: sum-is-mean
            - {id: copy, text: {en: It copies}}
          answer: sum
          explanation: {ja: 足します。, en: It adds.}
      - multiple:
          id: some
          prompt: {en: Which of these wait?}
          options:
            - {id: barrier, text: {en: barrier}}
            - {id: reduce, text: {en: all_reduce}}
            - id: rank
              text: {en: get_rank}
              feedback: {en: It reads a number.}
              misconception: collective-arguments
          answers: [barrier, reduce]
          explanation: {en: Collectives wait.}
      - order:
          id: sorted
          prompt: {en: Put the lines in order.}
          lines:
            - {id: start, code: dist.init_process_group()}
            - {id: loop, code: "for step in range(3):", after: [start]}
            - {id: body, code: "    loss(step).backward()\\n", after: [loop]}
            - {id: stop, code: dist.destroy_process_group(), after: [body]}
          distractors:
            - id: spawn
              code: threading.Thread()
              feedback: {en: Ranks are processes.}
              misconception: one-process
          explanation: {en: A group is there before it is used.}
      - numeric:
          id: bytes
          prompt: {en: How much does a rank hold?}
          answer: 2
          tolerance: {relative: 0.05}
          unit: KiB
          units: {B: 0.0009765625, MiB: 1024}
          wrong:
            - value: 8
              feedback: {en: That is all ranks.}
              misconception: one-process
            - value: 0.5
              feedback: {en: Divide once only.}
          explanation: {en: A quarter.}
      - fill:
          id: gaps
          prompt: {en: Complete the code.}
          code: |
            print(f"{{plain}} {x}")
            x = dist.{{call}}(y, {{op}})
          gaps:
            - id: call
              answers: [all_reduce, reduce]
              wrong:
                - answers: [all_mean, average]
                  feedback: {en: There is no such call.}
                  misconception: sum-is-mean
                - answers: [all-reduce]
                  feedback: {en: A name has no hyphen.}
            - {id: op, answers: [SUM], ignore_case: true}
          explanation: {en: It adds up.}
"""


def folder_with_checks(
    path: Path, lesson: str = CHECKED, misconceptions: str | None = MISCONCEPTIONS
) -> Path:
    """A folder with that lesson; without a catalogue where that is None."""
    (path / "courses").mkdir()
    (path / "courses" / "course.yaml").write_text(COURSE, encoding="utf-8")
    (path / "lesson.yaml").write_text(lesson, encoding="utf-8")
    if misconceptions is not None:
        (path / "misconceptions.yaml").write_text(misconceptions, encoding="utf-8")
    return path
