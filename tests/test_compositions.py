"""Whole networks, written for plain tensors: a padded batch equals its unpadded rows, forward and gradients."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import masked_tensor as mt
from masked_tensor.engine.tensor import pair_of
from masked_tensor.testing import check_invisible_data, check_padding_invariance

LENGTHS = [12, 9, 5]


class Conformer(nn.Module):
    """Feed-forward, attention, convolution, feed-forward; GroupNorm instead of BatchNorm inside the convolution."""

    def __init__(self, width=8, heads=2):
        super().__init__()
        self.feed = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 16), nn.SiLU(), nn.Linear(16, width)) for _ in range(2)
        )
        self.before_attention = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.before_convolution = nn.LayerNorm(width)
        self.convolution = nn.Sequential(
            nn.Conv1d(width, 2 * width, 1),
            nn.GLU(1),
            nn.Conv1d(width, width, 5, padding="same", groups=width),
            nn.GroupNorm(2, width),
            nn.SiLU(),
            nn.Conv1d(width, width, 1),
        )
        self.last = nn.LayerNorm(width)

    def forward(self, x):
        x = x + 0.5 * self.feed[0](x)
        y = self.before_attention(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        x = x + self.convolution(self.before_convolution(x).transpose(1, 2)).transpose(1, 2)
        x = x + 0.5 * self.feed[1](x)
        return self.last(x)


class Residual(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(inner, outer, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outer),
            nn.ReLU(inplace=True),
            nn.Conv2d(outer, outer, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outer),
        )
        self.side = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x):
        return F.relu(self.main(x) + self.side(x))


def resnet():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, 2, 1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        Residual(4, 6, 1),
        Residual(6, 8, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 5),
    )


class Tagger(nn.Module):
    """A bidirectional LSTM with one score per step and tag."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.norm = nn.LayerNorm(10)
        self.tags = nn.Linear(10, 4)

    def forward(self, x):
        return self.tags(self.norm(self.lstm(x)[0]))


class UNet(nn.Module):
    """Two strided convolutions down, two transposed ones up, with skips."""

    def __init__(self):
        super().__init__()
        self.enter = nn.Conv1d(2, 4, 3, padding=1)
        self.down = nn.ModuleList([nn.Conv1d(4, 8, 4, 2, 1), nn.Conv1d(8, 8, 3, 2, 1)])
        self.up = nn.ModuleList([nn.ConvTranspose1d(8, 8, 4, 2, 1), nn.ConvTranspose1d(16, 4, 4, 2, 1)])
        self.leave = nn.Conv1d(8, 1, 1)
        self.norms = nn.ModuleList([nn.InstanceNorm1d(8, affine=True), nn.GroupNorm(2, 8)])

    def forward(self, x):
        first = F.gelu(self.enter(x))
        second = F.gelu(self.norms[0](self.down[0](first)))
        bottom = F.gelu(self.norms[1](self.down[1](second)))
        y = torch.cat([self.up[0](bottom), second], 1)
        return self.leave(torch.cat([self.up[1](y), first], 1))


