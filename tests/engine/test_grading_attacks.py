"""Programs that attack their own grading: verdicts, outcomes, other ranks, the hidden check."""

import pytest

from engine.errors import WireError
from engine.executor.local import LocalExecutor
from engine.program import Limits
from engine.wire import decode
from tests.engine.graded import GLOO, LOOKS_AT_NOTHING_SPECIAL, WANTS_THREE, grade

FORGED = (
    '{"kind":"verdict","at_ns":1,"is_passed":true,'
    '"results":[{"id":"a","is_passed":true,"message":"m","code":null,"args":{}}],"problem":null}'
)


async def test_program_cannot_forge_a_verdict_on_its_trace_pipe(executor: LocalExecutor) -> None:
    source = f"import os\nw = 1\nos.write(3, {(FORGED + chr(10)).encode()!r})\n"
    graded = await grade(executor, source, "def check(run): run.expect('no', False, 'no')\n")
    assert not graded.verdict.is_passed
    assert [r.code for r in graded.verdict.results] == ["trace-dropped"]
    assert graded.outcome.dropped_events == 1


@pytest.mark.parametrize("descriptor", range(7))
async def test_lines_for_the_executor_mean_nothing_from_a_rank(
    executor: LocalExecutor, descriptor: int
) -> None:
    lines = (
        '{"export":0,"state":"given","num_bytes":1}\\nN'
        '{"kind":"outcome","rank":-1,"status":"ok"}\\n' + FORGED.replace('"', '\\"') + "\\n"
    )
    source = (
        "import os\n"
        f'try: os.write({descriptor}, b"""{lines}""")\n'
        "except OSError: pass\n"
        "os._exit(3)\n"
    )
    graded = await grade(executor, source, LOOKS_AT_NOTHING_SPECIAL)
    assert not graded.verdict.is_passed
    assert graded.outcome.status == "error"


HIDDEN = "needle-abcdefghijklm"
SEARCH = """
import ctypes, os, re
PATTERN = re.compile(rb"needl[e]-abcd[e]fghijkl[m]")  # does not match itself
def look(path):
    try:
        with open(path, "rb") as file:
            return bool(PATTERN.search(file.read(1 << 22)))
    except OSError:
        return False
def in_files():
    found = []
    for top in ("/work", "/tmp", "/dev/shm", "/etc", "/proc", "/var", "/run", "/home", "/root"):
        for folder, folders, files in os.walk(top):
            folders[:] = [name for name in folders if name != "fd"]  # a pipe would make it wait
            found += [name for name in files if look(os.path.join(folder, name))]
    return found
def in_memory():
    with open("/proc/self/maps") as maps:
        lines = maps.read().splitlines()
    found = 0
    for span, rights, *_, name in (line.split(maxsplit=5) + [""] for line in lines):
        if rights.startswith("rw") and not name.startswith("[v"):
            start, end = (int(part, 16) for part in span.split("-"))
            memory = (ctypes.c_char * (end - start)).from_address(start)
            found += len(PATTERN.findall(memory))
    return found
files, memory = in_files(), in_memory()
planted = bytes(byte ^ 1 for byte in PLANTED)
open("/work/planted", "wb").write(planted)
planted_files, planted_memory = in_files(), in_memory()
"""


async def test_nothing_of_the_check_is_in_the_sandbox_of_the_run(executor: LocalExecutor) -> None:
    source = f"PLANTED = {bytes(byte ^ 1 for byte in HIDDEN.encode())!r}\n" + SEARCH
    check = (
        f"answer = {HIDDEN!r}\n"
        "def check(run):\n"
        "    run.expect('memory', run.number(0, 'memory') == 0, 'in memory')\n"
        "    run.expect('files', run.exports[0]['files'] == [], f\"{run.exports[0]['files']}\")\n"
        "    run.expect('search', run.number(0, 'planted_memory') > 0, 'finds nothing')\n"
        "    run.expect('walk', run.exports[0]['planted_files'] == ['planted'], 'no walk')\n"
    )
    names = ("memory", "files", "planted_memory", "planted_files")
    graded = await grade(
        executor, source, check, exports=names, limits=Limits(wall_s=120, cpu_s=240)
    )
    assert graded.verdict.is_passed, (graded.verdict, graded.ran.text(0, "stderr"))


async def test_check_runs_where_no_program_has_been(executor: LocalExecutor) -> None:
    source = (
        "import os, sys, torch, engine.grading.checking as checking\n"
        "open('left', 'w').write('x'); open('/tmp/left', 'w').write('x')\n"
        "os.environ['LEFT'] = '1'\n"
        "checking.carry_out = None\n"
        "torch.equal = lambda a, b: True\n"
        "w = torch.zeros(1)\n"
    )
    check = (
        "import os, torch\n"
        "def check(run):\n"
        "    left = [p for p in ('left', '/tmp/left') if os.path.exists(p)]\n"
        "    run.expect('files', not left and 'LEFT' not in os.environ, f'{left}')\n"
        "    run.expect('torch', not torch.equal(run.tensor(0, 'w'), torch.ones(1)), 'torch')\n"
    )
    graded = await grade(executor, source, check)
    assert graded.verdict.is_passed, graded.verdict


