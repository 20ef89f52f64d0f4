"""Run a policy that was written as an ONNX graph."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contextgap.base import checks
from contextgap.base.files import FileFormatError
from contextgap.base.labels import Label, decode_label
from contextgap.base.names import study_import
from contextgap.export.onnx.eligible import NAME
from contextgap.export.onnx.writer import PREFIX
from contextgap.export.typed_rows import read_rows
from contextgap.tables.contexts import ContextSchema
from contextgap.tables.eligible import Mask, read_eligible
from contextgap.tables.schema import TableSchema

# Numbers in the largest value of one run: 2^18 doubles are 2 MB, which caches still hold.
_BLOCK = 2**18


class GraphPolicy:
    """A policy read from an ONNX file and run by onnxruntime on the processor.

    Parameters
    ----------
    path
        A file that ``write_onnx`` wrote.
    threads
        How many threads one run may use; 0 leaves it to onnxruntime.
    """

    def __init__(self, path: str | os.PathLike[str], *, threads: int = 0) -> None:
        runtime = study_import("onnxruntime", extra="onnx")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = checks.whole("threads", threads, least=0)
        options.log_severity_level = 3
        self._session = runtime.InferenceSession(
            os.fspath(path), options, providers=["CPUExecutionProvider"]
        )
        about = self._session.get_modelmeta().custom_metadata_map
        if f"{PREFIX}labels" not in about:
            raise FileFormatError(f"{path} is an ONNX file, but not one that contextgap wrote")
        known = {
            key.removeprefix(PREFIX): json.loads(value)
            for key, value in about.items()
            if key.startswith(PREFIX) and key != f"{PREFIX}version"
        }
        self.version: str = about[f"{PREFIX}version"]
        self.labels: tuple[Label, ...] = tuple(decode_label(label) for label in known["labels"])
        self.columns: tuple[str, ...] | None = known["columns"] and tuple(known["columns"])
        self.dimension: int = known["dimension"]
        described = known.get("table")
        self.table = None if described is None else TableSchema.restored(described)
        self.recommender: dict[str, Any] = known["recommender"]
        self.kernel: dict[str, Any] = known["kernel"]
        self.probability: float | None = known["probability"]
        self.outputs = tuple(output.name for output in self._session.get_outputs())
        self.takes_arms = NAME in [each.name for each in self._session.get_inputs()]
        single = self._session.get_inputs()[0].type == "tensor(float)"
        self.dtype: np.dtype[Any] = np.dtype(np.float32 if single else np.float64)
        self._rows = max(1, _BLOCK // known["numbers_per_context"])

    def recommend(self, contexts: Any, *, arms: Any = None) -> NDArray[np.int64]:
        """Return the index of the arm to deploy at each context; −1 where there is no answer.

        Parameters
        ----------
        contexts
            Shape (n, d), however many, or a DataFrame with the columns by name. Where columns have
            types, an array of numbers holds what the graph takes, codes in place of levels; a
            DataFrame, a mapping or rows of cells hold levels and dates as they are.
        arms
            The eligible arms, all by default, as for ``Policy.recommend``; the file must have been
            written with ``eligible=True``. A boolean array may have rows without any, which get no
            answer.
        """
        return self._run(contexts, arms, ("arm",))["arm"]

    def status(self, contexts: Any, *, arms: Any = None) -> NDArray[np.int64]:
        """Return how the policy comes to its answers, as ``Policy.status`` does; −1 for no answer.

        Parameters
        ----------
        contexts, arms
            As for ``recommend``.
        """
        if "status" not in self.outputs:
            raise ValueError("the policy has no fallback, so all that is answered is recommended")
        return self._run(contexts, arms, ("status",))["status"]

    def explain(self, contexts: Any, *, arms: Any = None) -> dict[str, NDArray[Any]]:
        """Return everything the graph puts out: the arm, what is believed, and the certificate.

        Parameters
        ----------
        contexts, arms
            As for ``recommend``.
        """
        if "certificate" not in self.outputs:
            raise ValueError("the file holds decisions only; write it with explain=True")
        return self._run(contexts, arms, self.outputs)

    def _run(self, contexts: Any, arms: Any, wanted: tuple[str, ...]) -> dict[str, NDArray[Any]]:
        given = self._given(contexts, arms)
        blocks = [self._session.run(wanted, block) for block in self._blocks(given)]
        return {name: np.concatenate(parts) for name, *parts in zip(wanted, *blocks, strict=True)}

    def _given(self, contexts: Any, arms: Any) -> dict[str, NDArray[Any]]:
        """What the graph takes, by name."""
        rows = self._read(contexts)
        if self.takes_arms:
            return {"contexts": rows, NAME: self._mask(arms, len(rows))}
        if arms is not None:
            raise ValueError("the file takes no eligible arms; write it with eligible=True")
        return {"contexts": rows}

    def _mask(self, arms: Any, rows: int) -> Mask:
        everything = (rows, len(self.labels))
        if isinstance(arms, np.ndarray) and arms.dtype == np.bool_ and arms.shape == everything:
            return arms  # not read: what leaves no arm is the graph's to answer
        mask = read_eligible(arms, self.labels, rows, single=False)
        return np.ones(everything, dtype=bool) if mask is None else mask

    def _blocks(self, given: dict[str, NDArray[Any]]) -> Iterator[dict[str, NDArray[Any]]]:
        for first in range(0, max(1, len(given["contexts"])), self._rows):
            block = slice(first, first + self._rows)
            yield {name: np.ascontiguousarray(values[block]) for name, values in given.items()}

    def _read(self, contexts: Any) -> NDArray[Any]:
        numbers = isinstance(contexts, np.ndarray) and contexts.dtype.kind in "fiub"
        if self.table is None:
            # Not the schema's own reading: what is not finite is the graph's to answer.
            _, values = ContextSchema(self.dimension, self.columns).in_order(contexts)
        elif numbers:
            values = contexts
        else:
            values = read_rows(self.table, contexts)
        with np.errstate(over="ignore"):  # too large for float32 is infinite, and answered so
            rows = np.ascontiguousarray(values, dtype=self.dtype)
        if rows.ndim != 2 or rows.shape[1] != self.dimension:
            raise ValueError(
                f"contexts must have shape (n, {self.dimension}), got {np.shape(values)}"
            )
        return rows
