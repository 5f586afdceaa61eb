"""Who answers at the port of models: the adapters, by the names that versions and settings give them.

An adapter is imported when it is opened: the site asks whether a name is one, and has no use for a poker engine.
"""

from agentlab.hosted.model_port import Completion, Model, ModelFailed


def open_model(spec: str, *, seed: int = 0, base_url: str = "", api_key: str = "") -> Model:
    """The adapter that `spec` names: `house`, `openai:NAME` or `answers:FILE`. Raises ValueError with one line."""
    kind, _, rest = spec.partition(":")
    if spec == "house":
        from agentlab.hosted.model_house import HouseModel

        return HouseModel(seed=seed)
    if kind == "openai" and rest:
        from agentlab.hosted.models_openai import OpenAIModel

        return OpenAIModel(rest, base_url=base_url, api_key=api_key)
    if kind == "answers" and rest:
        from agentlab.hosted.model_answers import AnswersModel

        return AnswersModel(rest)
    raise ValueError(f"no such model: {spec!r} (house, openai:NAME or answers:FILE)")


class Models:
    """The adapters that deployments name, one of each. A name that cannot be opened fails turn by turn, with its
    reason, and so costs its own agent alone."""

    def __init__(self, *, seed: int = 0, base_url: str = "", api_key: str = "") -> None:
        self._options = {"base_url": base_url, "api_key": api_key}
        self._seed = seed
        self._open: dict[str, Model] = {}

    def open(self, spec: str) -> Model:
        """Raises ValueError with one line where there is no such model."""
        if spec not in self._open:
            self._open[spec] = open_model(spec, seed=self._seed, **self._options)
        return self._open[spec]

    def get(self, spec: str) -> Model:
        try:
            return self.open(spec)
        except ValueError as error:
            return self._open.setdefault(spec, _Unavailable(spec, str(error)))

    async def close(self) -> None:
        for model in self._open.values():
            await model.close()


class _Unavailable:
    routing = ""

    def __init__(self, name: str, reason: str) -> None:
        self.name, self._reason = name[:200], reason

    async def complete(self, prompt: str, *, timeout: float) -> Completion:
        raise ModelFailed(self._reason)

    async def close(self) -> None:
        return None
