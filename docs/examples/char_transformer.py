"""A transformer that learns to write verse, character by character.

    python docs/examples/char_transformer.py

The text is 35 of Shakespeare's sonnets (1609, in the modernized spelling of the nineteenth
century), docs/examples/data/sonnets.txt. The network reads up to 64 characters and says how
probable each next one is; a causal mask keeps every place from looking ahead, so that one pass
trains on all places at once. The last tenth of the text is held out. The yardstick is a table of
how often one character follows another.

A whole run takes about 40 seconds on one core. A held-out character then costs 1.98 nats; the table
needs 2.43, mere guessing 4.08. Twenty thousand characters are little to learn a language from. The
text that it writes has lines, capitals and word-like words, some of them English:

    Thave light all words all glose old fall,
    Till to thake hing cake come, my nouging ans ise,
"""

import math
import sys
from pathlib import Path

from showing import judge, progress, read_options

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.nn import functional as F

TEXT = Path(__file__).parent / "data" / "sonnets.txt"
CONTEXT = 64  # characters that the network sees
WIDTH, HEADS, LAYERS, BATCH = 64, 4, 2, 16
DEFAULT_STEPS = 1200


class Transformer(nn.Module):
    """Gives for every place of a batch of texts the scores of the character that follows."""

    def __init__(self, characters: int) -> None:
        super().__init__()
        self.character = nn.Embedding(characters, WIDTH)
        self.place = nn.Embedding(CONTEXT, WIDTH)
        layer = nn.TransformerEncoderLayer(
            WIDTH, HEADS, 4 * WIDTH, dropout=0.1, activation="gelu", batch_first=True
        )
        self.layers = nn.TransformerEncoder(layer, LAYERS)
        self.head = nn.Linear(WIDTH, characters)

    def forward(self, text: flow.Tensor) -> flow.Tensor:
        length = text.shape[1]
        x = self.character(text) + self.place(flow.arange(length))  # (batch, length, WIDTH)
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        return self.head(self.layers(x, mask=mask, is_causal=True))


def windows_of(text: flow.Tensor, starts: flow.Tensor) -> flow.Tensor:
    """The CONTEXT + 1 characters from each start on, (len(starts), CONTEXT + 1)."""
    return text[starts[:, None] + flow.arange(CONTEXT + 1)]


def loss_of(net: Transformer, windows: flow.Tensor) -> flow.Tensor:
    """Cross-entropy in nats: how surprised the network is by each next character."""
    return F.cross_entropy(net(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())


def train_step(
    net: Transformer, optimizer: flow.optim.Optimizer, windows: flow.Tensor
) -> flow.Tensor:
    """Improve the network once; return the loss that it had."""
    optimizer.zero_grad()
    loss = loss_of(net, windows)
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    return loss.detach()


@flow.no_grad()
def held_out_loss(net: Transformer, text: flow.Tensor) -> float:
    """The loss on a text that the network has not seen, cut into windows."""
    net.eval()
    loss = loss_of(net, windows_of(text, flow.arange(0, len(text) - CONTEXT, CONTEXT))).item()
    net.train()
    return loss


def table_loss(train: flow.Tensor, text: flow.Tensor, characters: int) -> float:
    """The loss of the table: each pair counted once more than it was seen."""
    counts = flow.bincount(train[:-1] * characters + train[1:], minlength=characters**2)
    table = counts.reshape(characters, characters).float() + 1
    probabilities = table / table.sum(1, keepdim=True)
    return -probabilities[text[:-1], text[1:]].log().mean().item()


@flow.no_grad()
def write(net: Transformer, start: flow.Tensor, count: int, temperature: float) -> flow.Tensor:
    """Continue a text by `count` characters, each drawn from what the network thinks likely."""
    net.eval()
    text = start
    for _ in range(count):
        scores = net(text[None, -CONTEXT:])[0, -1] / temperature
        text = flow.cat([text, flow.multinomial(scores.softmax(0), 1)])
    net.train()
    return text


def main(argv: list[str] | None = None) -> int:
    """Train, compare with the table, write a little, and return 1 when a full run is no better."""
    args = read_options(argv, "learn to write verse by the character", DEFAULT_STEPS)
    flow.manual_seed(args.seed)
    text = TEXT.read_text(encoding="utf-8")
    alphabet = sorted(set(text))
    number = {character: i for i, character in enumerate(alphabet)}
    codes = flow.tensor([number[character] for character in text])
    train, held_out = codes[: -len(codes) // 10], codes[-len(codes) // 10 :]
    table = table_loss(train, held_out, len(alphabet))

    net = Transformer(len(alphabet))
    optimizer = flow.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.1)
    schedule = flow.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=args.steps + 1)
    bar = progress(args.steps)
    for _ in bar:
        starts = flow.randint(len(train) - CONTEXT, (BATCH,))
        loss = train_step(net, optimizer, windows_of(train, starts)).item()
        schedule.step()
        bar.set_postfix({"loss": f"{loss:.3f}"}, refresh=False)

    found = held_out_loss(net, held_out)
    print(f"{len(text)} characters, {sum(p.numel() for p in net.parameters())} parameters")
    print(f"nats for each held-out character: {found:.3f}")
    print(f"the table of pairs: {table:.3f}, mere guessing: {math.log(len(alphabet)):.3f}\n")
    start = flow.tensor([number[character] for character in "\nShall I "])
    print("".join(alphabet[i] for i in write(net, start, min(400, 20 * args.steps), 0.8)))
    return judge(args, found < table, "fewer nats than the table needs")


if __name__ == "__main__":
    sys.exit(main())
