"""What tests of commands share."""

import pytest

from contextgap.studies.report import figures, studies


@pytest.fixture
def undrawn(monkeypatch):
    """Write empty figures: drawing takes most of the time of a small study."""

    def save(figure, folder, name):
        folder.mkdir(parents=True, exist_ok=True)
        paths = folder / f"{name}.svg", folder / f"{name}.png"
        for path in paths:
            path.write_text("<svg></svg>")
        return paths

    monkeypatch.setattr(studies, "save", save)
    monkeypatch.setattr(figures, "lay_out", lambda _: None)
