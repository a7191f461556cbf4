"""Text: recurrent networks that carry their state, transformers with masks, outputs with names."""

import argparse
import inspect
import math
import random
from collections import OrderedDict
from dataclasses import dataclass, fields
from functools import partial

import oneflow_lite as flow
from oneflow_lite import nn
from oneflow_lite.nn import functional as F
from tests.compiler.programs.kit import STEPS, program, tokens


class RNNModel(nn.Module):
    """Encoder, recurrent network of a kind named by an option, decoder with tied weights."""

    def __init__(self, rnn_type, ntoken, ninp, nhid, nlayers, dropout=0.2, tie_weights=True):
        super().__init__()
        self.ntoken, self.nhid, self.nlayers, self.rnn_type = ntoken, nhid, nlayers, rnn_type
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        if rnn_type in ["LSTM", "GRU"]:
            self.rnn = getattr(nn, rnn_type)(ninp, nhid, nlayers, dropout=dropout)
        else:
            raise ValueError("An invalid option for `--model` was supplied")
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            if nhid != ninp:
                raise ValueError("When using the tied flag, nhid must be equal to emsize")
            self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.ntoken)
        return F.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        shape = (self.nlayers, bsz, self.nhid)
        if self.rnn_type == "LSTM":
            return (weight.new_zeros(shape), weight.new_zeros(shape))
        return weight.new_zeros(shape)


def repackage_hidden(h):
    """Detach hidden states, however they are nested."""
    if isinstance(h, flow.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


@program
def lstm_language_model(compiled):
    """a word-level LSTM: tied weights, dropout, clipping, hidden state carried on"""
    args = argparse.Namespace(model="LSTM", emsize=6, nlayers=2, clip=0.25, lr=2.0, tied=True)
    model = RNNModel(args.model, 11, args.emsize, args.emsize, args.nlayers, tie_weights=args.tied)
    criterion = nn.NLLLoss()

    @compiled
    def train_batch(data, targets, hidden):
        model.train()
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        flow.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        with flow.no_grad():
            for p in model.parameters():
                p.add_(p.grad, alpha=-args.lr)
        return loss.item(), hidden

    hidden = model.init_hidden(4)
    for data, targets in tokens(length=4):
        loss, hidden = train_batch(data.t().contiguous(), targets.t().reshape(-1), hidden)
        yield loss, math.exp(min(loss, 20.0)), hidden, model


@program
def char_rnn_cells(compiled):
    """a GRU cell over time in a Python loop, an OrderedDict of layers, clip_grad_value_"""
    net = nn.Sequential(
        OrderedDict(embed=nn.Embedding(11, 5), cell=nn.GRUCell(5, 7), head=nn.Linear(7, 11))
    )
    optimizer = flow.optim.Adagrad(net.parameters(), lr=0.1)

    def unroll(text, h, outputs=None):
        outputs = [] if outputs is None else outputs
        for t, chars in enumerate(text.unbind(1)):
            h = net.cell(net.embed(chars), h)
            if t >= 1:  # the first one is there to warm up
                outputs.append(net.head(h))
        return flow.stack(outputs, dim=1), h

    @compiled
    def step(text, target, h):
        optimizer.zero_grad()
        logits, h = unroll(text, h)
        loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_value_(net.parameters(), clip_value=0.5)
        optimizer.step()
        return loss.detach(), h.detach()

    h = flow.zeros(4, 7)
    for text, target in tokens():
        loss, h = step(text, target, h)
        yield loss, h, net, optimizer


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=16):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = flow.arange(max_len).unsqueeze(1)
        div_term = flow.exp(flow.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = flow.zeros(1, max_len, d_model)
        pe[0, :, 0::2] = flow.sin(position * div_term)
        pe[0, :, 1::2] = flow.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return self.dropout(x + self.pe[:, : x.size(1)])


@program
def transformer_with_masks(compiled):
    """a causal transformer with padding masks of lengths, and the Noam learning rate outside"""
    d_model, pad = 8, 0
    embed, pos = nn.Embedding(11, d_model, padding_idx=pad), PositionalEncoding(d_model)
    layer = nn.TransformerEncoderLayer(d_model, 2, 16, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    model = nn.ModuleDict({"embed": embed, "pos": pos, "encoder": encoder})
    optimizer = flow.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    noam = flow.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: d_model**-0.5 * min((step + 1) ** -0.5, (step + 1) * 10**-1.5)
    )

    def create_mask(src, lengths):
        causal = flow.triu(flow.ones(src.size(1), src.size(1), dtype=flow.bool), diagonal=1)
        return causal, flow.arange(src.size(1)).unsqueeze(0) >= lengths.unsqueeze(1)

    @compiled
    def train_step(src, tgt, lengths):
        causal, padding = create_mask(src, lengths)
        x = model["pos"](model["embed"](src) * math.sqrt(d_model))
        x = model["encoder"](x, mask=causal, src_key_padding_mask=padding)
        logits = x @ model["embed"].weight.t()
        target = tgt.masked_fill(padding, pad)
        loss = F.cross_entropy(logits.reshape(-1, 11), target.reshape(-1), ignore_index=pad)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    for src, tgt in tokens():
        loss = train_step(src, tgt, flow.randint(3, 7, (4,)))
        noam.step()
        yield loss.detach(), noam.get_last_lr(), model, optimizer


class Seq2Seq(nn.Module):
    def __init__(self, vocab_size, hidden_size):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, hidden_size)
        self.encoder = nn.GRU(hidden_size, hidden_size, batch_first=True)
        self.decoder = nn.GRUCell(2 * hidden_size, hidden_size)
        self.out = nn.Linear(hidden_size, vocab_size)

    def attend(self, query, keys):
        scores = flow.bmm(keys, query.unsqueeze(2)).squeeze(2) / keys.size(-1) ** 0.5
        return (F.softmax(scores, dim=-1).unsqueeze(1) @ keys).squeeze(1)

    def forward(self, source, target=None, max_length=3):
        keys, hidden = self.encoder(self.embedding(source))
        hidden, word = hidden[0], flow.zeros_like(source[:, 0])
        logits = []
        for i in range(max_length):
            context = self.attend(hidden, keys)
            hidden = self.decoder(flow.cat((self.embedding(word), context), dim=1), hidden)
            logits.append(self.out(hidden))
            if target is not None:
                word = target[:, i]  # teacher forcing
            else:
                word = logits[-1].topk(1)[1].squeeze(1).detach()
        return flow.stack(logits, 1)


