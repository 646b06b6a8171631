"""The OpenAPI document is true: Schemathesis finds nothing that it does not say, and no 5xx at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from covey import proof
from covey.app.verbs import VERBS
from covey.web import openapi
from tests.worlds.serving import Client, check_database, serving

CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "negative_data_rejection",
    "missing_required_header",
    "unsupported_method",
    "ignored_auth",
]
SETTINGS = """
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 409, 413, 422]

[dictionaries]
tasks = { values = ["T-1", "T-2", "T-3", "T-4", "T-5"] }
others = { values = [IDS] }
sessions = { values = ["ada", "bob", "owner"] }

[[operations]]
include-path-regex = "^/api/board/"
parameters = { "path.id" = { dictionary = "tasks", probability = 0.8 } }

[[operations]]
include-path-regex = "^/api/(leases|mail|merges|gates)/"
parameters = { "path.id" = { dictionary = "others", probability = 0.8 } }

[[operations]]
include-path-regex = "^/api/sessions/"
parameters = { "path.name" = { dictionary = "sessions", probability = 0.8 } }
"""


def furnish(client: Client) -> list[str]:
    """Put something of every kind on the board; return the ids of what is no task."""
    for i in range(5):
        client.post("/api/board", {"title": f"Task {i}", "scope": [f"src/{i}/**"]})
    ids: list[str] = []
    for name in ("ada", "bob"):
        client.post("/api/sessions", {"name": name})
        ids.append(client.post("/api/leases", {"session": name, "resources": [f"{name}/**"]})["id"])
        ids.append(client.post("/api/mail", {"session": name, "to": "owner", "text": "Hello"})["id"])
        task = client.post("/api/claim", {"session": name})
        work = {"session": name, "fence": task["fence"], "commit": "c" * 40}
        client.post(f"/api/board/{task['id']}/handin", work)
    return ids + [merge["id"] for merge in client.get("/api/merges")]


def walk(folder: Path, examples: int) -> None:
    """Let Schemathesis ask everything that the document allows, and much that it does not."""
    with serving(folder / "repo") as daemon:
        with daemon.client() as client:
            ids = ", ".join(f'"{name}"' for name in furnish(client))
        (folder / "schemathesis.toml").write_text(SETTINGS.replace("IDS", ids))
        address = f"http://127.0.0.1:{daemon.port}/api/openapi.json"
        words = [
            "--config-file",
            "schemathesis.toml",
            "run",
            address,
            "--header",
            f"Authorization: Bearer {daemon.token}",
        ]
        words += ["--exclude-path", "/api/events", "--checks", ",".join(CHECKS), "--max-examples", str(examples)]
        words += ["--no-color", "--continue-on-failure", "--request-timeout", "30", "--generation-database", "none"]
        command = [str(Path(sys.executable).with_name("schemathesis")), *words]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
        assert "Traceback" not in (daemon.project.state / "daemon.log").read_text()
        assert check_database(daemon.project) == daemon.seq()


@pytest.mark.timeout(900)  # a long walk, and not a hang, on a busy machine
def test_schemathesis_finds_nothing_that_the_document_does_not_say(tmp_path: Path) -> None:
    walk(tmp_path, 5)


@pytest.mark.soak
def test_schemathesis_finds_nothing_in_a_long_search(tmp_path: Path) -> None:
    walk(tmp_path, 400)


def test_the_document_describes_every_verb_and_the_stream(tmp_path: Path) -> None:
    with serving(tmp_path / "repo") as daemon:
        document = daemon.ask("GET", "/api/openapi.json").good()
    told = {
        operation["operationId"]: f"{method.upper()} {path}"
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    others = {"events": "GET /api/events", "proof": "GET /api/proof", "device.join": "POST /api/devices/join"}
    assert told == {verb.name: f"{verb.method} {verb.path}" for verb in VERBS.values()} | others
    assert document["openapi"].startswith("3.1")


def test_each_way_to_be_refused_is_described_where_it_can_happen() -> None:
    for path, methods in openapi.document()["paths"].items():
        for method, operation in methods.items():
            told = set(operation["responses"])
            by_token = set() if path == proof.PATH else {"401", "426"}
            assert {"400", "403", "421"} | by_token <= told, path
            of_bodies = {"408", "413", "422"}
            assert told & of_bodies == (set() if method == "get" else of_bodies), path
