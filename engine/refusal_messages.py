"""Why programs cannot run on a machine, and the remedies that are sentences. Standard library only.

English templates of what the doctor, the warm parent and the executor say; a page shows them in
its own language. What is a command line reads the same in every language and is not here.
"""

import re

REFUSALS: tuple[str, ...] = (
    "Runs need Linux on x86_64 or aarch64; this is {system}.",
    "Runs need Linux on x86_64 or aarch64, not {system}.",
    "This machine refuses to isolate runs ({detail}).",
    "The engine has no outer sandbox here ({detail}).",
    "The operator allows no stronger isolation than {tier}.",
    "The operator demands the tier {demanded}; this machine makes {found}.",
    "Run `academy doctor` on the server to see what is missing, or allow a weaker tier.",
    "Run the academy as root: only root can make control groups here.",
    "Let the server take a stronger tier: its settings allow {tier} only.",
    "Host the academy on Linux, x86_64 or aarch64; in a virtual machine, say.",
    "Boot a kernel with CONFIG_SECCOMP_FILTER=y.",
    "Boot a kernel with CONFIG_NAMESPACES=y and CONFIG_USER_NS=y.",
    "Boot Linux 6.12 or newer with landlock in the kernel's parameter lsm=.",
    "Boot Linux 5.12 or newer.",
    "Boot Linux 6.7 or newer (6.12 is better) with landlock in the parameter lsm=.",
    "Unmask /proc: {command}",
    "Start the academy outside of what restricts it: a chroot, a container, a service with "
    "RestrictNamespaces=, or a security module (see `journalctl -k -g denied`).",
)


def recognise(said: str) -> tuple[str, dict[str, str]] | None:
    """The template of a sentence and its arguments; None where it is none of these."""
    for template in REFUSALS:
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+)", re.escape(template))
        found = re.fullmatch(pattern, said, re.DOTALL)
        if found:
            return template, found.groupdict()
    return None
