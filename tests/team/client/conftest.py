from tests.team.service.conftest import service  # noqa: F401  # a fixture
