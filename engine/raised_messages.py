"""English sentences of the diagnoses of mistakes that torch refuses. Standard library only."""

from collections.abc import Mapping
from types import MappingProxyType

RAISED: Mapping[str, str] = MappingProxyType({})
