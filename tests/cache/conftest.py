"""Fixtures for tests of list caches."""

from __future__ import annotations

import pytest

from isthmus.threads import Team


@pytest.fixture(scope="module", params=[1, 3], ids="{} threads".format)
def team(request):
    team = Team(request.param)
    yield team
    team.close()
