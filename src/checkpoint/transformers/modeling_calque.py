# SPDX-License-Identifier: MIT. Copyright (c) 2026 The calque authors. calque writes this file beside the weights of its models.
"""CalqueForCausalLM: calque's decoder for `transformers`, with every option that calque can train.

A model with prefix attention reads `<s> source <sep>` in both directions and the target from left to right. Here the prefix ends
with the last separator of the input; without one, the whole input is the prefix. The argument `prefix_lengths` overrides this.
Padding needs an attention_mask; it may be on either side, and generate() needs it on the left.

In the shapes below, `rows` are the tokens of one call and `keys` all tokens so far, those in the cache included."""

import math

import torch
from torch import nn
from torch.nn import functional as F
from transformers import DynamicCache, GenerationMixin, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast
from transformers.pytorch_utils import Conv1D

from .configuration_calque import CalqueConfig

# A checkpoint has the tensor names of the family that its model belongs to, or calque's own. Some families keep queries, keys
# and values in one matrix, others in three; the same holds for gate and value of a gated MLP. What is not listed has the name of
# its role.
LLAMA = {
    "embedding": "model.embed_tokens", "output": "lm_head.weight", "layer": "model.layers.{}", "norm": "model.norm",
    "attention_norm": "input_layernorm", "feed_forward_norm": "post_attention_layernorm",
    "qkv": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"], "attention_output": ["self_attn.o_proj"],
    "query_norm": "self_attn.q_norm", "key_norm": "self_attn.k_norm",
    "up": ["mlp.gate_proj", "mlp.up_proj"], "down": ["mlp.down_proj"],
}
GEMMA = {
    **LLAMA, "attention_post_norm": "post_attention_layernorm",
    "feed_forward_norm": "pre_feedforward_layernorm", "feed_forward_post_norm": "post_feedforward_layernorm",
}
GPT2 = {
    "embedding": "transformer.wte", "positions": "transformer.wpe.weight", "layer": "transformer.h.{}", "norm": "transformer.ln_f",
    "attention_norm": "ln_1", "feed_forward_norm": "ln_2",
    "qkv": ["attn.c_attn"], "attention_output": ["attn.c_proj"], "up": ["mlp.c_fc"], "down": ["mlp.c_proj"],
}
OWN = {
    "positions": "embedding.positions", "layer": "block_{}", "qkv": ["attention.qkv"], "attention_output": ["attention.output"],
    "query_norm": "attention.query_norm", "key_norm": "attention.key_norm", "up": ["feed_forward.up"], "down": ["feed_forward.down"],
}
NAMES = {"llama": LLAMA, "qwen2": LLAMA, "qwen3": LLAMA, "gemma3": GEMMA, "gpt2": GPT2, "calque": OWN}


def attach(root, path, part):
    """Registers a module or parameter under a dotted path, so that its tensors have the checkpoint's names."""
    *folders, name = path.split(".")
    for folder in folders:
        if not hasattr(root, folder):
            root.add_module(folder, nn.Module())
        root = getattr(root, folder)
    setattr(root, name, part)


class CalqueNorm(nn.Module):
    """RMSNorm, RMSNorm with 1 + weight (Gemma), or LayerNorm. Computed in float32."""

    def __init__(self, own, size):
        super().__init__()
        self.kind, self.epsilon = own["norm"], own["norm_epsilon"]
        self.weight = nn.Parameter(torch.zeros(size) if self.kind == "rms_plus_one" else torch.ones(size))
        if self.kind == "layer":
            self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, x):
        wide, weight = x.float(), self.weight.float()
        if self.kind == "layer":
            return F.layer_norm(wide, weight.shape, weight, self.bias.float(), self.epsilon).to(x.dtype)
        if self.kind == "rms_plus_one":
            weight = weight + 1
        return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.epsilon) * weight).to(x.dtype)


def rope_table(position_ids, head_size, theta):
    """Cosines and sines of the RoPE angles, each [batch, 1, rows, head_size / 2]."""
    exponents = torch.arange(0, head_size, 2, dtype=torch.float32, device=position_ids.device) / head_size
    angles = position_ids[:, None, :, None].float() * (1.0 / theta**exponents)
    return angles.cos(), angles.sin()


