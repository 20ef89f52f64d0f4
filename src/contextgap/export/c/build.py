"""Compiling an export here, to compare it with Python; the target's build needs none of this."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from contextgap.base.arrays import FloatArray, IntArray
from contextgap.base.checks import Mask
from contextgap.export.c.literals import DEFAULT_PREFIX, FileNames, static_file
from contextgap.export.c.text import LEVEL_UNKNOWN, STATUSES
from contextgap.policy.state import Status

_COMPILERS = ("cc", "gcc", "clang")


class CompilerError(RuntimeError):
    """There is no C compiler, or it refused the code."""


def find_compiler(compiler: str | None = None) -> str:
    """Return the path of a C compiler; by default ``$CC`` or the first of cc, gcc and clang."""
    wanted = [compiler] if compiler else [*filter(None, [os.environ.get("CC")]), *_COMPILERS]
    for name in wanted:
        if found := shutil.which(name):
            return found
    raise CompilerError(
        f"no C compiler found, looked for {', '.join(wanted)}; install gcc or clang"
    )


def found_prefix(directory: Path, prefix: str | None = None) -> str:
    ending = FileNames.of("").header
    found = sorted(path.name.removesuffix(ending) for path in directory.glob(f"*{ending}"))
    if prefix is None and len(found) > 1:
        raise ValueError(f"{directory} holds several exports, {found}; say which by its prefix")
    called = prefix or (found[0] if found else DEFAULT_PREFIX)
    names = FileNames.of(called)
    for name in (names.header, names.source):
        if not (directory / name).is_file():
            raise FileNotFoundError(f"{directory} holds no {name}; write_c writes it")
    return called


def compile_shared(
    directory: str | os.PathLike[str],
    compiler: str | None = None,
    *,
    into: str | os.PathLike[str] | None = None,
    flags: Sequence[str] = ("-O2",),
    prefix: str | None = None,
) -> Path:
    """Compile an export, with loops over many contexts, to a shared library; return its path.

    The library goes to the folder ``into``, by default a new temporary one, which the caller may
    remove; nothing is added to the export's ``directory``.
    """
    command, export = find_compiler(compiler), Path(directory)
    called = found_prefix(export, prefix)
    names = FileNames.of(called)
    target = Path(tempfile.mkdtemp(prefix="contextgap-") if into is None else into)
    batch, library = target / "batch.c", target / "contextgap_policy.so"
    batch.write_text(static_file("batch.c", called), encoding="utf-8")
    options = ["-shared", "-fPIC", *flags, "-I", str(export)]
    _compile(command, [*options, str(batch)], library, export / names.source)
    return library


def run_self_test(folder: Path, compiler: str | None, prefix: str) -> tuple[bool, str]:
    """Build the exported self-test as its header says; return whether it passed, and its words."""
    names = FileNames.of(prefix)
    sources = [str(folder / name) for name in (names.source, names.self_test)]
    with tempfile.TemporaryDirectory(prefix="contextgap-") as place:
        program = Path(place) / "selftest"
        _compile(find_compiler(compiler), ["-O2", *sources], program, folder / names.self_test)
        done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    return done.returncode == 0, done.stdout.strip()


def _compile(command: str, arguments: Sequence[str], target: Path, named: Path) -> None:
    done = subprocess.run(
        [command, "-std=c99", *arguments, "-o", str(target), "-lm"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise CompilerError(f"{command} refused {named}:\n{done.stderr}")


class CompiledDecisions(NamedTuple):
    """What the exported code decides at m contexts.

    ``arm``, ``status`` and ``certificate`` have shape (m,), all else (m, arms). ``status`` is one
    that the header names, 0 if all is well. An export that holds means only has None for what rests
    on widths.
    """

    arm: IntArray
    status: IntArray
    mean: FloatArray
    width: FloatArray | None
    gap: FloatArray | None
    certificate: FloatArray | None


class CompiledPolicy:
    """An export that ``write_c`` wrote to ``directory``, compiled and loaded.

    It is asked at contexts of shape (m, d), which are rounded first if it computes in ``float``; of
    a table with typed columns, at rows with one number per column. ``prefix`` says which export, if
    the folder holds several.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        compiler: str | None = None,
        *,
        flags: Sequence[str] = ("-O2",),
        prefix: str | None = None,
    ) -> None:
        self.prefix = found_prefix(Path(directory), prefix)
        with tempfile.TemporaryDirectory(prefix="contextgap-") as folder:
            # A loaded library outlives its file.
            library = compile_shared(
                directory, compiler, into=folder, flags=flags, prefix=self.prefix
            )
            self._library = ctypes.CDLL(str(library))
        facts = [self._named("batch_facts")(which) for which in range(5)]
        self.n_arms, self.dimension, size, self.has_widths, self.default_arm = facts
        self.dtype = np.dtype(np.float32 if size == 4 else np.float64)

    @property
    def labels(self) -> tuple[str, ...]:
        return self._texts("labels", self.n_arms)

    @property
    def columns(self) -> tuple[str, ...]:
        return self._texts("columns", self.dimension)

    def recommend(self, contexts: Any, *, arms: Mask | None = None) -> IntArray:
        """Return the index of the recommended arm, of those eligible, for every row."""
        if arms is not None:
            return self.decide(contexts, eligible=arms).arm
        rows = self._rows(contexts)
        arm, status = np.empty((2, len(rows)), dtype=np.intc)
        self._named("batch_recommend")(
            _pointer(rows), ctypes.c_long(len(rows)), _pointer(arm), _pointer(status)
        )
        return arm.astype(np.intp)

    def decide(self, contexts: Any, *, eligible: Mask | None = None) -> CompiledDecisions:
        """Return decisions with what is believed about every arm, for every row.

        ``eligible``, of shape (m, arms), says which arms may be chosen, where the export was
        written with ``eligible=True``.
        """
        rows = self._rows(contexts)
        mask = self._mask(eligible, len(rows))
        arm, status = np.empty((2, len(rows)), dtype=np.intc)
        # Zeros, since an export of means alone does not write widths and gaps.
        tables = [np.zeros((len(rows), self.n_arms), dtype=self.dtype) for _ in range(3)]
        certificate = np.zeros(len(rows), dtype=self.dtype)
        self._named("batch_decide")(
            _pointer(rows),
            ctypes.c_long(len(rows)),
            *(_pointer(x) for x in (arm, status, *tables, certificate)),
            None if mask is None else _pointer(mask),
        )
        mean, width, gap = (table.astype(np.float64) for table in tables)
        return CompiledDecisions(
            arm=arm.astype(np.intp),
            status=status.astype(np.intp),
            mean=mean,
            width=width if self.has_widths else None,
            gap=gap if self.has_widths else None,
            certificate=certificate.astype(np.float64) if self.has_widths else None,
        )

    def watched(self, contexts: Any) -> tuple[FloatArray, int | None]:
        """Return a new watch's evidence after every row, and the row of the alarm.

        The export must have been written with a watch.
        """
        rows, evidence = self._rows(contexts), np.empty(len(contexts))
        watch = self._named("batch_watch")
        watch.restype = ctypes.c_ulong
        alarm = watch(_pointer(rows), ctypes.c_long(len(rows)), _pointer(evidence))
        return evidence, int(alarm) or None

    def details(self, contexts: Any, arms: Mask | None) -> dict[str, Any]:
        """Return certificates, statuses as ``Policy.status`` has them, and unknown levels."""
        decided = self.decide(contexts, eligible=arms)
        unknown = decided.status == LEVEL_UNKNOWN
        status = np.where(unknown, Status.RECOMMENDED, -1)
        for python, ours in STATUSES.items():
            status[decided.status == ours] = python
        return {"status": status, "certificate": decided.certificate, "unknown": unknown}

    @property
    def takes_arms(self) -> bool:
        return hasattr(self._library, f"{self.prefix}_decide_among")

    def encode(self, column: str, text: str | None) -> int:
        """Return the code of a level, −1 if it is unknown; ``column`` as the function has it."""
        data = None if text is None else text.encode("utf-8")
        return int(self._named(f"encode_{column}")(ctypes.c_char_p(data)))

    def _mask(self, eligible: Mask | None, rows: int) -> NDArray[Any] | None:
        if eligible is None:
            return None
        if not self.takes_arms:
            raise ValueError("the export takes no eligible arms; write it with eligible=True")
        if np.shape(eligible) != (rows, self.n_arms):
            wanted = (rows, self.n_arms)
            raise ValueError(f"eligible must have shape {wanted}, got {np.shape(eligible)}")
        return np.ascontiguousarray(eligible, dtype=np.ubyte)

    def _named(self, name: str) -> Any:
        return getattr(self._library, f"{self.prefix}_{name}")

    def _texts(self, name: str, count: int) -> tuple[str, ...]:
        table = (ctypes.c_char_p * count).in_dll(self._library, f"{self.prefix}_{name}")
        return tuple((text or b"").decode("utf-8") for text in table)

    def _rows(self, contexts: Any) -> NDArray[Any]:
        with np.errstate(over="ignore"):
            rows = np.ascontiguousarray(contexts, dtype=self.dtype)
        if rows.ndim != 2 or rows.shape[1] != self.dimension:
            raise ValueError(
                f"contexts must have shape (m, {self.dimension}), got {np.shape(contexts)}"
            )
        return rows


def _pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
