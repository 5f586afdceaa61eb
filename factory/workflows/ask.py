"""One question, one answer."""

from factory.phases import Envelope, Phase, Workflow


class Answer(Envelope):
    answer: str


ASK = Workflow(
    name="ask",
    system="You are a careful engineer. You answer one request, with the tools you have, and answer in JSON.",
    phases=(
        Phase(
            name="ask",
            instruction="Do what the request under “prompt” asks for.",
            envelope=Answer,
            example='{"answer": "…"}',
            gated=True,
        ),
    ),
)
