"""An embedder with meaning in it: WordLlama's static word vectors (the `embed` extra). Its weights ship with the
package."""

from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = 256


class WordLlamaEmbedder:
    """Means of token vectors, 256 dimensions."""

    id = f"wordllama-{version('wordllama')}/{DIMENSIONS}"

    def __init__(self) -> None:
        import wordllama

        # The package holds its tokenizer where it looks only for a cache: named as the cache, it is found offline.
        own = Path(wordllama.__file__).parent
        self._model = wordllama.WordLlama.load(dim=DIMENSIONS, cache_dir=own, disable_download=True)

    def embed(self, texts: list[str]) -> NDArray[np.floating]:
        """The library divides by the norm unguarded, and the empty text would come out as NaN: here it is zero."""
        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        written = [i for i, text in enumerate(texts) if text.strip()]
        if written:
            vectors[written] = self._model.embed([texts[i] for i in written])
        return vectors
