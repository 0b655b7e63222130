"""Tests that need a GPU are marked ``gpu`` and run on ``GPU``."""

import os

GPU = os.environ.get("STEPLINE_TEST_GPU", "cuda")
"""The dry run of perf/gpu.sh sets the variable to ``cpu``, to see that these tests work before minutes count."""
