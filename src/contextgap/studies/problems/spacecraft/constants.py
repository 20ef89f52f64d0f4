"""Every number of the spacecraft, with its unit and where it comes from.

Body axes: z along the long side, x and y across; the origin is the middle of the 3U frame.
Numbers with no other source are assumed: plausible for a 3U CubeSat, and chosen so that each of the
three sensors is at times the best.
"""

from __future__ import annotations

from typing import Final, TypeAlias

Vector: TypeAlias = tuple[float, float, float]

# Orbit and Earth.

# GRIFEX (NORAD 40379), 31 August 2015; NORAD's public catalogue.
TLE: Final = (
    "1 40379U 15003D   15243.42702278  .00003367  00000-0  17130-3 0  9993",
    "2 40379  99.1124 290.6779 0157088   8.9691 351.4280 15.07659299 31889",
)
J2000: Final = 2451545.0  # Julian date of 2000-01-01 12:00; definition
DAY: Final = 86400.0  # s; definition
EARTH_RADIUS: Final = 6371.0  # km; mean radius (IUGG)
IGRF_RADIUS: Final = 6371.2  # km; reference radius of the IGRF
SUN_ANGULAR_RADIUS: Final = 0.2666  # deg; mean, 959.63 arcsec (IAU)
GROUND_STATION: Final = (42.27, -83.74)  # deg north, deg east; Ann Arbor, where GRIFEX is operated

# Attitude.

INERTIA: Final[Vector] = (0.033, 0.033, 0.006)  # kg m²; assumed, about a box of 3.2 kg
FIRST_RATE: Final[Vector] = (0.6, 0.3, 1.2)  # deg/s at the start
RESIDUAL_DIPOLE: Final[Vector] = (0.002, -0.001, 0.004)  # A m²
DISTURBANCE: Final = 1e-8  # N m, standard deviation of a 10 s mean; assumed (drag at 500 km)
CONTROL_CYCLE: Final = 1.0  # s between torquer and wheel commands, at most
TORQUER_LIMIT: Final = 0.1  # A m² per axis
BDOT_GAIN: Final = 6e4  # A m² s/T
REMANENCE: Final = 0.004  # of the commanded moment; assumed, a soft-magnetic core
REMANENCE_LAG: Final = 330.0  # s
LEAKAGE: Final = 0.001  # of the commanded moment, left while the sensors are read
WHEEL_FIRST: Final = 0.5e-3  # N m s at the start; assumed. The wheel's axis is y.
WHEEL_FULL: Final = 1.7e-3  # N m s at full speed
WHEEL_FULL_RPM: Final = 8000.0  # rpm
WHEEL_LAG: Final = 120.0  # s to approach a new set-point
WHEEL_TORQUE: Final = 2e-5  # N m, limit
WHEEL_TARGETS: Final = (-1.5e-3, 1.7e-3)  # N m s, range of set-points

# What happens when.

WHEEL_INTERVAL: Final = 1500.0  # s, mean time between new set-points
PAYLOAD_INTERVAL: Final = (1500.0, 5000.0)  # s, mean wait in high and in low latitudes
PAYLOAD_LATITUDE: Final = 50.0  # deg, above which latitudes are high
DETUMBLE_INTERVAL: Final = 3500.0  # s, mean wait between B-dot campaigns
RUN_LENGTH: Final = (300.0, 900.0)  # s, of payload runs and B-dot campaigns
BEACON_SHARE: Final = 0.12  # of telemetry frames that coincide with a beacon
DOWNLINK_ELEVATION: Final = 5.0  # deg above the station's horizon; assumed, a usual mask

# Power.

