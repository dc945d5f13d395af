#!/usr/bin/python3
"""Trains the bundled model: a small byte-level Mixture-of-Experts language model, on one CPU core.

    train.py OUT.pt MINUTES TEXT...

Each TEXT is a plain file; its last 2 % are held out and measured at the end. The checkpoint is written every
400 steps. Needs PyTorch (written for 1.13). One thread, unless OMP_NUM_THREADS says otherwise; the run is as long
as asked for, so the number of steps, and with it every weight, depends on the machine.

The parameters of the checkpoint have the names that the tensors of the GGUF file have ("blk.0.attn_q.weight"). The
architecture is the one that GGUF calls qwen3moe.
"""
import math
import os
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

# ---- shape ----

VOCABULARY = 256  # the bytes; a token's id is its byte
CONTEXT = 256
LAYERS = 8
HIDDEN = 256
HEADS = 4
KV_HEADS = 2
HEAD_SIZE = 64
ROPE_BASE = 10000.0
NORM_EPSILON = 1e-6
EXPERTS = 32
EXPERTS_USED = 4  # per token and layer
EXPERT_WIDTH = 128

# ---- training ----

SEED = 7
BATCH = 10  # windows of CONTEXT bytes a step
LEARNING_RATE = 2.5e-3  # after the warm-up, falling as half a cosine ...
FINAL_SHARE = 0.03  # ... to this share of it
WARM_UP_STEPS = 100
WEIGHT_DECAY = 0.05  # of matrices; norms have none
ADAM_BETAS = (0.9, 0.95)
GRADIENT_NORM_MAX = 1.0
BALANCE = 0.01  # weight of the loss that keeps the experts evenly used
HELD_OUT = 0.02  # of each text, its end
HELD_OUT_WINDOWS = 40  # measured of it, at most
STEPS_A_LINE = 20
STEPS_A_CHECKPOINT = 400


# ---- the model ----


class RMSNorm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + NORM_EPSILON) * self.weight


class StackedExperts(nn.Module):
    """One matrix of all experts of a layer: experts x rows x columns."""

    def __init__(self, rows, columns, scale):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(EXPERTS, rows, columns) * scale)


def matrix(columns, rows):
    return nn.Linear(columns, rows, bias=False)


def rotate(x, cosine, sine):
    """Rotary positions; element i of a head turns with element i + HEAD_SIZE / 2 (NEOX)."""
    first, second = x[..., : HEAD_SIZE // 2], x[..., HEAD_SIZE // 2 :]
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], -1)


