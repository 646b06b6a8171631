"""What covey.toml may say, and the line of what it may not."""

from __future__ import annotations

import pytest

from covey import config
from covey.errors import Invalid


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "-inf", "10_000_001"])
def test_megabytes_to_keep_have_a_range(value: str) -> None:
    with pytest.raises(Invalid, match="line 2: keep_megabytes must be between 0 and 10,000,000"):
        config.parse(f"[log]\nkeep_megabytes = {value}\n")


def test_nothing_may_be_kept() -> None:
    assert config.parse("[log]\nkeep_megabytes = 0\n").log.keep_megabytes == 0


def test_a_number_too_large_for_a_number_is_named_with_its_line() -> None:
    with pytest.raises(Invalid, match="line 3: ttl is too large a number"):
        config.parse(f"# Long\n[leases]\nttl = {'9' * 400}\n")