def rotate(x, table):
    """RoPE in the half-split form: dimension i rotates with dimension i + head_size / 2."""
    cosines, sines = (part.to(x.dtype) for part in table)
    first, second = x.chunk(2, -1)
    return torch.cat([first * cosines - second * sines, second * cosines + first * sines], -1)


def sinusoidal(position_ids, size):
    """[batch, rows, size]. Vaswani et al. (2017), with the sines in the first half and the cosines in the second."""
    frequencies = torch.exp(torch.arange(0, size, 2, dtype=torch.float32, device=position_ids.device) * (-math.log(10000.0) / size))
    angles = position_ids[..., None].float() * frequencies
    return torch.cat([angles.sin(), angles.cos()], -1)


class CalqueBlock(nn.Module):
    """Attention, then the MLP, each on a normalised input and added to the residual stream."""

    def __init__(self, own, layer):
        super().__init__()
        self.names, self.layer = NAMES[own["architecture"]], layer
        types = own["layer_types"] or ["full_attention"]  # repeated over the layers
        self.slides = types[layer % len(types)] == "sliding_attention"
        self.head_size, self.groups = own["head_size"], own["heads"] // own["kv_heads"]
        self.qkv_sizes = [heads * own["head_size"] for heads in (own["heads"], own["kv_heads"], own["kv_heads"])]
        self.gated = own["activation"] in ("swiglu", "geglu")
        self.activation = {"swiglu": F.silu, "relu": F.relu}.get(own["activation"], lambda x: F.gelu(x, approximate="tanh"))

        hidden, inner = own["hidden_size"], own["mlp_size"]
        self.add_norm("attention_norm", own, hidden)
        self.add_norm("feed_forward_norm", own, hidden)
        self.add_norm("attention_post_norm", own, hidden if own["post_norm"] else 0)
        self.add_norm("feed_forward_post_norm", own, hidden if own["post_norm"] else 0)
        self.add_norm("query_norm", own, self.head_size if own["qk_norm"] else 0)
        self.add_norm("key_norm", own, self.head_size if own["qk_norm"] else 0)
        self.add_linear("qkv", hidden, self.qkv_sizes, own["bias"] or own["qkv_bias"])
        self.add_linear("attention_output", self.qkv_sizes[0], [hidden], own["bias"])
        self.add_linear("up", hidden, [inner, inner] if self.gated else [inner], own["bias"])
        self.add_linear("down", inner, [hidden], own["bias"])

    def add_norm(self, role, own, size):
        attach(self, self.names.get(role, role), CalqueNorm(own, size) if size else nn.Identity())

    def add_linear(self, role, inputs, outputs, bias):
        names = self.names[role]
        for name, size in zip(names, outputs if len(names) > 1 else [sum(outputs)]):
            # GPT-2 stores its matrices transposed.
            attach(self, name, Conv1D(size, inputs) if self.names is GPT2 else nn.Linear(inputs, size, bias=bias))

    def normalise(self, role, x):
        return self.get_submodule(self.names.get(role, role))(x)

    def project(self, role, x):
        return torch.cat([self.get_submodule(name)(x) for name in self.names[role]], -1)

    def attend(self, x, mask, rope, cache):
        q, k, v = (part.unflatten(-1, (-1, self.head_size)).transpose(1, 2)  # [batch, heads or kv_heads, rows, head_size]
                   for part in self.project("qkv", x).split(self.qkv_sizes, -1))
        q, k = self.normalise("query_norm", q), self.normalise("key_norm", k)
        if rope is not None:
            q, k = rotate(q, rope), rotate(k, rope)
        if cache is not None:
            k, v = cache.update(k, v, self.layer)  # [batch, kv_heads, keys, head_size]
        k, v = k.repeat_interleave(self.groups, 1), v.repeat_interleave(self.groups, 1)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # [batch, heads, rows, head_size]
        return self.project("attention_output", mixed.transpose(1, 2).flatten(2))

    def feed(self, x):
        inner = self.project("up", x)
        if self.gated:
            gate, value = inner.chunk(2, -1)
            return self.project("down", self.activation(gate) * value)
        return self.project("down", self.activation(inner))

    def forward(self, x, mask, rope, cache):
        h = x + self.normalise("attention_post_norm", self.attend(self.normalise("attention_norm", x), mask, rope, cache))
        return h + self.normalise("feed_forward_post_norm", self.feed(self.normalise("feed_forward_norm", h)))