class Block(nn.Module):
    """Attention, then a layer of routed experts; each is added to the residual stream."""

    def __init__(self):
        super().__init__()
        # What is added to the residual stream starts out small, so that LAYERS of them, two a block, leave its
        # size as it was.
        into_stream = 1 / math.sqrt(2 * LAYERS)
        self.attn_norm = RMSNorm(HIDDEN)
        self.ffn_norm = RMSNorm(HIDDEN)
        self.attn_q_norm = RMSNorm(HEAD_SIZE)
        self.attn_k_norm = RMSNorm(HEAD_SIZE)
        self.attn_q = matrix(HIDDEN, HEADS * HEAD_SIZE)
        self.attn_k = matrix(HIDDEN, KV_HEADS * HEAD_SIZE)
        self.attn_v = matrix(HIDDEN, KV_HEADS * HEAD_SIZE)
        self.attn_output = matrix(HEADS * HEAD_SIZE, HIDDEN)
        self.ffn_gate_inp = matrix(HIDDEN, EXPERTS)  # the router
        self.ffn_gate_exps = StackedExperts(EXPERT_WIDTH, HIDDEN, 1 / math.sqrt(HIDDEN))
        self.ffn_up_exps = StackedExperts(EXPERT_WIDTH, HIDDEN, 1 / math.sqrt(HIDDEN))
        self.ffn_down_exps = StackedExperts(
            HIDDEN, EXPERT_WIDTH, into_stream / math.sqrt(EXPERT_WIDTH)
        )
        nn.init.normal_(self.attn_output.weight, std=into_stream / math.sqrt(HEADS * HEAD_SIZE))

    def heads(self, x, count):
        """batch x tokens x (count * HEAD_SIZE) -> batch x count x tokens x HEAD_SIZE"""
        return x.view(x.shape[0], x.shape[1], count, HEAD_SIZE).transpose(1, 2)

    def attention(self, x, cosine, sine, mask):
        normed = self.attn_norm(x)
        queries = self.attn_q_norm(self.heads(self.attn_q(normed), HEADS))
        keys = self.attn_k_norm(self.heads(self.attn_k(normed), KV_HEADS))
        queries = rotate(queries, cosine, sine)
        keys = rotate(keys, cosine, sine)
        values = self.heads(self.attn_v(normed), KV_HEADS)
        # Each key and value serves HEADS / KV_HEADS neighbouring queries.
        keys = keys.repeat_interleave(HEADS // KV_HEADS, 1)
        values = values.repeat_interleave(HEADS // KV_HEADS, 1)
        attention = (queries @ keys.transpose(-1, -2)) / math.sqrt(HEAD_SIZE) + mask
        mixed = (attention.softmax(-1) @ values).transpose(1, 2)
        return self.attn_output(mixed.reshape(x.shape[0], x.shape[1], HEADS * HEAD_SIZE))

    def experts(self, x):
        """The weighted sum of each token's experts, and how unevenly the experts were used (1: evenly)."""
        normed = self.ffn_norm(x).reshape(-1, HIDDEN)
        tokens = normed.shape[0]
        probability = self.ffn_gate_inp(normed).softmax(-1)
        weight, chosen = probability.topk(EXPERTS_USED, -1)
        weight = weight / weight.sum(-1, keepdim=True)

        # All (token, expert) pairs, sorted by expert: each expert then has a run of rows to itself.
        pairs = chosen.reshape(-1)
        by_expert = pairs.argsort()
        uses = torch.bincount(pairs, minlength=EXPERTS)
        token = torch.div(by_expert, EXPERTS_USED, rounding_mode="floor")
        rows = normed.index_select(0, token)
        gates, ups, downs = (
            stack.weight.unbind(0)
            for stack in (self.ffn_gate_exps, self.ffn_up_exps, self.ffn_down_exps)
        )
        outputs = []
        start = 0
        for number, count in enumerate(uses.tolist()):
            if count == 0:
                continue
            run = rows[start : start + count]
            gated = F.silu(run @ gates[number].t()) * (run @ ups[number].t())
            outputs.append(gated @ downs[number].t())
            start += count
        weighted = torch.cat(outputs) * weight.reshape(-1).index_select(0, by_expert).unsqueeze(1)
        total = torch.zeros_like(normed).index_add_(0, token, weighted)

        share = uses.float() / (tokens * EXPERTS_USED)
        unevenness = EXPERTS * (share * probability.mean(0)).sum()
        return total.view_as(x), unevenness

    def forward(self, x, cosine, sine, mask):
        x = x + self.attention(x, cosine, sine, mask)
        routed, unevenness = self.experts(x)
        return x + routed, unevenness


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.token_embd = nn.Embedding(VOCABULARY, HIDDEN)
        self.blk = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.output_norm = RMSNorm(HIDDEN)
        self.output = matrix(HIDDEN, VOCABULARY)
        nn.init.normal_(self.token_embd.weight, std=0.5)

        frequency = ROPE_BASE ** (-torch.arange(0, HEAD_SIZE, 2).float() / HEAD_SIZE)
        angle = torch.outer(torch.arange(CONTEXT).float(), frequency)
        later = torch.full((CONTEXT, CONTEXT), -1e9).triu(1)  # what a token must not see
        self.register_buffer("cosine", angle.cos(), persistent=False)
        self.register_buffer("sine", angle.sin(), persistent=False)
        self.register_buffer("later", later, persistent=False)

    def forward(self, tokens):
        """batch x tokens -> logits of what follows each, and the mean unevenness of the layers"""
        n = tokens.shape[1]
        x = self.token_embd(tokens)
        total = 0
        for block in self.blk:
            x, unevenness = block(x, self.cosine[:n], self.sine[:n], self.later[:n, :n])
            total = total + unevenness
        return self.output(self.output_norm(x)), total / LAYERS


# ---- the texts ----


def read_text(path):
    """The bytes to train on, and those held out."""
    with open(path, "rb") as file:
        text = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).long()
    cut = int(len(text) * (1 - HELD_OUT))
    return text[:cut], text[cut:]


def text_shares(texts):
    """How often each text is drawn from: by the root of its size, so that small ones count."""
    sizes = torch.tensor([len(text) for text in texts]).float()
    share = (sizes / sizes.sum()).sqrt()
    return share / share.sum()


def draw_windows(texts, share):
    """BATCH windows of CONTEXT bytes and the one after."""
    windows = []
    for number in torch.multinomial(share, BATCH, replacement=True).tolist():
        text = texts[number]
        start = torch.randint(0, len(text) - CONTEXT - 1, (1,)).item()
        windows.append(text[start : start + CONTEXT + 1])
    return torch.stack(windows)


def cross_entropy(logits, windows):
    """Nats a byte."""
    return F.cross_entropy(logits.reshape(-1, VOCABULARY), windows[:, 1:].reshape(-1))


# ---- training ----


def make_optimiser(model):
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    groups = [
        {"params": matrices, "weight_decay": WEIGHT_DECAY},
        {"params": vectors, "weight_decay": 0},
    ]
    return torch.optim.AdamW(groups, lr=LEARNING_RATE, betas=ADAM_BETAS)


def learning_rate(step, part_done):
    """A linear warm-up, by steps; half a cosine, by the share of the time that is gone."""
    warm_up = min(1, (step + 1) / WARM_UP_STEPS)
    fall = 0.5 * (1 + math.cos(math.pi * part_done))
    return LEARNING_RATE * warm_up * (fall * (1 - FINAL_SHARE) + FINAL_SHARE)


def train_step(model, optimiser, windows, rate):
    """Returns the cross entropy before the step and the unevenness."""
    for group in optimiser.param_groups:
        group["lr"] = rate
    logits, unevenness = model(windows[:, :-1])
    entropy = cross_entropy(logits, windows)
    optimiser.zero_grad(set_to_none=True)
    (entropy + BALANCE * unevenness).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), GRADIENT_NORM_MAX)
    optimiser.step()
    return entropy.item(), unevenness.item()


