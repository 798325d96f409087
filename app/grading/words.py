"""What to say where an author has written nothing. May import lessons.

None of it names an answer, not even a digit: a word must be safe whatever the answer is.
"""

from app.lessons import Localized

NOTHING_CHOSEN = Localized(
    ja="まだ選ばれていません。どれかを選んでください。",
    en="Nothing is chosen yet. Choose one.",
)
NOT_THIS = Localized(
    ja="これではありません。前の説明を読み直して、もう一度考えてみましょう。",
    en="Not this one. Read what comes before the question once more, then decide again.",
)

NOTHING_TICKED = Localized(
    ja="まだ選ばれていません。正しいものをすべて選んでください。",
    en="Nothing is ticked yet. Tick every option that is right.",
)
OPTION_MISSING = Localized(
    ja="選んだものはどれも正しいのですが、まだ足りません。",
    en="All that you ticked is right, but something is still missing.",
)
OTHER_OPTIONS = Localized(
    ja="選ばなかったものも、もう一度見直してみましょう。",
    en="Look at what you did not tick once more, too.",
)
NOT_ALL_OPTIONS = Localized(
    ja="すべてが正しいわけではありません。理由を言えるものだけを選んでください。",
    en="Not every option is right. Tick only those that you can give a reason for.",
)

NOTHING_PLACED = Localized(
    ja="まだどの行にも順番がありません。必要な行に順番を付けてください。",
    en="No line has a place yet. Give a place to each line that the program needs.",
)
NO_PLACE = Localized(
    ja="順番として読み取れません。上から何番目かを整数で書いてください。",
    en="This is no place. Write a whole number, counted from the top.",
)
SAME_PLACE = Localized(
    ja="同じ順番の行がほかにもあります。",
    en="Another line has the same place.",
)
NEEDED_COMES_LATER = Localized(
    ja="この行に必要なものが、この行より後にあります。",
    en="Something that this line needs comes later.",
)
LINE_NOT_NEEDED = Localized(
    ja="この行はプログラムに必要ありません。",
    en="The program does not need this line.",
)
LINE_MISSING = Localized(
    ja="まだ足りない行があります。使わなかった行を見直してみましょう。",
    en="Something is still missing. Look at the lines that you left out once more.",
)
OTHER_LINES = Localized(
    ja="使わなかった行も、もう一度見直してみましょう。",
    en="Look at the lines that you left out once more, too.",
)
NOT_ALL_LINES = Localized(
    ja="すべての行が必要なわけではありません。要らない行は外してください。",
    en="The program does not need every line. Leave out what it can do without.",
)

NO_NUMBER_YET = Localized(
    ja="まだ書かれていません。数を書いてください。",
    en="Nothing is written yet. Write a number.",
)
NOT_A_NUMBER = Localized(
    ja="数として読み取れません。数字で書いてください。",
    en="This cannot be read as a number. Write it in digits.",
)
DECIMAL_POINT = Localized(
    ja="小数点にはピリオドを使ってください。コンマは桁区切りとしてだけ読み取ります。",
    en="Write decimals with a point: a comma is read as a separator of thousands only.",
)
ONLY_A_NUMBER = Localized(
    ja="数だけを書いてください。",
    en="Write a number and nothing else.",
)
NO_UNIT_YET = Localized(
    ja="単位を選んでください。",
    en="Choose a unit.",
)
UNKNOWN_UNIT = Localized(
    ja="この単位は使えません。選べる単位のどれかを使ってください。",
    en="This unit is not on offer. Use one of those to choose from.",
)
LOOK_AT_UNIT = Localized(
    ja="数は合っています。単位を見直してください。",
    en="The number is right. Look at the unit.",
)
NOT_THIS_NUMBER = Localized(
    ja="この数ではありません。もう一度、順を追って計算してみましょう。",
    en="Not this number. Work it out once more, step by step.",
)

NOTHING_WRITTEN = Localized(
    ja="まだ書かれていません。",
    en="Nothing is written yet.",
)
TOO_LONG = Localized(
    ja="長すぎます。この空欄に入るコードだけを書いてください。",
    en="This is too long. Write only the code that belongs into this gap.",
)
NOT_THIS_TEXT = Localized(
    ja="ここには合いません。空欄の前後のコードを読み直してみましょう。",
    en="This does not fit here. Read the code around the gap once more.",
)
