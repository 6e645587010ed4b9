"""Qwen text to reasoning, content and tool calls, and token-exact trajectories."""

from tbstudy.interpreter.messages import coalesce_system
from tbstudy.interpreter.profile import DEFAULT, PROFILES, Profile
from tbstudy.interpreter.reading import interpret
from tbstudy.interpreter.trajectory import TemplateError, Trajectory
from tbstudy.interpreter.types import Generation, ToolCall

__all__ = [
    "DEFAULT",
    "PROFILES",
    "Generation",
    "Profile",
    "TemplateError",
    "ToolCall",
    "Trajectory",
    "coalesce_system",
    "interpret",
]