@program(kinds=2)
def seq2seq_teacher_forcing(compiled):
    """an attention decoder, teacher forcing by a Python random draw outside the step"""
    model = Seq2Seq(11, 6)
    optimizers = [
        flow.optim.Adam(part.parameters(), lr=0.02)
        for part in (model.embedding, model.encoder, model.decoder, model.out)
    ]

    @compiled
    def train(source, target, use_teacher_forcing):
        for optimizer in optimizers:
            optimizer.zero_grad()
        logits = model(source, target if use_teacher_forcing else None)
        loss = sum(F.cross_entropy(logits[:, i], target[:, i]) for i in range(target.size(1)))
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        return loss.item() / target.size(1)

    for source, target in tokens(length=3):
        yield train(source, target, random.random() < 0.5), model, optimizers


class ModelOutput(OrderedDict):
    """A result whose fields are keys, attributes and positions; None is left out."""

    def __post_init__(self):
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                super().__setitem__(field.name, value)

    def __getitem__(self, k):
        return dict(self.items())[k] if isinstance(k, str) else self.to_tuple()[k]

    def to_tuple(self):
        return tuple(self[k] for k in self.keys())


@dataclass
class MaskedLMOutput(ModelOutput):
    loss: flow.Tensor | None = None
    logits: flow.Tensor | None = None
    hidden_states: tuple | None = None


@dataclass
class BertConfig:
    vocab_size: int = 11
    hidden_size: int = 8
    num_hidden_layers: int = 2
    hidden_act: str = "gelu"
    use_return_dict: bool = True
    layer_norm_eps: float = 1e-6


class BertForMaskedLM(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layer = nn.ModuleList(
            nn.Linear(config.hidden_size, config.hidden_size)
            for _ in range(config.num_hidden_layers)
        )
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.act_fn = getattr(F, config.hidden_act)

    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        labels=None,
        output_hidden_states=None,
        return_dict=None,
    ):
        return_dict = return_dict if return_dict is not None else self.config.use_return_dict
        x = self.embeddings(input_ids)
        if attention_mask is not None:
            x = x * attention_mask[:, :, None].to(dtype=x.dtype)
        states = (x,) if output_hidden_states else None
        for module in self.layer:
            x = self.norm(x + self.act_fn(module(x)) + x.mean(1, keepdim=True))
            if states is not None:
                states = states + (x,)
        logits = F.linear(x, self.embeddings.weight)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits.view(-1, self.config.vocab_size), labels.view(-1))
        if not return_dict:
            return (loss, logits) if loss is not None else (logits,)
        return MaskedLMOutput(loss=loss, logits=logits, hidden_states=states)


