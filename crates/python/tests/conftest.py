import pytest

import drumlin


@pytest.fixture
def path(tmp_path):
    return tmp_path / "db"


@pytest.fixture
def db(path):
    with drumlin.open(path, memory_budget=64 << 20) as db:
        yield db
