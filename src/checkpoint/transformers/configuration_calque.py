# SPDX-License-Identifier: MIT. Copyright (c) 2026 The calque authors. calque writes this file beside the weights of its models.
"""CalqueConfig: what config.json says about a model that calque trained and that no other class of `transformers` can run."""

from transformers import PretrainedConfig


class CalqueConfig(PretrainedConfig):
    """`calque` holds the options of the model, by the names that calque's configuration files use, and the separator:
    the token ids between source and target."""

    model_type = "calque"
    keys_to_ignore_at_inference = ["past_key_values"]

    def __init__(self, calque=None, vocab_size=0, tie_word_embeddings=True, bos_token_id=None, eos_token_id=None, pad_token_id=None,
                 use_cache=True, **kwargs):
        self.calque = dict(calque or {})
        self.vocab_size = vocab_size
        self.use_cache = use_cache
        super().__init__(tie_word_embeddings=tie_word_embeddings, bos_token_id=bos_token_id, eos_token_id=eos_token_id,
                         pad_token_id=pad_token_id, **kwargs)

    # The names under which `transformers` asks for sizes, for instance those of the cache. They are read-only, and there is
    # no `sliding_window` among them: the cache must keep all keys, since the window is part of the mask.
    hidden_size = property(lambda self: self.calque["hidden_size"])
    num_hidden_layers = property(lambda self: self.calque["layers"])
    num_attention_heads = property(lambda self: self.calque["heads"])
    num_key_value_heads = property(lambda self: self.calque["kv_heads"])
    head_dim = property(lambda self: self.calque["head_size"])
    intermediate_size = property(lambda self: self.calque["mlp_size"])
    max_position_embeddings = property(lambda self: self.calque["context_length"])