@program
def masked_lm_model_output(compiled):
    """a masked language model that takes **batch and returns a dataclass that is an OrderedDict"""
    model = BertForMaskedLM(BertConfig())
    optimizer = flow.optim.AdamW(model.parameters(), lr=0.02)
    forward = compiled(model.forward)
    for ids, _ in tokens():
        masked = flow.rand(ids.shape) < 0.3
        batch = {
            "input_ids": ids.masked_fill(masked, 0),
            "attention_mask": flow.ones_like(ids),
            "labels": flow.where(masked, ids, -100),
        }
        outputs = forward(**batch, output_hidden_states=True)
        loss = outputs[0]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss, outputs, outputs.hidden_states[-1], list(outputs.keys()), model, optimizer


@dataclass
class GPTConfig:
    block_size: int = 8
    vocab_size: int = 11
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 8
    dropout: float = 0.0
    bias: bool = False


class GPTBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.n_head, self.n_embd, self.dropout = config.n_head, config.n_embd, config.dropout
        self.ln_1, self.ln_2 = nn.LayerNorm(config.n_embd), nn.LayerNorm(config.n_embd)
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.mlp = nn.Sequential(
            nn.Linear(config.n_embd, 4 * config.n_embd, bias=config.bias),
            nn.GELU(approximate="tanh"),
            nn.Linear(4 * config.n_embd, config.n_embd, bias=config.bias),
        )
        self.flash = hasattr(F, "scaled_dot_product_attention")
        mask = flow.tril(flow.ones(config.block_size, config.block_size))
        self.register_buffer("bias", mask.view(1, 1, config.block_size, config.block_size))

    def forward(self, x):
        B, T, C = x.size()
        heads = (B, T, self.n_head, C // self.n_head)
        q, k, v = self.c_attn(self.ln_1(x)).split(self.n_embd, dim=2)
        q, k, v = (each.view(heads).transpose(1, 2) for each in (q, k, v))
        if self.flash and self.dropout > 0:
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout, is_causal=True)
        else:
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
            y = F.softmax(att, dim=-1) @ v
        x = x + self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(config.vocab_size, config.n_embd),
                "wpe": nn.Embedding(config.block_size, config.n_embd),
                "h": nn.ModuleList([GPTBlock(config) for _ in range(config.n_layer)]),
            }
        )
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight
        self.apply(self._init_weights)

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            flow.nn.init.normal_(module.weight, mean=0.0, std=0.02)

    def forward(self, idx, targets=None):
        b, t = idx.size()
        assert t <= self.config.block_size, f"sequence length {t} > {self.config.block_size}"
        x = self.transformer.wte(idx) + self.transformer.wpe(flow.arange(0, t))
        for block in self.transformer.h:
            x = block(x)
        if targets is None:
            return self.lm_head(x[:, [-1], :]), None
        logits = self.lm_head(x)
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))

    def configure_optimizers(self, weight_decay, learning_rate, betas):
        param_dict = {pn: p for pn, p in self.named_parameters() if p.requires_grad}
        groups = [
            {"params": [p for p in param_dict.values() if p.dim() >= 2]},
            {"params": [p for p in param_dict.values() if p.dim() < 2], "weight_decay": 0.0},
        ]
        extra = (
            {"maximize": False}
            if "maximize" in inspect.signature(flow.optim.AdamW).parameters
            else {}
        )
        make = partial(flow.optim.AdamW, lr=learning_rate, betas=betas, weight_decay=weight_decay)
        return make(groups, **extra)


@program
def gpt_with_parameter_groups(compiled):
    """a small GPT: parameter groups, a cosine schedule written into them, clipping, evaluation"""
    model = GPT(GPTConfig())
    optimizer = model.configure_optimizers(0.1, 1e-2, (0.9, 0.95))
    max_iters, warmup_iters, lr, min_lr, grad_clip = STEPS, 5, 1e-2, 1e-3, 1.0

    def get_lr(it):
        if it < warmup_iters:
            return lr * (it + 1) / (warmup_iters + 1)
        ratio = (it - warmup_iters) / (max_iters - warmup_iters)
        return min_lr + 0.5 * (1.0 + math.cos(math.pi * ratio)) * (lr - min_lr)

    @compiled
    def train_step(X, Y):
        _, loss = model(X, Y)
        loss.backward()
        if grad_clip != 0.0:
            flow.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    @flow.no_grad()
    def generate(idx, max_new_tokens):
        for _ in range(max_new_tokens):
            logits, _ = model(idx[:, -model.config.block_size :])
            idx = flow.cat((idx, logits[:, -1].argmax(-1, keepdim=True)), dim=1)
        return idx

    for it, (X, Y) in enumerate(tokens()):
        for param_group in optimizer.param_groups:
            param_group["lr"] = get_lr(it)
        loss = train_step(X, Y)
        sample = generate(X[:1], 2) if it % 10 == 0 else None
        yield loss.detach(), sample, model, optimizer
