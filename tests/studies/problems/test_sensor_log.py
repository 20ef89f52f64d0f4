from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat
from scipy.sparse import csc_array

from contextgap.studies.problems import SensorLog

rng = np.random.default_rng(0)
TELEMETRY = rng.normal(size=(5, 40))  # channels by time
NOISE = rng.uniform(1, 2, size=(3, 40))  # sensors by time


@pytest.fixture
def save(tmp_path):
    def save(telemetry=TELEMETRY, noise=NOISE, **others):
        path = tmp_path / "flight.mat"
        savemat(path, {"telMat": telemetry, "bNorm": noise} | others)
        return path

    return save


@pytest.mark.parametrize("telemetry", [TELEMETRY, TELEMETRY.T])
@pytest.mark.parametrize("noise", [NOISE, NOISE.T])
def test_matlab_in_every_orientation(save, telemetry, noise):
    problem = SensorLog(save(telemetry, noise), scale=False).sample()
    np.testing.assert_array_equal(problem.contexts, TELEMETRY.T)
    np.testing.assert_array_equal(problem.rewards, -NOISE.T)
    assert (problem.name, problem.arms, problem.ordered) == ("flight", (0, 1, 2), True)


@pytest.mark.parametrize(
    ("telemetry", "noise", "shape"),
    [
        ((3, 40), (3, 40), (40, 3)),  # as many channels as sensors: time is the longer
        ((40, 3), (3, 40), (40, 3)),
        ((40, 40), (3, 40), (40, 40)),
        ((100, 40), (3, 40), (40, 100)),  # more channels than steps
        ((4, 6), (10, 6), (6, 4)),  # more sensors than steps
        ((1, 40), (40, 1), (40, 1)),
    ],
)
def test_the_time_axis(save, telemetry, noise, shape):
    path = save(rng.normal(size=telemetry), rng.normal(size=noise))
    assert SensorLog(path).sample().contexts.shape == shape


def test_square_matrices_have_time_second(save):
    telemetry, noise = rng.normal(size=(2, 6, 6))
    problem = SensorLog(save(telemetry, noise), scale=False).sample()
    np.testing.assert_array_equal(problem.contexts, telemetry.T)
    np.testing.assert_array_equal(problem.rewards, -noise.T)


@pytest.mark.parametrize("noise", [(3, 39), (7, 8)])
def test_lengths_that_do_not_match_are_named(save, noise):
    path = save(rng.normal(size=(3, 40)), np.ones(noise))
    with pytest.raises(ValueError, match=r"flight\.mat: telMat \(3, 40\) and bNorm .* in common"):
        SensorLog(path).sample()


def test_labels_scale_and_first_rows(save):
    problem = SensorLog(save(), arms=["hull", "panel", "boom"]).sample(10, seed=1)
    channels = TELEMETRY.T
    expected = (channels - channels.mean(axis=0)) / channels.std(axis=0)
    np.testing.assert_allclose(problem.contexts, expected[:10])
    assert problem.arms == ("hull", "panel", "boom")


def test_sparse_and_integer_matrices(save):
    telemetry = csc_array(np.eye(5, 40))
    problem = SensorLog(save(telemetry, np.ones((3, 40), dtype=int)), scale=False).sample()
    np.testing.assert_array_equal(problem.contexts, np.eye(5, 40).T)


def spoilt(matrix, value):
    matrix = matrix.copy()
    matrix[1, 6] = value
    return matrix


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"telemetry": spoilt(TELEMETRY, np.nan)}, "telMat, row 2, column 7: .*got nan"),
        ({"noise": spoilt(NOISE, np.inf)}, "bNorm, row 2, column 7: .*got inf"),
        ({"noise": NOISE + 1j}, "bNorm must be a matrix of real numbers, got complex128"),
        ({"noise": "text"}, "bNorm must be a matrix of real numbers"),
        ({"noise": np.zeros((3, 0))}, "bNorm must be a matrix of real numbers"),
        ({"noise": np.ones((2, 3, 40))}, r"bNorm must be a matrix .* shape \(2, 3, 40\)"),
    ],
)
def test_bad_matrices_are_named(save, content, message):
    with pytest.raises(ValueError, match=r"flight\.mat.*" + message):
        SensorLog(save(**content)).sample()