def train(model, texts, seconds, out):
    optimiser = make_optimiser(model)
    share = text_shares(texts)
    start = time.time()
    step = 0
    smooth = None
    while (elapsed := time.time() - start) <= seconds:
        rate = learning_rate(step, elapsed / seconds)
        entropy, unevenness = train_step(model, optimiser, draw_windows(texts, share), rate)
        step += 1
        smooth = entropy if smooth is None else 0.98 * smooth + 0.02 * entropy
        if step % STEPS_A_LINE == 0:
            print(
                f"step {step}, {elapsed:.0f} s: {smooth / math.log(2):.3f} bits a byte, "
                f"unevenness {unevenness:.3f}, rate {rate:.2e}, "
                f"{step * BATCH * CONTEXT / max(elapsed, 1e-9):.0f} bytes/s",
                flush=True,
            )
        if step % STEPS_A_CHECKPOINT == 0:
            torch.save(model.state_dict(), out)


@torch.no_grad()
def measure(model, text):
    """Bits a byte on the first windows of a held-out text, each from an empty state."""
    size = CONTEXT + 1
    count = min(HELD_OUT_WINDOWS, len(text) // size - 1)
    windows = torch.stack([text[i * size : (i + 1) * size] for i in range(count)])
    logits, _ = model(windows[:, :-1])
    return cross_entropy(logits, windows).item() / math.log(2)


def main():
    if len(sys.argv) < 4:
        sys.exit("usage: train.py OUT.pt MINUTES TEXT...")
    out, minutes, paths = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    torch.manual_seed(SEED)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    texts = [read_text(path) for path in paths]
    model = Model()
    print(sum(p.numel() for p in model.parameters()) / 1e6, "million parameters", flush=True)
    train(model, [text for text, _ in texts], minutes * 60, out)
    model.eval()
    for path, (_, held_out) in zip(paths, texts):
        print(f"{path}: {measure(model, held_out):.4f} bits a byte, held out")
    torch.save(model.state_dict(), out)


if __name__ == "__main__":
    main()