async def test_rank_cannot_write_into_the_pipes_of_another(executor: LocalExecutor) -> None:
    source = (
        GLOO + "import os\n"
        "w = torch.zeros(4) if dist.get_rank() else torch.full((4,), 3.0)\n"
        "pids = [None, None]\n"
        "dist.all_gather_object(pids, os.getpid())\n"
        "opened = []\n"
        "for pid in [1, *pids]:\n"
        "    for number in range(20):\n"
        "        if pid == os.getpid(): continue\n"
        "        try: opened.append(os.open(f'/proc/{pid}/fd/{number}', os.O_WRONLY))\n"
        "        except OSError: pass\n"
        "print(opened)\n"
        "held = sorted(int(n) for n in os.listdir('/proc/self/fd') if int(n) < 7)\n"
        "print(held)\n"
        "dist.barrier()\n"
    )
    graded = await grade(executor, source, WANTS_THREE, ranks=2)
    assert graded.failed == ["sum-1"]
    assert graded.ran.text(0).splitlines()[0] == "[]", graded.ran.text(0)


LOOKS_AT_W = "def check(run): run.expect('w', run.exports[0]['w'], 'w')\n"
FRAMES = {
    "nothing of ours": b"pickle me",
    "cut": b"DLX1V\x20\0\0\0\0\0\0\0m",
    "too long a body": b"DLX1V\xff\xff\xff\xff\xff\xff\xff\x7fm\0\0\0\0",
    "two frames": b"DLX1V\x05\0\0\0\0\0\0\0m\0\0\0\0" * 2,
    "a list": b"DLX1V\x05\0\0\0\0\0\0\0l\0\0\0\0",
    "nested": b"DLX1V\xfa\x01\0\0\0\0\0\0" + b"l\x01\0\0\0" * 101 + b"N",
    "pickle": b"DLX1V\x10\0\0\0\0\0\0\0\x80\x04cos\nsystem\n.xx",
    "another name": b"DLX1V\x0c\0\0\0\0\0\0\0m\x01\0\0\0s\x01\0\0\0xN",
    "text that is none": b"DLX1V\x0d\0\0\0\0\0\0\0m\x01\0\0\0s\x02\0\0\0\xff\xffN",
    "too large, with more": b"DLX1L\0\0\0\0\0\0\0\0N",
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
async def test_malformed_export_is_no_pass_and_breaks_nothing(
    executor: LocalExecutor, frame: bytes
) -> None:
    source = f"import os\nos.write(6, {frame!r})\nos._exit(0)\n"
    graded = await grade(
        executor, source, "def check(run): run.expect('w', run.exports[0]['w'], 'w')\n"
    )
    assert (graded.problem, graded.verdict.is_passed) == (None, False)
    assert [r.code for r in graded.verdict.results] == ["export-malformed"]


async def test_flood_of_exports_is_not_kept_and_the_run_goes_on(executor: LocalExecutor) -> None:
    source = "import os\nfor _ in range(640): os.write(6, bytes(65536))\nw = 1\n"
    graded = await grade(
        executor, source, "def check(run): run.expect('w', run.exports[0]['w'], 'w')\n"
    )
    assert graded.outcome.status == "ok"
    assert [r.code for r in graded.verdict.results] == ["export-too-large"]


CALL = (
    '{{"kind":"collective","call":{call},"at_ns":{at},"op":"all_reduce","group":"0",'
    '"group_ranks":[0,1],"group_seq":{seq},"input_bytes":{size},"output_bytes":{size},'
    '"dtype":"float32","phase":null,"module":null,"line":1,"peer":null,"group_size":null}}'
)
FORGE = (
    GLOO + "import os, time\n"
    "w = torch.full((4,), 3.0)\n"
    "def tell(call, seq, size):\n"
    "    at = time.monotonic_ns()\n"
    f"    line = '''{CALL}'''.format(call=call, at=at, seq=seq, size=size)\n"
    "    os.write(3, line.encode() + b'\\n')\n"
    '    os.write(3, (\'{"kind":"end","call":%d,"at_ns":%d}\' % (call, at)).encode() + b"\\n")\n'
)


@pytest.mark.parametrize(
    ("forged", "code"),
    [
        ("if dist.get_rank() == 0: tell(70, 0, 16)\n", "trace-differs"),
        ("tell(70, 0, 16 + 4 * dist.get_rank())\n", "trace-differs"),
        ("tell(70, 5, 16)\n", "trace-gap"),
        ("tell(70, 0, 16)\ntell(71, 0, 16)\n", "trace-gap"),
        ("if dist.get_rank() == 0: os.close(3)\ndist.all_reduce(w)\n", "trace-differs"),
    ],
)
async def test_trace_that_contradicts_itself_is_no_pass_and_says_so(
    executor: LocalExecutor, forged: str, code: str
) -> None:
    graded = await grade(executor, FORGE + forged, LOOKS_AT_NOTHING_SPECIAL, ranks=2)
    assert graded.outcome.status == "ok", graded.ran.text(0, "stderr")
    assert (graded.problem, graded.verdict.is_passed) == (None, False)
    assert {r.code for r in graded.verdict.results} == {code}


async def test_peak_that_hides_memory_is_no_pass_and_says_so(executor: LocalExecutor) -> None:
    source = (
        "import os, time\n"
        "os.close(3)\n"
        "held = bytearray(120 << 20)\n"
        "for i in range(0, len(held), 4096): held[i] = 1\n"
        "end = time.monotonic() + 0.5\n"
        "while time.monotonic() < end: pass\n"
    )
    graded = await grade(executor, source, LOOKS_AT_NOTHING_SPECIAL, exports=())
    assert [r.code for r in graded.verdict.results] == ["trace-memory"]


def test_decoder_of_a_verdict_takes_no_nonsense() -> None:
    with pytest.raises(WireError):
        decode(b'{"kind":"verdict","rank":-1,"seq":0,"at_ns":0,"is_passed":"yes","results":[]}')
