"""The judge of a check's yes/no questions behind an OpenAI-compatible endpoint."""

from __future__ import annotations

from tbstudy.policies.client import Client, Endpoint, Meter


class JudgeClient:
    """A `JudgeModel` over an endpoint: chat messages in, the reply's text out.

    Its usage is collected by `policies.client.attempt_usage` around the verdict. An endpoint that does not answer
    makes the check, and so the attempt, a system error.
    """

    def __init__(self, endpoint: Endpoint, *, temperature: float = 0.0, max_tokens: int | None = None,
                 meter: Meter | None = None):
        self.client = Client(endpoint, "judge", meter)
        self.temperature, self.max_tokens = temperature, max_tokens

    async def __call__(self, messages: list[dict[str, str]]) -> str:
        return await self.client.text(messages, temperature=self.temperature, max_completion_tokens=self.max_tokens)

    async def close(self) -> None:
        """Close the connections."""
        await self.client.close()
