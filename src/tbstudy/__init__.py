"""tbstudy: from what the database says after the agent stopped to a training reward, and what that training buys."""

__version__ = "0.1.0"
