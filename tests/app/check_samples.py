"""A lesson with a check of each kind, and answers to them: right ones, and wrong ones."""

from pathlib import Path

COURSE = """\
id: course
title: {ja: コース, en: A course}
summary: {ja: 試験用, en: For tests}
lessons:
  - {id: kinds, title: {ja: 種類, en: Kinds}, summary: {ja: 全種類, en: All kinds}}
"""

LESSON = """\
id: kinds
course: course
title: {ja: 問題の種類, en: Kinds of checks}
subtitle: {ja: 試験用, en: For tests}
minutes: 5
objectives:
  - {ja: 答える, en: Answer}
sections:
  - id: choosing
    title: {ja: 選ぶ, en: Choose}
    blocks:
      - single:
          id: one
          prompt: {ja: all_reduce は何をしますか。, en: What does all_reduce do?}
          options:
            - {id: adds, text: {ja: 全ランクの値を足す, en: It adds up what all ranks hold}}
            - id: halves
              text: {ja: 値をランクの数で割る, en: It divides by the number of ranks}
              feedback: {ja: 割るのは DDP です。, en: That is what DDP does.}
            - {id: copies, text: {en: It copies what rank 0 holds to all other ranks}}
          answer: adds
          explanation: {ja: 和がどのランクにも届きます。, en: Every rank gets the sum.}
      - multiple:
          id: some
          prompt: {ja: ほかのランクを待つのはどれですか。, en: Which of these wait for others?}
          options:
            - {id: barrier, text: {ja: barrier, en: barrier}}
            - {id: reduce, text: {ja: all_reduce, en: all_reduce}}
            - id: rank
              text: {ja: get_rank, en: get_rank}
              feedback: {ja: 自分の番号を読むだけです。, en: It reads a number of its own.}
            - {id: size, text: {ja: get_world_size, en: get_world_size}}
          answers: [barrier, reduce]
          explanation: {ja: 集団通信は全員を待ちます。, en: Collectives wait until all have come.}
      - match:
          id: pairs
          prompt: {ja: 何が届きますか。, en: What does each rank get?}
          choices:
            - {id: sum, text: {ja: 和, en: The sum}}
            - {id: copy, text: {ja: 写し, en: A copy}}
            - {id: nothing, text: {ja: 何も届かない, en: Nothing}}
          items:
            - id: all-reduce
              text: {ja: all_reduce, en: all_reduce}
              answer: sum
              explanation: {ja: 足した値です。, en: All values are added.}
              feedback:
                copy: {ja: 写しでは足りません。, en: A copy is not enough.}
            - id: broadcast
              text: {ja: broadcast, en: broadcast}
              answer: copy
              explanation: {ja: 1 つの値が配られます。, en: One value is handed out.}
  - id: writing
    title: {ja: 書く, en: Write}
    blocks:
      - order:
          id: sorted
          prompt: {ja: 1 ステップを並べてください。, en: Put one step in order.}
          lines:
            - {id: clear, code: optimizer.zero_grad()}
            - id: forward
              code: loss = nn.functional.cross_entropy(model(batch.inputs), batch.targets)
            - {id: backward, code: loss.backward(), after: [clear, forward]}
            - {id: update, code: optimizer.step(), after: [backward]}
          distractors:
            - id: average
              code: loss /= dist.get_world_size()
              feedback: {ja: DDP が平均を取ります。, en: DDP takes the mean.}
          explanation: {ja: 勾配は更新の前に要ります。, en: Gradients come before the update.}
      - numeric:
          id: share
          prompt: {ja: 4 ランクで 1 MiB を分けると。, en: Four ranks share 1 MiB evenly.}
          answer: 256
          unit: KiB
          units: {B: 0.0009765625, MiB: 1024}
          wrong:
            - value: 1024
              feedback: {ja: それは合計です。, en: That is all of it.}
          explanation: {ja: 4 で割ります。, en: A quarter of it.}
      - numeric:
          id: single-unit
          prompt: {ja: 何バイトですか。, en: How many bytes is a float32?}
          answer: 4
          unit: B
          explanation: {ja: 32 ビットです。, en: It has 32 bits.}
      - fill:
          id: gaps
          prompt: {ja: 和を求めてください。, en: Sum it up over all ranks.}
          code: |
            total = torch.tensor([float(dist.get_rank())], device="cpu")
            dist.{{call}}(total, op=dist.ReduceOp.{{op}})
            if dist.get_rank() == 0:
                print(f"{total}", {{more}})
          gaps:
            - id: call
              answers: [all_reduce]
              wrong:
                - answers: [reduce]
                  feedback: {ja: 1 ランクにしか届きません。, en: Only one rank gets it.}
            - {id: op, answers: [SUM], ignore_case: true}
            - {id: more, answers: [flush=True]}
          explanation: {ja: どのランクにも届きます。, en: All of them get it.}
"""

CODE_IN_PLACE = {"clear": "2", "forward": "1", "backward": "3", "update": "4"}
RIGHT = {
    "one": {"choice": "adds"},
    "some": {"answered": "yes", "barrier": "on", "reduce": "on"},
    "pairs": {"all-reduce": "sum", "broadcast": "copy"},
    "sorted": {**CODE_IN_PLACE, "average": ""},
    "share": {"value": "1/4", "unit": "MiB"},
    "single-unit": {"value": "４"},
    "gaps": {"call": " all_reduce ", "op": "sum", "more": "flush = True"},
}
"""By check: fields and what is sent in them."""
EXPLAINED = {
    "one": "Every rank gets the sum.",
    "some": "Collectives wait until all have come.",
    "pairs": "One value is handed out.",
    "sorted": "Gradients come before the update.",
    "share": "A quarter of it.",
    "single-unit": "It has 32 bits.",
    "gaps": "All of them get it.",
}
WRONG = {
    "one": {"choice": "halves"},
    "some": {"answered": "yes", "barrier": "on", "rank": "on"},
    "pairs": {"all-reduce": "copy"},
    "sorted": {**CODE_IN_PLACE, "average": "5"},
    "share": {"value": "1,024", "unit": "KiB"},
    "single-unit": {"value": "8"},
    "gaps": {"call": "reduce", "op": "AVG"},
}
SAID = {
    "one": "That is what DDP does.",
    "some": "It reads a number of its own.",
    "pairs": "A copy is not enough.",
    "sorted": "DDP takes the mean.",
    "share": "That is all of it.",
    "single-unit": "Not this number.",
    "gaps": "Only one rank gets it.",
}
"""What is said to the wrong answers; nothing of it is on the page before."""


def write_lessons(folder: Path) -> Path:
    """A folder of lessons with that lesson."""
    (folder / "courses").mkdir(parents=True)
    (folder / "courses" / "course.yaml").write_text(COURSE, encoding="utf-8")
    (folder / "kinds.yaml").write_text(LESSON, encoding="utf-8")
    return folder
