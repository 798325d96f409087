"""Names of modules as the learner knows them: qualified, without the wrappers around them.

May import torch. Modules are told apart by identity, since a learner's class may define equality
and then has no hash.
"""

import weakref
from dataclasses import dataclass, field

from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

# Attributes under which FSDP1, activation checkpointing and torch.compile hold what they wrap.
WRAPPED = ("_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_orig_mod")


@dataclass(slots=True)
class Tree:
    """The qualified names of the modules of one tree; the first name of a shared one counts."""

    root: weakref.ref[nn.Module]
    names: dict[int, tuple[weakref.ref[nn.Module], str]] = field(default_factory=dict)

    def name(self, module: nn.Module) -> str | None:
        """The name of module, "" for the root, None if it is not of this tree."""
        ref, name = self.names.get(id(module), (None, ""))
        return name if ref is not None and ref() is module else None

    def collect(self, module: nn.Module, name: str) -> None:
        """Take in module and all below it, wrappers left out of the names."""
        if self.name(module) is not None:
            return
        self.names[id(module)] = (weakref.ref(module), name)
        replicates = isinstance(module, (DistributedDataParallel, DataParallel))
        for key, child in module._modules.items():
            if child is None:
                continue
            if key in WRAPPED or (replicates and key == "module"):
                self.collect(child, name)
            else:
                self.collect(child, f"{name}.{key}" if name else key)


class Names:
    """The module names of the trees that have been called; keeps no module alive."""

    def __init__(self) -> None:
        self._trees: dict[int, Tree] = {}
        self._last: Tree | None = None

    def of(self, module: nn.Module, root: nn.Module, recomputed: bool) -> str:
        """The name of module within root; a root that is the layer itself gets its class's.

        recomputed: the call repeats a part of an earlier forward inside backward (activation
        checkpointing), so the names are still those within that forward's root.
        """
        if recomputed and self._last is not None:
            name = self._last.name(module)
            if name is not None:
                return name or type(module).__name__
        tree = self._trees.get(id(root))
        if tree is None or tree.name(root) is None or tree.name(module) is None:
            tree = self._add(root)
        if not recomputed:
            self._last = tree
        return tree.name(module) or type(module).__name__

    def _add(self, root: nn.Module) -> Tree:
        self._trees = {key: tree for key, tree in self._trees.items() if tree.root() is not None}
        tree = self._trees[id(root)] = Tree(root=weakref.ref(root))
        tree.collect(root, "")
        return tree
