"""Experiments on a model: what is claimed of models in general is tried on one in particular."""
