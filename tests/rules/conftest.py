"""Rules need no database and no clock; how long one example takes says only how busy the machine is."""

from hypothesis import HealthCheck, settings

settings.register_profile("rules", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rules")
