"""What verl imports in every process of a run (VERL_USE_EXTERNAL_MODULES): the hooks."""

from tbstudy.training.verl import hooks

hooks.activate()
