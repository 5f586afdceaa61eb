"""Any endpoint that speaks the OpenAI protocol: `/v1/embeddings` and `/v1/chat/completions`.

Address and key come from OPENAI_BASE_URL and OPENAI_API_KEY in the worker's environment; the study file names only the
model, so that no key is in a study, a hash or a trace.
"""

from functools import cached_property

import numpy as np
import openai
from numpy.typing import NDArray

from agentlab.common.given import OPENAI, check_endpoint, given
from agentlab.persona.ports import PortFailed

TIMEOUT = 60.0  # seconds for one answer
RETRIES = 2
BATCH = 32  # texts of one request for embeddings: some servers take no more, and a persona may bring a thousand


def _client() -> openai.OpenAI:
    try:
        address, key = given("OPENAI_BASE_URL"), given("OPENAI_API_KEY")
        check_endpoint(address, key)
    except ValueError as error:
        raise PortFailed(str(error)) from None
    try:
        # A local server may ask for no key, but the client insists on one.
        return openai.OpenAI(base_url=address or OPENAI, api_key=key or "none", timeout=TIMEOUT, max_retries=RETRIES)
    except Exception as error:  # of the HTTP client, which reads the address
        raise PortFailed(f"OPENAI_BASE_URL cannot be used: {type(error).__name__}") from None


class OpenAIEmbedder:
    def __init__(self, model: str) -> None:
        self.model = model
        self._open = _client()

    @cached_property
    def id(self) -> str:
        """The model's name and the dimensions it really answers, found out once."""
        return f"openai:{self.model}/{self.embed(['dimensions']).shape[1]}"

    def embed(self, texts: list[str]) -> NDArray[np.floating]:
        """Many servers refuse the empty text; its vector is zero by definition, so it is not sent."""
        written = [i for i, text in enumerate(texts) if text.strip()]
        asked = [texts[i] for i in written] or ["dimensions"]
        parts = [self._rows(asked[at : at + BATCH]) for at in range(0, len(asked), BATCH)]
        if len({part.shape[1] for part in parts}) > 1:
            raise PortFailed(f"embeddings from {self.model}: of different lengths")
        rows = np.concatenate(parts)
        vectors = np.zeros((len(texts), rows.shape[1]))
        if written:
            vectors[written] = rows
        return vectors

    def _rows(self, texts: list[str]) -> NDArray[np.floating]:
        try:
            answer = self._open.embeddings.create(model=self.model, input=texts, encoding_format="float")
            rows = np.array([row.embedding for row in sorted(answer.data, key=lambda row: row.index)], dtype=np.float64)
        except (openai.OpenAIError, ValueError, TypeError, AttributeError) as error:
            raise PortFailed(f"embeddings from {self.model}: {type(error).__name__}") from None
        if rows.ndim != 2 or len(rows) != len(texts):
            raise PortFailed(f"embeddings from {self.model}: {len(rows)} vectors for {len(texts)} texts")
        return rows


class OpenAICompleter:
    def __init__(self, model: str) -> None:
        self.model = model
        self.id = f"openai:{model}"
        self._open = _client()

    def complete(self, prompt: str) -> str:
        try:
            answer = self._open.chat.completions.create(
                model=self.model, messages=[{"role": "user", "content": prompt}], temperature=0
            )
            content = answer.choices[0].message.content
        except (openai.OpenAIError, ValueError, TypeError, AttributeError, LookupError) as error:
            raise PortFailed(f"{self.model}: {type(error).__name__}") from None
        if not isinstance(content, str) or not content:  # the client checks no types
            raise PortFailed(f"{self.model}: an empty answer")
        return content
