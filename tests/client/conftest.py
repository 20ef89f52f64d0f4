from tests.service.conftest import service  # noqa: F401  # a fixture