PANEL_CURRENT: Final = 0.92  # A of a body panel facing the Sun; assumed, 7 W at 8 V
WING_CURRENT: Final = 0.46  # A of the two-sided wing
ALBEDO: Final = 0.06  # of the Sun's light, on every panel while sunlit
PANEL_REFERENCE: Final = 28.0  # °C at which panel currents are stated; usual for space cells
PANEL_DRIFT: Final = 6e-4  # 1/K, change of panel current; assumed, as of triple-junction cells
REGULATOR: Final = 0.9  # of the panels' current reaches the bus
DOWNLINK_CURRENT: Final = 1.05  # A; assumed, a 2 W UHF transmitter
BEACON_CURRENT: Final = 0.9  # A
PAYLOAD_CURRENT: Final = 0.65  # A
HEATER_CURRENT: Final = 0.45  # A
TORQUER_CURRENT: Final = 2.5  # A per A m², each axis
WHEEL_CURRENT: Final = (0.02, 0.08, 3e3)  # A at rest, A more at full speed, A per N m
PROCESSOR_CURRENT: Final = (0.18, 0.03)  # A, mean and standard deviation
PROCESSOR_LAG: Final = 495.0  # s, correlation time of the processor's current
BATTERY_CAPACITY: Final = 2.6  # A h; assumed, one pair of 18650 cells in series
BATTERY_VOLTAGE: Final = (7.2, 1.15)  # V when empty, V more when full; assumed, two Li-ion cells
BATTERY_FIRST: Final = 0.9  # state of charge at the start
CHARGE_CURRENT: Final = 1.2  # A, limit; assumed, about half the capacity per hour
CHARGE_TAPER: Final = 0.04  # state of charge below full at which charging tapers

# Temperatures: first-order lags towards what surrounds a node.

PANEL_LAG: Final = 600.0  # s
PANEL_BALANCE: Final = (-35.0, 85.0, 18.0)  # °C dark, K facing the Sun, K while sunlit
BOOM_LAG: Final = 420.0  # s
BOOM_BALANCE: Final = (-45.0, 95.0, 0.7)  # °C dark, K broadside to the Sun, exponent
INTERIOR_LAG: Final = 4500.0  # s
INTERIOR_BALANCE: Final = (-17.5, 25.0, 9.0)  # °C dark, K while sunlit, K per A of load
BATTERY_LAG: Final = 5400.0  # s
BATTERY_BALANCE: Final = (-1.0, 14.0)  # K from the interior, K per A of heater
HEATER_RANGE: Final = (4.0, 6.0)  # °C, on below, off above
AMPLIFIER_LAG: Final = 300.0  # s
AMPLIFIER_BALANCE: Final = 28.0  # K above the interior per A of transmitter
FIRST_TEMPERATURES: Final = {  # °C at the start
    "panel": 10.0,
    "interior": 8.0,
    "battery": 7.0,
    "amplifier": 10.0,
    "boom": 0.0,
}

# Where things are.

SENSORS: Final[dict[str, Vector]] = {  # m
    "top deck": (0.020, 0.010, 0.140),
    "bottom deck": (-0.020, -0.010, -0.140),
    "boom": (0.0, 0.220, 0.030),
}
# Net loop of each current, the part that its return path does not cancel: centre and two
# half-edges of a rectangle, m; all assumed. The moment points along first × second half-edge.
LOOPS: Final[dict[str, tuple[Vector, Vector, Vector]]] = {
    "panel +X": ((0.049, 0.0, 0.015), (0.0, 0.0, 0.120), (0.0, 0.0011, 0.0)),
    "panel -X": ((-0.049, 0.0, -0.015), (0.0, 0.0, 0.120), (0.0, -0.0010, 0.0)),
    "panel +Y": ((0.0, 0.049, 0.015), (0.0, 0.0, 0.120), (0.0012, 0.0, 0.0)),
    "panel -Y": ((0.0, -0.049, -0.015), (0.0, 0.0, 0.120), (-0.0010, 0.0, 0.0)),
    "wing": ((0.0, 0.150, 0.0), (0.0, 0.0, 0.090), (0.004, 0.0, 0.0)),
    "battery": ((0.010, -0.015, -0.075), (0.0, 0.012, 0.003), (0.005, 0.0, 0.0)),
    "bus": ((0.0, 0.010, -0.030), (0.0, 0.030, 0.0), (0.0, 0.0, 0.004)),
    "transmitter": ((-0.010, 0.0, 0.085), (0.020, 0.0, 0.0), (0.0, 0.005, 0.001)),
    "payload": ((0.010, 0.020, 0.055), (0.030, 0.0, 0.0), (0.0, 0.001, 0.004)),
    "heater": ((0.020, -0.020, -0.090), (0.015, 0.0, 0.0), (0.0, 0.005, 0.0)),
    "wheel": ((0.0, 0.0, 0.010), (0.014, 0.0, 0.0), (0.0, 0.0, 0.014)),
}
TORQUERS: Final[dict[str, Vector]] = {  # m
    "X": (0.0, 0.030, -0.060),
    "Y": (0.030, 0.0, -0.060),
    "Z": (0.0, 0.0, -0.050),
}
ROTOR: Final[Vector] = (0.0, 0.0, 0.010)  # m
ROTOR_DIPOLE: Final = 1e-3  # A m², across the wheel's axis
ROTOR_BANDWIDTH: Final = 8.0  # Hz, above which a reading averages the rotor away

