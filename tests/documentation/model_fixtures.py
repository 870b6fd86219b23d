"""The conftest.py of pages with torch: `models` as fixtures."""

import importlib

import pytest

models = importlib.import_module("models")  # beside this file, in the folder of the page


@pytest.fixture
def model() -> object:
    return models.model


@pytest.fixture
def encoder() -> object:
    return models.model


@pytest.fixture
def batch() -> object:
    return models.batch


@pytest.fixture
def data() -> object:
    return [models.batch] * 3


@pytest.fixture
def training() -> object:
    return models.Training()
