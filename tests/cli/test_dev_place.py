"""Where `oz0 dev` keeps its studio, and what `--fresh` may delete."""

from pathlib import Path

import pytest

from studio.dev import place
from studio.embedded.failure import CannotStart
from studio.supervisor.one_at_a_time import LOCK, Lock
from tests.faults.studios import state_folder


@pytest.mark.rule("D4")
def test_a_fresh_start_forgets_everything_but_not_while_a_studio_is_up_there(tmp_path: Path) -> None:
    with state_folder(tmp_path / "shelf" / ".oz0-dev") as state:
        (state / "plugins").mkdir(parents=True)
        (state / "services.json").write_text("{}")
        (state / "link").symlink_to(tmp_path)
        running = Lock(state, "process 7, http://127.0.0.1:8000/")
        with pytest.raises(CannotStart, match=r"already up in .* \(process 7"):
            place.forget(state)
        assert (state / "services.json").exists()
        running.release()
        place.forget(state)
        assert {path.name for path in state.iterdir()} <= {LOCK, "run"}
        assert (tmp_path / "shelf").is_dir()


@pytest.mark.rule("D4")
def test_a_studio_that_the_environment_names_is_not_the_plugins(tmp_path: Path) -> None:
    named = {"DATABASE_URL": "postgres://x", "OZ0_SECRET_KEY": "x", "OZ0_HOME": str(tmp_path / "home"), "PATH": "/bin"}
    assert place.own(named) == {"PATH": "/bin"}
    ones, others = (place.state_of(tmp_path / name / "shelf", named) for name in ("a", "b"))
    assert ones.parent == others.parent == tmp_path / "home" / "dev"
    assert ones != others
    assert place.state_of(tmp_path / "shelf", {}) == tmp_path / "shelf" / ".oz0-dev"
