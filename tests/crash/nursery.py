"""Loaded by the process that all others are forked from, so that one that is killed is replaced within a moment."""

from __future__ import annotations

import goalmode.cli.serve
import goalmode.model.wire.openai_chat  # noqa: F401
import tests.crash.crowd
import tests.crash.storm  # noqa: F401
from goalmode.context.tokens import counter

counter("o200k_base").count("the vocabulary is read once")
