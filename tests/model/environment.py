"""The world of a real agent program in a test: its home, keys that open nothing, and the way to the scripted model."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.model.outdoor import OutDoor
from tests.model.script import SCRIPTED_PRICE, Price
from tests.model.server import PRICES, ModelServer

CHECKOUT = Path(__file__).resolve().parents[2]
AGENTS = CHECKOUT / ".cache" / "agents" / "bin"
KEY = "sk-ant-nobody"

CODEX_MODEL = "gpt-5.5"
"""A model that Codex knows, so that it offers exec_command and apply_patch."""
CODEX_SCREEN_ASKS = "CONNECT raw.githubusercontent.com:443 HTTP/1.1"
"""Its screen, and only that, looks for an announcement at each start; nothing turns that off, and it works without."""
OPENCODE_MODEL = "scripted/scripted"
GEMINI_MODEL = "gemini-2.5-flash"
AIDER_MODEL = "openai/scripted"


def program(name: str) -> Path:
    """Return a real agent program as the set-up installed it; without one the test fails, it is never skipped."""
    path = AGENTS / name
    assert os.access(path, os.X_OK), f"{name} is not installed; please run: bash scripts/setup --tests"
    return path


def agent_environment(
    home: Path, url: str, outdoor: OutDoor | None = None, *, trusted: Iterable[Path] = ()
) -> dict[str, str]:
    """Make a private home and return the whole environment in which all five agents reach a model at `url` only."""
    home.mkdir(parents=True, exist_ok=True)
    folders = [path.resolve() for path in trusted]
    (home / ".gitconfig").write_text("[user]\n\tname = Agent\n\temail = agent@example.com\n")
    found = {
        "HOME": str(home),
        "PATH": f"{AGENTS}:{CHECKOUT / '.venv' / 'bin'}:/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "TMPDIR": str(_folder(home / "tmp")),
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    found |= _claude(home / ".claude", url, folders)
    found |= _codex(home / ".codex", url, folders)
    found |= _gemini(home / ".gemini", url)
    found |= _opencode(home / "opencode", url)
    found |= _aider(home / ".aider", url)
    return found | (outdoor.environment if outdoor else {})


@dataclass(frozen=True)
class World:
    """A scripted model, a closed door, and the whole environment of a process that lives between them."""

    model: ModelServer
    outdoor: OutDoor
    environment: dict[str, str]


@contextlib.contextmanager
def scripted_world(
    folder: Path, *, prices: Mapping[str, Price] = PRICES, trusted: Iterable[Path] = ()
) -> Iterator[World]:
    """Yield a world in `folder`, and fail at its end if anybody tried to leave or asked what no script answers.

    Screens ask no first questions in a `trusted` folder. What Codex' screen wants to look up is refused and forgiven.
    """
    with ModelServer(prices) as model, OutDoor() as outdoor:
        yield World(model, outdoor, agent_environment(folder / "home", model.url(), outdoor, trusted=trusted))
        assert set(outdoor.attempts) <= {CODEX_SCREEN_ASKS}


def _folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def _claude(folder: Path, url: str, trusted: list[Path]) -> dict[str, str]:
    # What a person answers on the first screens.
    known = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
        "projects": {str(path): {"hasTrustDialogAccepted": True} for path in trusted},
    }
    (_folder(folder) / ".claude.json").write_text(json.dumps(known))
    (folder / "settings.json").write_text(json.dumps({"theme": "dark", "skipDangerousModePermissionPrompt": True}))
    return {
        "CLAUDE_CONFIG_DIR": str(folder),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
        "CLAUDE_CODE_MAX_RETRIES": "2",
        "IS_SANDBOX": "1",  # as root it refuses to skip permissions outside of one
    }


def _codex(folder: Path, url: str, trusted: list[Path]) -> dict[str, str]:
    projects = "".join(f'[projects."{path}"]\ntrust_level = "trusted"\n' for path in trusted)
    (_folder(folder) / "config.toml").write_text(
        f"""\
model = "{CODEX_MODEL}"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 2
stream_max_retries = 2
stream_idle_timeout_ms = 30000
[features]
plugins = false
daemon_auto_start = false
[analytics]
enabled = false
[notice.model_migrations]
"{CODEX_MODEL}" = "gpt-6-sol"
{projects}"""
    )
    return {"CODEX_HOME": str(folder), "SCRIPTED_KEY": "nobody"}


def _gemini(folder: Path, url: str) -> dict[str, str]:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "telemetry": {"enabled": False},
    }
    (_folder(folder) / "settings.json").write_text(json.dumps(settings))
    return {
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_API_KEY": "nobody",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_MODEL": GEMINI_MODEL,
    }


def _opencode(folder: Path, url: str) -> dict[str, str]:
    price = {
        "input": SCRIPTED_PRICE.input,
        "output": SCRIPTED_PRICE.output,
        "cache_read": SCRIPTED_PRICE.cache_read,
        "cache_write": SCRIPTED_PRICE.cache_write,
    }
    limit = {"context": 200_000, "output": 8_000}
    model = {"name": "scripted", "tool_call": True, "limit": limit, "cost": price}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "scripted",
        "options": {"baseURL": f"{url}/v1", "apiKey": "nobody"},
        "models": {"scripted": model},
    }
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "model": OPENCODE_MODEL,
        "small_model": OPENCODE_MODEL,
        "permission": {"edit": "allow", "bash": "allow"},
        "provider": {"scripted": provider},
    }
    (_folder(folder) / "opencode.json").write_text(json.dumps(settings))
    # It fetches the types for plugins into each folder of settings, unless they seem to be there.
    seeded = _folder(folder / "config" / "opencode" / "node_modules").parent
    there = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
    (seeded / "package-lock.json").write_text(json.dumps(there))
    return {
        "OPENCODE_CONFIG": str(folder / "opencode.json"),
        "XDG_CONFIG_HOME": str(_folder(folder / "config")),
        "XDG_DATA_HOME": str(_folder(folder / "data")),
        "XDG_CACHE_HOME": str(_folder(folder / "cache")),
        "XDG_STATE_HOME": str(_folder(folder / "state")),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    }


def _aider(folder: Path, url: str) -> dict[str, str]:
    # It fetches a list of prices for a model that it does not know, unless it did so within a day.
    prices = {
        "litellm_provider": "openai",
        "mode": "chat",
        "max_input_tokens": 200_000,
        "max_output_tokens": 8_000,
        "input_cost_per_token": SCRIPTED_PRICE.input / 1e6,
        "output_cost_per_token": SCRIPTED_PRICE.output / 1e6,
    }
    caches = _folder(folder / "caches")
    (caches / "model_prices_and_context_window.json").write_text(json.dumps({AIDER_MODEL: prices}))
    return {
        "OPENAI_API_BASE": f"{url}/v1",
        "OPENAI_API_KEY": "nobody",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "AIDER_ANALYTICS_DISABLE": "true",
        "AIDER_CHECK_UPDATE": "false",
        "AIDER_SHOW_RELEASE_NOTES": "false",
        "AIDER_SHOW_MODEL_WARNINGS": "false",
    }
