from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from contextgap.studies.problems.spacecraft import fading_sum


@pytest.mark.parametrize("shape", [(1,), (50,), (50, 3)])
def test_it_is_a_first_order_filter(shape, rng):
    inputs = rng.normal(size=shape)
    np.testing.assert_allclose(
        fading_sum(inputs, 0.9), lfilter([1.0], [1.0, -0.9], inputs, axis=0), rtol=1e-9
    )
