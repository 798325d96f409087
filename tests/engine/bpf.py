"""Interprets the filters that the sandbox builds, for any architecture. Standard library only."""

import struct
from dataclasses import dataclass

from engine.sandbox.syscalls import Machine, numbers

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
ARCH: dict[Machine, int] = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
MACHINES: tuple[Machine, ...] = ("x86_64", "aarch64")
_MAX_INSTRUCTIONS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruled:
    """A filter for one architecture."""

    machine: Machine
    program: bytes

    def answer(self, name: str, *arguments: int) -> int:
        """What it answers to a call by name."""
        number = numbers(self.machine)[name]
        return interpret(self.program, ARCH[self.machine], number, *arguments)


def interpret(program: bytes, arch: int, number: int, *arguments: int) -> int:
    """Run a classic BPF program over one seccomp_data, as the kernel does.

    Source: Linux, include/uapi/linux/seccomp.h and filter.h.
    """
    padded = (list(arguments) + [0] * 6)[:6]
    masked = [argument & 0xFFFF_FFFF_FFFF_FFFF for argument in padded]
    data = struct.pack("<IIQ6Q", number, arch, 0, *masked)
    accumulator, at = 0, 0
    for _ in range(_MAX_INSTRUCTIONS):
        code, if_true, if_false, k = struct.unpack_from("<HBBI", program, at * 8)
        at += 1
        match code:
            case 0x20:  # load a word
                assert k % 4 == 0, "the kernel takes aligned loads only"
                accumulator = struct.unpack_from("<I", data, k)[0]
            case 0x54:
                accumulator &= k
            case 0x15:
                at += if_true if accumulator == k else if_false
            case 0x35:
                at += if_true if accumulator >= k else if_false
            case 0x45:
                at += if_true if accumulator & k else if_false
            case 0x06:
                return int(k)
            case _:
                raise AssertionError(f"unknown instruction {code:#x}")
    raise AssertionError("the filter does not end")
