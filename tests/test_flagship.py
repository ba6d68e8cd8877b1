"""What README and docs/why.md say: padding leaks through a speech model with its own mask, and not with ours."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("transformers")
ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def script() -> SimpleNamespace:
    return SimpleNamespace(**runpy.run_path(str(ROOT / "docs/flagship.py")))


def test_the_picture_shows_what_is_measured() -> None:
    flagship = script()
    padded, own, ours = flagship.differences(flagship.wav2vec2()).values()
    assert max(ours) < 1e-5, "alone or in company: the same"
    assert max(padded[0], own[0]) < 1e-5, "nothing is padded where a recording is as long as the longest"
    assert min(padded[1:] + own[1:]) > 0.1
    shown = [float(n) / 100 for n in re.findall(r">(\d+)%</text>", flagship.PICTURE.read_text())]
    assert shown == pytest.approx(padded[1:] + own[1:], abs=0.02)
    low, high = re.search(r"by (\d+) to (\d+) %", (ROOT / "docs/why.md").read_text()).groups()
    assert (int(low), int(high)) == pytest.approx((100 * min(own[1:]), 100 * max(own[1:])), abs=2)
    for name, found in (("padded", padded), ("padded, with attention_mask", own)):
        bar, percent = re.search(rf"^{name} +([█▌]+) +(\d+) %$", README, re.MULTILINE).groups()
        assert int(percent) == pytest.approx(100 * found[-1], abs=2)
        assert 2 * bar.count("█") + bar.count("▌") == int(percent), "half a percent a block"
    assert re.search(r"^masked tensor +< 0.001 %$", README, re.MULTILINE)


def test_a_second_model_is_served_by_its_own_mask() -> None:
    padded, own, ours = script().differences(script().bert()).values()
    assert max(own + ours) < 1e-5
    shown = README.partition("BERT: attention_mask is enough")[2]
    assert float(re.search(r"^padded +▏ +([\d.]+) %$", shown, re.MULTILINE).group(1)) == pytest.approx(
        100 * padded[-1], abs=0.1
    )
    assert len(re.findall(r"< 0.001 %$", shown, re.MULTILINE)) == 2


def test_the_lines_on_the_page_are_those_of_the_script() -> None:
    shown = re.search(r"^```py\n(.*?)^```$", (ROOT / "docs/why.md").read_text(), re.MULTILINE | re.DOTALL).group(1)
    script = (ROOT / "docs/flagship.py").read_text()
    calls = [line.partition("#")[0].strip() for line in shown.splitlines()]
    assert len(calls) == 2
    assert all(call in script for call in calls)