def test_a_missing_variable_is_named(tmp_path):
    path = tmp_path / "flight.mat"
    savemat(path, {"telMat": TELEMETRY, "other": 1})
    with pytest.raises(ValueError, match=r"no variable 'bNorm'.*\['other', 'telMat'\]"):
        SensorLog(path).sample()


@pytest.mark.parametrize("content", [b"", b"not a MATLAB file" * 20])
def test_what_is_not_matlab_is_named(tmp_path, content):
    path = tmp_path / "flight.mat"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"flight\.mat: not a readable MATLAB file"):
        SensorLog(path).sample()


def test_the_newest_matlab_format_is_named(tmp_path):
    path = tmp_path / "flight.mat"
    header = b"MATLAB 7.3 MAT-file".ljust(124) + (0x0200).to_bytes(2, "little") + b"IM"
    path.write_bytes(header + bytes(400))
    with pytest.raises(ValueError, match=r"7\.3 format.*save it with '-v7'"):
        SensorLog(path).sample()


def test_missing_files_and_unknown_suffixes(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"gone\.mat: there is no such file"):
        SensorLog(tmp_path / "gone.mat").sample()
    with pytest.raises(ValueError, match=r"'\.txt' is unknown; known are \.mat, \.csv"):
        SensorLog(tmp_path / "log.txt").sample()


LOG = pd.DataFrame(
    {
        "time": ["12:00", "12:01", "12:02"],
        "current": [1.0, 2.0, 3.0],
        "noise_hull": [5.0, 6.0, 7.0],
        "noise_boom": [1.5, 9.0, 2.5],
        "heat": [20.0, 21.0, 19.0],
    }
)


@pytest.fixture(params=["csv", "parquet"])
def log(request, tmp_path):
    path = tmp_path / f"log.{request.param}"
    LOG.to_csv(path, index=False) if request.param == "csv" else LOG.to_parquet(path)
    return path


def test_columns(log):
    problem = SensorLog(log, scale=False).sample()
    assert problem.arms == ("noise_hull", "noise_boom")
    assert problem.columns == ("current", "heat")  # time stamps are text throughout
    np.testing.assert_array_equal(problem.contexts, LOG[["current", "heat"]])
    np.testing.assert_array_equal(problem.rewards, -LOG[["noise_hull", "noise_boom"]])
    assert problem.ordered


def test_columns_by_name(log):
    maker = SensorLog(log, noise=["heat", "noise_boom"], telemetry=["current"], scale=False)
    problem = maker.sample(2)
    np.testing.assert_array_equal(problem.contexts, LOG[["current"]][:2])
    np.testing.assert_array_equal(problem.rewards, -LOG[["heat", "noise_boom"]][:2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": ["noise_tail"]}, "there is no column 'noise_tail'; the columns are"),
        ({"telemetry": ["volts"]}, "there is no column 'volts'"),
        ({"telemetry": ["noise_hull"]}, "'noise_hull' cannot be both in telemetry and in noise"),
        ({"telemetry": ["time"]}, "column 'time': a number is needed, got '12:00'"),
        ({"noise": list(LOG.columns[1:])}, "no numeric column is left as telemetry"),
        ({"arms": ["hull"]}, "name the 2 columns of rewards, got 1"),
    ],
)
def test_settings_that_do_not_fit_the_log_are_named(log, options, message):
    with pytest.raises(ValueError, match=message):
        SensorLog(log, **options).sample()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("heat,loud\n1,2\n", "no column's name starts with 'noise'.*'heat', 'loud'"),
        ("heat,noise\n1,2\nx,3\n", "line 3, column 'heat': a number is needed, got 'x'"),
        ("heat,noise\n1,2\n,3\n", "line 3, column 'heat': the cell is empty"),
        ("heat,noise\n1,\n", "line 2, column 'noise': the cell is empty"),
        ("noise,noise_b\n1,2\n", "no numeric column is left as telemetry"),
    ],
)
def test_bad_logs_are_named(tmp_path, content, message):
    path = tmp_path / "log.csv"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"log\.csv.*" + message):
        SensorLog(path).sample()


@pytest.mark.parametrize("argument", ["noise", "telemetry"])
def test_matlab_files_have_no_column_names(argument):
    with pytest.raises(ValueError, match=f"{argument} must be left out for a MATLAB file"):
        SensorLog("flight.mat", **{argument: ["a"]})