class CalqueForCausalLM(PreTrainedModel, GenerationMixin):
    config_class = CalqueConfig
    _no_split_modules = ["CalqueBlock"]
    _skip_keys_device_placement = ["past_key_values"]
    _supports_sdpa = True

    def __init__(self, config):
        super().__init__(config)
        own = config.calque
        self.names = NAMES[own["architecture"]]
        attach(self, self.path("embedding"), nn.Embedding(config.vocab_size, config.hidden_size))
        if own["positions"] == "learned":
            attach(self, self.path("positions"), nn.Parameter(0.02 * torch.randn(own["context_length"], config.hidden_size)))
        for layer in range(config.num_hidden_layers):
            attach(self, self.path("layer").format(layer), CalqueBlock(own, layer))
        attach(self, self.path("norm"), CalqueNorm(own, config.hidden_size))
        if own.get("embedding_shortcut"):
            self.embedding_shortcut = nn.Parameter(torch.zeros(config.num_hidden_layers))
        if not config.tie_word_embeddings:
            attach(self, self.path("output"), nn.Parameter(0.02 * torch.randn(config.vocab_size, config.hidden_size)))
        self.post_init()

    def path(self, role):
        return self.names.get(role, role)

    def get_input_embeddings(self):
        return self.get_submodule(self.path("embedding"))

    def set_input_embeddings(self, value):
        attach(self, self.path("embedding"), value)

    def get_output_embeddings(self):
        return None  # a tied output matrix is the embedding itself, an untied one a parameter

    def embed(self, x, position_ids):
        """x: the tokens' embeddings, [batch, rows, hidden_size]."""
        own = self.config.calque
        if own["scale_embeddings"]:
            x = x * math.sqrt(own["hidden_size"])
        if own["positions"] == "learned":
            x = x + self.get_parameter(self.path("positions"))[position_ids]
        elif own["positions"] == "sinusoidal":
            x = x + sinusoidal(position_ids, own["hidden_size"]).to(x.dtype)
        return x

    def separator_ends(self, input_ids):
        """The column after the last separator of each sequence, or after the last column: [batch]."""
        separator = torch.tensor(self.config.calque.get("separator", []), device=input_ids.device)
        size, rows = len(separator), input_ids.shape[1]
        if not 0 < size <= rows:  # without a tokenizer, a checkpoint has no separator
            return torch.full((len(input_ids),), rows, device=input_ids.device)
        found = (input_ids.unfold(1, size, 1) == separator).all(-1)  # [batch, rows - size + 1]
        ends = (found * torch.arange(size, rows + 1, device=input_ids.device)).amax(1)
        return torch.where(ends > 0, ends, rows)

    def restarted(self, position_ids, input_ids):
        """With target_positions: restart, positions begin at 0 again at the last token of the separator, which predicts the
        target's first one. position_ids: [batch or 1, columns], of all columns so far, as input_ids: [batch, columns]."""
        if self.config.calque.get("target_positions") != "restart":
            return position_ids
        first = (self.separator_ends(input_ids) - 1)[:, None]  # [batch, 1]
        position_ids = position_ids.expand(len(input_ids), -1)
        column = torch.arange(input_ids.shape[1], device=input_ids.device)
        size = len(self.config.calque.get("separator", []))
        found = (input_ids.gather(1, first) == self.config.calque["separator"][-1]) if size else torch.zeros_like(first, dtype=torch.bool)
        return torch.where(found & (column >= first), position_ids - position_ids.gather(1, first), position_ids)

    def prepare_inputs_for_generation(self, input_ids, **kwargs):
        inputs = super().prepare_inputs_for_generation(input_ids, **kwargs)
        if self.config.calque.get("target_positions") == "restart":  # the separator may be in the cache only
            mask = kwargs.get("attention_mask")
            columns = torch.ones_like(input_ids) if mask is None else mask.long()[:, :input_ids.shape[1]]
            position_ids = self.restarted((columns.cumsum(1) - 1).clamp(min=0), input_ids)
            inputs["position_ids"] = position_ids[:, -inputs["input_ids"].shape[1]:]
        return inputs

    def masks(self, past, rows, attention_mask, prefix_ends, device):
        """What each row may attend to, in layers with full attention and in sliding ones: [batch or 1, 1, rows, keys]."""
        column = torch.arange(past + rows, device=device)
        row = column[past:, None]
        visible = (column <= row)[None]  # [1, rows, keys]
        if prefix_ends is not None:
            visible = visible | (column < prefix_ends[:, None, None])
        if attention_mask is not None:
            visible = visible & attention_mask[:, None, :].bool()
        visible = (visible | (column == row))[:, None]  # padding sees itself: a softmax over nothing is NaN
        return visible, visible & ((column - row).abs() < self.config.calque["sliding_window"])

    def forward(self, input_ids=None, attention_mask=None, position_ids=None, past_key_values=None, inputs_embeds=None, labels=None,
                use_cache=None, logits_to_keep=0, prefix_lengths=None, return_dict=None, **kwargs):
        """attention_mask: [batch, keys], 0 for padding. prefix_lengths: [batch], the tokens of each sequence, padding not counted,
        that attend to each other in both directions. labels: input_ids with -100 where there is no loss."""
        if attention_mask is not None and attention_mask.dim() != 2:
            raise ValueError("attention_mask: expected [batch, keys]; the model makes the mask of its prefix itself")
        if getattr(past_key_values, "is_compileable", False):
            raise ValueError("static caches are not supported; use the default, a DynamicCache")
        own = self.config.calque
        if inputs_embeds is None:
            inputs_embeds = self.get_input_embeddings()(input_ids)
        rows, device = inputs_embeds.shape[1], inputs_embeds.device
        if past_key_values is None and (self.config.use_cache if use_cache is None else use_cache):
            past_key_values = DynamicCache()
        past = 0 if past_key_values is None else past_key_values.get_seq_length()
        if position_ids is None:
            position_ids = (torch.arange(past + rows, device=device)[None] if attention_mask is None
                            else (attention_mask.long().cumsum(1) - 1).clamp(min=0))[:, -rows:]
            if own.get("target_positions") == "restart":
                if past > 0 or input_ids is None:
                    raise ValueError("a model whose positions restart at the target needs position_ids with a cache or inputs_embeds")
                position_ids = self.restarted(position_ids, input_ids)

        prefix_ends = None  # a sequence that goes on sees all of its prefix, which is in the cache
        if past == 0 and prefix_lengths is not None:
            padding = 0 if attention_mask is None else attention_mask.long().argmax(1)  # on the left
            prefix_ends = torch.as_tensor(prefix_lengths, device=device) + padding
        elif past == 0 and own["attention"] == "prefix":
            if input_ids is None:
                raise ValueError("with inputs_embeds, a model with prefix attention needs prefix_lengths")
            prefix_ends = self.separator_ends(input_ids)
        full, sliding = self.masks(past, rows, attention_mask, prefix_ends, device)
        rope, local_rope = (rope_table(position_ids, own["head_size"], own[key]) if own["positions"] == "rope" else None
                            for key in ("rope_theta", "rope_local_theta"))

        x = self.embed(inputs_embeds, position_ids)  # [batch, rows, hidden_size]
        embedded = x
        for layer in range(self.config.num_hidden_layers):
            if own.get("embedding_shortcut"):
                x = x + embedded * self.embedding_shortcut[layer]
            block = self.get_submodule(self.path("layer").format(layer))
            x = block(x, *((sliding, local_rope) if block.slides else (full, rope)), past_key_values)
        x = self.get_submodule(self.path("norm"))(x)
        if isinstance(logits_to_keep, torch.Tensor) or logits_to_keep > 0:
            x = x[:, logits_to_keep if isinstance(logits_to_keep, torch.Tensor) else slice(-logits_to_keep, None)]
        output = self.get_input_embeddings().weight if self.config.tie_word_embeddings else self.get_parameter(self.path("output"))
        logits = F.linear(x, output)  # [batch, rows, vocab_size]

        loss = None if labels is None else self.loss_function(logits=logits, labels=labels, vocab_size=self.config.vocab_size, **kwargs)
        result = CausalLMOutputWithPast(loss=loss, logits=logits, past_key_values=past_key_values)
        return result.to_tuple() if return_dict is False else result
