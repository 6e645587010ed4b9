"""GRPO at the reference scale: verl on Ray, from one configuration file.

`config` reads it, `overrides` turns it into verl's own settings, `preflight` refuses what cannot work, `launch` starts
the trainer. In the trainer's processes `agent_loop`, `dataset` and `reward` put our episodes, pools and verdicts behind
verl's interfaces, and `hooks` repairs what verl 0.9.1 gets wrong for this run. `cpu` holds the platform and rollout
that let the same trainer run without a GPU; nothing else imports it.
"""