# Sensors.

# Hard iron: the field of these currents at each sensor is taken off, as a ground calibration
# with the spacecraft in its most usual state would do. A; assumed, near a flight's medians.
CALIBRATION_CURRENTS: Final = {
    "panel +X": 0.04,
    "panel -X": 0.04,
    "panel +Y": 0.04,
    "panel -Y": 0.04,
    "wing": 0.07,
    "battery": 0.0,
    "bus": 0.30,
    "transmitter": 0.0,
    "payload": 0.0,
    "heater": 0.0,
    "wheel": 0.06,
}
DRIFT: Final = (  # nT/K, offset of each sensor's x, y and z
    (1.5, 0.8, 0.5),
    (0.8, -2.0, 0.8),
    (1.4, -0.7, 0.7),
)
CALIBRATION_TEMPERATURES: Final = (5.0, 5.0, 0.0)  # °C of each sensor, without drift
AMPLIFIER_SHARE: Final = 0.3  # of the amplifier's warmth reaches the top deck's sensor
NOISE: Final = (4.0, 4.0, 6.0)  # nT per axis, white
# What calibration left of scale errors (diagonal) and misalignments (off it, rad), times 1000;
# assumed.
GAIN_ERRORS: Final = (
    ((0.6, -0.4, 0.3), (0.5, -0.5, 0.4), (-0.3, 0.2, 0.7)),
    ((-0.5, 0.3, -0.4), (0.2, 0.6, -0.3), (0.4, -0.5, 0.5)),
    ((0.7, 0.5, -0.6), (-0.4, 0.8, 0.5), (0.5, -0.6, -0.6)),
)
FIELD_NOISE: Final = 60.0  # nT per axis, of the on-board magnetometer in the telemetry
REWARD_UNIT: Final = 100.0  # nT of error that cost a reward of 1; chosen

# The bench: what its script and its instruments add to the above.

BENCH_STEP: Final = 10.0  # s between rows; chosen, as of a flight
BENCH_ORBIT: Final = 5730.0  # s of the script's orbit; GRIFEX's, 15.08 orbits a day
BENCH_ECLIPSE: Final = 0.36  # of an orbit without Sun; usual for low orbits
BENCH_LATITUDE: Final = 81.0  # deg, highest latitude, which paces the payload; GRIFEX's
BENCH_PASSES: Final = 3  # orbits from one downlink to the next
BENCH_PASS: Final = 0.1  # of an orbit, length of a downlink
BENCH_TURNS: Final = (600.0, 7000.0)  # s in which the Sun circles the z axis, and nods
BENCH_NOD: Final = 60.0  # deg, highest elevation of the Sun above the xy plane
BENCH_NOISE: Final = 0.1  # nT per axis of a reading; assumed, above a laboratory fluxgate's own
BENCH_RESOLUTION: Final = 1e-3  # A, of the currents in telemetry
