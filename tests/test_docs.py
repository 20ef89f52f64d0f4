"""What the README and the guide show can be run as it stands."""

import re
from pathlib import Path

import pytest
from matplotlib import pyplot

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md"])
def test_code_blocks_run_one_after_the_other(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)
    assert blocks
    names = {"__name__": page}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{page}, block {number}", "exec", dont_inherit=True), names)
    pyplot.close("all")
    assert "score card" in capsys.readouterr().out
