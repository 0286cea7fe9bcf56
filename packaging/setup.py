"""The wheel: the Python package of pyproject.toml, and below data/ what goes to bin, lib and share of the environment."""

import os

from setuptools import setup

FILES = [
    (os.path.relpath(directory, "data"), sorted(os.path.join(directory, name) for name in names))
    for directory, _, names in sorted(os.walk("data"))
    if names
]

setup(data_files=FILES)
