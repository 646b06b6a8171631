"""Browsers: invited once, let in once, known for a while."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from covey.core import nouns
from covey.core.people import devices
from covey.core.people.devices import CODE_LIFE_S, DEVICE_LIFE_S, Device, DeviceKind
from covey.errors import CoveyError, Refused, Unknown

NOW = 1_700_000_000.0


def invited(kind: DeviceKind = DeviceKind.PAGE) -> Device:
    return nouns.first(devices.Device, "device-1", 1, devices.invite(kind, "laptop", "code", NOW), NOW)


def joined() -> Device:
    device = invited()
    return devices.apply(device, devices.join(device, "", "token", NOW), NOW)


@pytest.mark.parametrize(("kind", "seconds"), [(DeviceKind.PAGE, 60), (DeviceKind.PHONE, 300)])
def test_a_code_works_until_its_time_is_over(kind: DeviceKind, seconds: float) -> None:
    assert devices.join(invited(kind), "", "token", NOW + seconds - 0.001).label == "laptop"
    with pytest.raises(Unknown):
        devices.join(invited(kind), "", "token", NOW + seconds)


def test_a_code_works_once() -> None:
    with pytest.raises(Unknown):
        devices.join(joined(), "", "another", NOW + 1)


def test_a_code_that_was_revoked_does_not_work() -> None:
    device = invited()
    with pytest.raises(Unknown):
        devices.join(devices.apply(device, devices.revoke(device), NOW), "", "token", NOW)


def test_a_wrong_code_is_refused_in_the_same_words_as_one_that_was_used() -> None:
    with pytest.raises(Unknown) as wrong:
        devices.join(None, "", "token", NOW)
    with pytest.raises(Unknown) as used:
        devices.join(joined(), "", "token", NOW)
    assert wrong.value.message == used.value.message


def test_a_device_is_revoked_once() -> None:
    device = devices.apply(joined(), devices.Revoked(), NOW)
    with pytest.raises(Refused, match="revoked already"):
        devices.revoke(device)


def test_a_browser_is_known_from_joining_until_its_life_is_over() -> None:
    assert not devices.is_known(invited(), NOW)
    assert devices.is_known(joined(), NOW + DEVICE_LIFE_S - 1)
    assert not devices.is_known(joined(), NOW + DEVICE_LIFE_S)
    assert not devices.is_known(replace(joined(), revoked=NOW), NOW)


def test_a_browser_joins_again_in_the_second_half_of_its_life() -> None:
    assert devices.is_fresh(joined(), NOW)
    assert not devices.is_fresh(joined(), NOW + DEVICE_LIFE_S / 2)
    assert not devices.is_fresh(invited(), NOW)


@given(kind=st.sampled_from(DeviceKind), at=st.floats(0, 4e9), later=st.floats(0, 1000))
def test_whoever_joins_in_time_is_known_then(kind: DeviceKind, at: float, later: float) -> None:
    device = nouns.first(devices.Device, "device-1", 1, devices.invite(kind, "", "code", at), at)
    try:
        device = devices.apply(device, devices.join(device, "", "token", at + later), at + later)
    except Unknown:
        assert later >= CODE_LIFE_S[kind] - 0.01
    else:
        assert devices.is_known(device, at + later)


class AnyOrder(RuleBasedStateMachine):
    """Whatever is asked, whenever, a code lets one browser in at most, and nobody comes back."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.device = invited()
        self.tokens: list[str] = []
        self.gone = False

    @rule(seconds=st.floats(0, 90))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def join(self) -> None:
        token = f"token-{len(self.tokens)}"
        try:
            event = devices.join(self.device, "", token, self.now)
        except CoveyError:
            return
        self.device = devices.apply(self.device, event, self.now)
        self.tokens.append(token)

    @rule()
    def revoke(self) -> None:
        try:
            self.device = devices.apply(self.device, devices.revoke(self.device), self.now)
        except CoveyError:
            assert self.gone
        self.gone = True

    @invariant()
    def one_code_one_browser(self) -> None:
        assert len(self.tokens) <= 1

    @invariant()
    def who_is_gone_stays_gone(self) -> None:
        assert not (self.gone and devices.is_known(self.device, self.now))


TestAnyOrder = AnyOrder.TestCase
