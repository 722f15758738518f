"""Properties are tested without a time limit: on a shared machine it would fail by chance."""

from hypothesis import settings

settings.register_profile("arrays", deadline=None, max_examples=60)
settings.load_profile("arrays")