class Grouped(nn.Module):
    """A pre-norm Transformer block with grouped-query attention, RMSNorm and a gated feed-forward net."""

    def __init__(self, width=8, heads=4, groups=2, causal=True):
        super().__init__()
        self.size, self.causal = width // heads, causal
        self.q = nn.Linear(width, width, bias=False)
        self.kv = nn.Linear(width, 2 * groups * self.size, bias=False)
        self.out, self.norms = nn.Linear(width, width), nn.ModuleList([nn.RMSNorm(width), nn.RMSNorm(width)])
        self.gate, self.feed = nn.Linear(width, 32), nn.Linear(16, width)

    def forward(self, x):
        y = self.norms[0](x)
        q = self.q(y).unflatten(-1, (-1, self.size)).transpose(1, 2)
        k, v = self.kv(y).unflatten(-1, (-1, self.size)).transpose(1, 2).chunk(2, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        a, b = self.gate(self.norms[1](x)).chunk(2, -1)
        return x + self.feed(F.silu(a) * b)


class Classifier(nn.Module):
    """Mean-pooled features: the mean runs over the valid steps."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.encoder(x).mean(1)).log_softmax(-1)


NETWORKS = {
    "conformer": (Conformer, (3, 12, 8), 1, LENGTHS),
    "resnet": (resnet, (3, 3, 24, 20), 2, [24, 17, 9]),
    "tagger": (Tagger, (3, 12, 6), 1, LENGTHS),
    "unet": (UNet, (3, 2, 16), 2, [16, 12, 4]),
    "grouped-query": (Grouped, (3, 12, 8), 1, LENGTHS),
    "classifier": (Classifier, (3, 12, 8), 1, LENGTHS),
}


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("name", NETWORKS)
def test_padded_batch_equals_unpadded_rows(name, training):
    make, shape, dim, lengths = NETWORKS[name]
    torch.manual_seed(0)
    module, x = make().double(), torch.randn(shape).double()
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2)
    batch_norm = any(isinstance(part, nn.BatchNorm2d) for part in module.modules())
    module.train(training and not batch_norm)
    check_padding_invariance(module, x, lengths, dim=dim)


@pytest.mark.parametrize("name", NETWORKS)
def test_masked_out_data_is_invisible(name):
    make, shape, dim, lengths = NETWORKS[name]
    torch.manual_seed(0)
    mask = torch.arange(shape[dim]) < torch.tensor(lengths)[:, None]
    mask = mask.view([n if d in (0, dim) else 1 for d, n in enumerate(shape)]).expand(shape)
    check_invisible_data(make().train(), mt.masked_tensor(torch.randn(shape), mask))


def test_batch_norm_in_training_does_not_see_how_far_a_batch_is_padded():
    torch.manual_seed(0)
    small = torch.randn(3, 3, 24, 20)
    reach = torch.tensor([24, 17, 9])
    results = []
    for extra in (0, 8):
        torch.manual_seed(1)
        module = resnet().train()
        x = torch.full((3, 3, 24 + extra, 20 + extra), torch.nan)
        x[:, :, :24, :20] = small
        mask = (torch.arange(24 + extra) < reach[:, None])[:, None, :, None] & (torch.arange(20 + extra) < 20)
        y = module(mt.as_masked_tensor(x, mask.expand(x.shape)))
        y.square().sum().backward()
        results.append([y.filled(0).detach(), *(p.grad for p in module.parameters()), *module.buffers()])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def partition(scores, transitions):
    """log of the sum over all paths of ``exp`` of their scores; masked steps are passed over."""
    total = scores[:, 0]
    for step in range(1, scores.shape[1]):
        new = (total.unsqueeze(2) + transitions + scores[:, step].unsqueeze(1)).logsumexp(1)
        if isinstance(scores, mt.MaskedTensor):
            new = torch.where(pair_of(scores).mask[:, step], new, total)
        total = new
    return total.logsumexp(1)


def test_conditional_random_field_on_a_bilstm():
    torch.manual_seed(0)
    module, transitions = Tagger(), nn.Parameter(torch.randn(4, 4))
    x, mask = torch.randn(3, 12, 6), (torch.arange(12) < torch.tensor(LENGTHS)[:, None])[..., None]
    padded = mt.as_masked_tensor(torch.where(mask, x, torch.nan), mask.expand(x.shape))
    loss = partition(module(padded), transitions).sum()
    got = torch.autograd.grad(loss, [transitions, *module.parameters()])
    expected = sum(partition(module(row[None, :n]), transitions).sum() for row, n in zip(x, LENGTHS, strict=True))
    torch.testing.assert_close(loss.filled(0), expected)
    for g, e in zip(got, torch.autograd.grad(expected, [transitions, *module.parameters()]), strict=True):
        torch.testing.assert_close(g, e, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make", [Conformer, Classifier, Tagger])
def test_left_padding(make):
    torch.manual_seed(0)
    module, width = make().eval(), 6 if make is Tagger else 8
    rows = [torch.randn(1, n, width) for n in LENGTHS]
    data = torch.cat([F.pad(row, (0, 0, 12 - row.shape[1], 0), value=torch.nan) for row in rows])
    mask = (torch.arange(12) >= 12 - torch.tensor(LENGTHS)[:, None])[..., None]
    y = module(mt.as_masked_tensor(data, mask.expand(data.shape)))
    y.square().sum().backward()
    grads = [p.grad.clone() for p in module.parameters()]
    module.zero_grad()
    for i, row in enumerate(rows):
        expected = module(row)
        expected.square().sum().backward()
        got = y.filled(0)[i : i + 1]
        torch.testing.assert_close(
            got if expected.dim() == 2 else got[:, 12 - row.shape[1] :], expected, atol=1e-5, rtol=1e-5
        )
    for g, p in zip(grads, module.parameters(), strict=True):
        torch.testing.assert_close(g, p.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore")  # the other package's own
@pytest.mark.parametrize("family", ["Llama", "Bert"])
def test_a_third_party_model(family):
    """Models of another package, built from their config with random weights, unmodified, without an attention mask."""
    transformers = pytest.importorskip("transformers", reason="optional: pip install transformers")
    torch.manual_seed(0)
    config = {"vocab_size": 30, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
    config |= {"num_attention_heads": 4, "max_position_embeddings": 32, "attn_implementation": "sdpa"}
    if family == "Llama":
        model = transformers.LlamaModel(transformers.LlamaConfig(**config, num_key_value_heads=2)).eval()
    else:
        model = transformers.BertModel(transformers.BertConfig(**config), add_pooling_layer=False).eval()
    model = model.double()
    ids, mask = torch.randint(0, 30, (3, 12)), torch.arange(12) < torch.tensor(LENGTHS)[:, None]
    padded = mt.as_masked_tensor(torch.where(mask, ids, -100), mask)
    states = model(input_ids=padded).last_hidden_state
    states.sin().sum().backward()
    grads = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    for i, n in enumerate(LENGTHS):
        expected = model(input_ids=ids[i : i + 1, :n]).last_hidden_state
        torch.testing.assert_close(states.filled(0)[i : i + 1, :n], expected)
        expected.sin().sum().backward()
    for g, p in zip(grads, model.parameters(), strict=True):
        torch.testing.assert_close(g, p.grad)
