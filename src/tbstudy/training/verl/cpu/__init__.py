"""verl's trainer without a GPU: the platform that it asks for devices, and a rollout server on transformers.

Loaded through `plugin` when a run says `cluster.platform: cpu`, by nothing else.
"""
