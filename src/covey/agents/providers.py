"""Where keys of model providers and the authorities to trust stand in an environment."""

from __future__ import annotations

KEYS = (
    "ANTHROPIC_*", "OPENAI_*", "AZURE_*", "GEMINI_*", "GOOGLE_*", "VERTEXAI_*", "OPENROUTER_*", "GROQ_*", "MISTRAL_*",
    "DEEPSEEK_*", "XAI_*", "TOGETHER*", "FIREWORKS_*", "CEREBRAS_*", "COHERE_*", "PERPLEXITY_*", "MOONSHOT_*", "ZAI_*",
    "DEEPINFRA_*", "NVIDIA_*", "HF_TOKEN", "OLLAMA_*", "LM_STUDIO_*", "AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION",
    "AWS_PROFILE",
)  # fmt: skip
"""Not all of AWS_*: with those a command could do far more than ask a model."""

AUTHORITIES = ("NODE_EXTRA_CA_CERTS", "NODE_USE_SYSTEM_CA", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Certificates that a program trusts besides its own; the commands that it runs are of all kinds, so it gets them all.

The key ring of SSH is not among them: with it an agent could push.
"""
