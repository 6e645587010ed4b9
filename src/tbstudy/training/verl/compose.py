"""verl's own reading of a run: composed from its Hydra tree and validated by its own rules, without Ray or a GPU."""

from __future__ import annotations

import contextlib
import importlib.util
import io
from collections.abc import Sequence
from typing import Any

from tbstudy.errors import StudyError
from tbstudy.training.verl.config import Run
from tbstudy.training.verl.overrides import hydra_overrides


def verl_missing() -> str:
    """Why verl cannot be imported here, or an empty text."""
    missing = [name for name in ("verl", "ray", "transfer_queue", "hydra") if not _importable(name)]
    return f"not installed: {', '.join(missing)} (pip install 'tbstudy[verl]')" if missing else ""


def _importable(name: str) -> bool:
    """A package with code: a mere folder of that name on the path (a namespace without origin) is not it."""
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.origin is not None


def compose(run: Run, extra: Sequence[str] = ()) -> Any:
    """The composed configuration (an OmegaConf DictConfig), every key known to verl and its rules passed.

    Raises:
        StudyError: verl is missing, a key is unknown or moved, or a value breaks one of verl's rules.
    """
    if reason := verl_missing():
        raise StudyError(f"verl cannot check the configuration: {reason}")
    from hydra import compose as hydra_compose
    from hydra import initialize_config_module
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    overrides = [*hydra_overrides(run), *extra]
    told = io.StringIO()
    try:
        with initialize_config_module("verl.trainer.config", version_base=None), contextlib.redirect_stdout(told):
            config = hydra_compose("ppo_trainer", overrides=overrides)
            from verl.trainer.ppo.utils import need_critic, need_reference_policy
            from verl.utils.config import validate_config

            validate_config(config, need_reference_policy(config), need_critic(config))
    except (HydraException, OmegaConfBaseException) as error:
        cause = error.__cause__ or error
        raise StudyError(f"{run.file}: verl does not know a setting: {error} ({cause})") from error
    except (AssertionError, ValueError, TypeError) as error:
        raise StudyError(f"{run.file}: verl refuses the configuration: {error}") from error
    return config


def flatten(config: Any, prefix: str = "") -> dict[str, Any]:
    """Resolved values of a composed configuration by dotted key."""
    from omegaconf import DictConfig, OmegaConf

    if isinstance(config, DictConfig):
        config = OmegaConf.to_container(config, resolve=False)
    found: dict[str, Any] = {}
    for key, value in config.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            found |= flatten(value, f"{name}.")
        else:
            found[name] = value
    return found
