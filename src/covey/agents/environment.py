"""What the program of an agent gets of the environment in which covey runs."""

from __future__ import annotations

import os
from collections.abc import Iterable

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy")
ALLOWED = (
    "HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "COLORTERM", "TMPDIR", "NO_COLOR",
    "SSL_CERT_FILE", "SSL_CERT_DIR", *PROXIES,
)  # fmt: skip
"""Variables of ours that every agent gets."""
ALLOWED_STARTS = ("LC_", "XDG_")
NO_BYTECODE = {"PYTHONDONTWRITEBYTECODE": "1"}
"""Python trusts bytecode whose source has the same size and second: in a worktree that changes many times a second, a
test would run what is no longer there."""

KEYS = (
    "ANTHROPIC_*", "OPENAI_*", "AZURE_*", "GEMINI_*", "GOOGLE_*", "VERTEXAI_*", "OPENROUTER_*", "GROQ_*", "MISTRAL_*",
    "DEEPSEEK_*", "XAI_*", "TOGETHER*", "FIREWORKS_*", "CEREBRAS_*", "COHERE_*", "PERPLEXITY_*", "MOONSHOT_*", "ZAI_*",
    "DEEPINFRA_*", "NVIDIA_*", "HF_TOKEN", "OLLAMA_*", "LM_STUDIO_*", "AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION",
    "AWS_PROFILE",
)  # fmt: skip
"""Where keys of model providers stand. Not all of AWS_*: with those a command could do far more than ask a model."""

AUTHORITIES = ("NODE_EXTRA_CA_CERTS", "NODE_USE_SYSTEM_CA", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Certificates that a program trusts besides its own; the commands that it runs are of all kinds, so it gets them all.

The key ring of SSH is not among them: with it an agent could push.
"""


def agent_env(extra: Iterable[str]) -> dict[str, str]:
    """Return what agents get of our own environment: what is on the list, and what settings and agent name besides.

    A name that ends with * stands for all that begin so.
    """
    named = {*ALLOWED, *extra}
    starts = (*ALLOWED_STARTS, *(name[:-1] for name in named if name.endswith("*") and len(name) > 1))
    env = {name: value for name, value in os.environ.items() if name in named or name.startswith(starts)}
    env.setdefault("LANG", "C.UTF-8")
    env |= NO_BYTECODE
    env.setdefault("PATH", os.defpath)
    return env
