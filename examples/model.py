"""A small Transformer encoder in torch, and one step of its training."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY = 64
WIDTH = 32
HEADS = 4
LAYERS = 2


class EncoderLayer(nn.Module):
    """Self-attention, then a feed-forward block, each added to its input and normalized."""

    def __init__(self) -> None:
        super().__init__()
        self.queries_keys_values = nn.Linear(WIDTH, 3 * WIDTH)
        self.attended = nn.Linear(WIDTH, WIDTH)
        self.feed_forward = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.attention_norm = nn.LayerNorm(WIDTH)
        self.feed_forward_norm = nn.LayerNorm(WIDTH)

    def attention(self, hidden: Tensor) -> Tensor:
        """Let each position of a (batch, position, WIDTH) tensor attend to all positions."""
        batch, positions, _ = hidden.shape
        projected = self.queries_keys_values(hidden).view(batch, positions, 3, HEADS, WIDTH // HEADS)
        query, key, value = projected.permute(2, 0, 3, 1, 4).unbind()
        mixed = functional.scaled_dot_product_attention(query, key, value)
        return self.attended(mixed.transpose(1, 2).reshape(batch, positions, WIDTH))

    def forward(self, hidden: Tensor) -> Tensor:
        """Map a (batch, position, WIDTH) tensor to one of the same shape."""
        hidden = self.attention_norm(hidden + self.attention(hidden))
        return self.feed_forward_norm(hidden + self.feed_forward(hidden))


class Encoder(nn.Module):
    """Scores every word of the vocabulary at every position of its input tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(EncoderLayer() for _ in range(LAYERS))
        self.scores = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map (batch, position) token numbers to (batch, position, VOCABULARY) scores."""
        hidden = self.embedding(tokens)
        for layer in self.layers:
            hidden = layer(hidden)
        return self.scores(hidden)


class Training:
    """A model, its optimizer, and a training step."""

    def __init__(self, *, seed: int) -> None:
        torch.manual_seed(seed)
        self.model = Encoder()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)

    def step(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Run forward, loss, backward and optimizer once, and return the loss."""
        self.optimizer.zero_grad()
        scores = self.model(tokens)
        loss = functional.cross_entropy(scores.flatten(0, 1), targets.flatten())
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def batches(*, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Endless batches of sentences in which each word's number follows the previous one's."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        first = torch.randint(VOCABULARY, (8, 1), generator=generator)
        sentence = (first + torch.arange(17)) % VOCABULARY
        yield sentence[:, :-1], sentence[:, 1:]
