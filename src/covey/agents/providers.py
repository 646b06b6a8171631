"""Where keys of model providers stand in an environment, for programs that speak with any of them."""

from __future__ import annotations

KEYS = (
    "ANTHROPIC_*", "OPENAI_*", "AZURE_*", "GEMINI_*", "GOOGLE_*", "VERTEXAI_*", "OPENROUTER_*", "GROQ_*", "MISTRAL_*",
    "DEEPSEEK_*", "XAI_*", "TOGETHER*", "FIREWORKS_*", "CEREBRAS_*", "COHERE_*", "PERPLEXITY_*", "MOONSHOT_*", "ZAI_*",
    "DEEPINFRA_*", "NVIDIA_*", "HF_TOKEN", "OLLAMA_*", "LM_STUDIO_*", "AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION",
    "AWS_PROFILE",
)  # fmt: skip
"""Not all of AWS_*: with those a command could do far more than ask a model."""
