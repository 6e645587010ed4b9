"""A pool manifest as verl's dataset: one row a task, whose prompt the agent loop builds itself."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import Dataset

from tbstudy.errors import StudyError
from tbstudy.selection import load_pool
from tbstudy.training.verl.overrides import AGENT_NAME

SPLITS = ("train", "test", "whole")
VALIDATE = ":validate"


class PoolDataset(Dataset):
    """Tasks of `<manifest>:<split>`, sorted by uid so that the seeded shuffle is the same everywhere.

    `<manifest>:<split>:validate` marks rows whose system errors are flagged instead of raised.

    Raises:
        StudyError: the name is of neither form, the manifest is wrong, or the split is empty.
    """

    def __init__(self, data_files: Any, tokenizer: Any = None, config: Any = None, processor: Any = None,
                 max_samples: int = -1):
        files = [data_files] if isinstance(data_files, str) else list(data_files)
        if len(files) != 1:
            raise StudyError(f"data files: expected one <manifest>:<split>, found {len(files)}")
        name = files[0].removesuffix(VALIDATE)
        self.validate = name != files[0]
        path, _, self.split = name.rpartition(":")
        if self.split not in SPLITS or not path:
            raise StudyError(f"data file {files[0]!r}: expected <manifest>:<split> with a split of {', '.join(SPLITS)}")
        pool = load_pool(path)
        domains = {task.uid: task.domain for task in (*pool.tasks, *pool.outside)}
        self.rows = [(uid, domains[uid]) for uid in pool.uids(self.split)]
        if max_samples > 0:
            self.rows = self.rows[:max_samples]
        if not self.rows:
            raise StudyError(f"{path}: the split {self.split!r} is empty")

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, item: int) -> dict[str, Any]:
        uid, domain = self.rows[item]
        return {
            # verl passes prompts around as messages; what the policy reads is built from the task in its session.
            "raw_prompt": [{"role": "user", "content": uid}],
            "data_source": domain, "ability": "agent", "agent_name": AGENT_NAME, "index": item,
            "reward_model": {"style": "rule", "ground_truth": uid},
            "extra_info": {"uid": uid, "split": self.split, "validate": self.validate, "index": item},
            "tools_kwargs": {}, "interaction_kwargs": {},
            # Batches must hold a tensor.
            "dummy_tensor": torch.tensor([0], dtype=torch.uint8)}
