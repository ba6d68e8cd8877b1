"""A tiny configuration of any model type of transformers, made by one function from the names of its fields."""

from typing import Any

# The sizes that every type is given, by the words its authors use for them.
SIZES = {
    32: """hidden_size d_model n_embd embed_dim dim emb_dim embedding_size input_embedding_size
        output_embedding_size lru_width attention_hidden_size embedding_dim hidden_dim pooler_hidden_size
        word_embed_proj_dim projection_dim mamba_d_ssm true_hidden_size encoder_hidden_size
        decoder_hidden_size""",
    64: """intermediate_size ffn_dim d_ff dff dim_ff d_inner encoder_ffn_dim decoder_ffn_dim ffn_hidden_size
        n_inner feed_forward_size intermediate_size_mlp dense_intermediate_size max_position_embeddings
        n_positions n_ctx max_seq_len model_max_length context_length original_max_position_embeddings
        max_source_positions encoder_linear_units decoder_linear_units max_encoder_position_embeddings
        max_decoder_position_embeddings""",
    4: """num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads
        attention_heads num_encoder_attention_heads num_decoder_attention_heads num_experts n_routed_experts
        num_local_experts moe_num_experts index_n_heads indexer_n_heads swa_num_attention_heads
        linear_num_value_heads linear_num_heads mamba_d_conv encoder_num_attention_heads
        num_conv_pos_embedding_groups decoder_num_attention_heads linear_conv_kernel_dim""",
    2: """num_key_value_heads num_kv_heads num_layers encoder_layers decoder_layers n_layer n_layers
        num_decoder_layers num_encoder_layers num_experts_per_tok top_k_experts moe_topk
        num_experts_per_token moe_k linear_num_key_heads swa_num_key_value_heads num_hidden_groups
        indexer_compress_ratio num_query_groups prompt_length num_mem_blocks l_layers x_layers r_layers
        num_dense_layers num_layers_per_stack num_blocks""",
    16: """q_lora_rank kv_lora_rank qk_head_dim mamba_d_state state_size index_topk ssm_state_size num_mel_bins
        input_feat_per_channel num_mel_channels num_conv_pos_embeddings chunk_size mamba_chunk_size""",
    8: """head_dim d_kv qk_rope_head_dim qk_nope_head_dim v_head_dim index_head_dim indexer_head_dim
        indexer_budget d_head linear_key_head_dim kv_channels linear_value_head_dim linear_head_dim
        attention_head_dim swa_head_dim mamba_head_dim mamba_headdim rotary_dim hidden_size_per_layer_input
        sliding_window attention_window_size local_attention window_size attention_window
        sliding_window_size time_step_rank mamba_dt_rank mamba_n_heads mamba_num_heads mamba_d_head""",
    48: "moe_intermediate_size shared_expert_intermediate_size expert_ffn_hidden_size moe_hidden_size",
    1: """n_group indexer_kv_heads num_expert_group topk_group n_groups n_shared_experts kv_n_heads
        mamba_n_groups mamba_ngroups first_k_dense_replace num_nextn_predict_layers""",
    99: """vocab_size text_vocab_size src_vocab_size tgt_vocab_size decoder_vocab_size
        vocab_size_per_layer_input vision_vocab_size unpadded_vocab_size""",
}
SMALL = {name: size for size, names in SIZES.items() for name in names.split()}
WIDTHS = ("conv_dim", "tdnn_dim", "conv_channels", "hidden_sizes", "embed_dims", "embedding_dims")  # for each layer
NO_DROPOUT = ("dropout", "drop_rate", "pdrop", "layerdrop")
SPECIAL = {
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
    "forced_eos_token_id": 2,
    "audio_pad_token_id": 0,
    "audio_bos_token_id": 1,
}
DEPTH = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "layers_block_type", "layer_types")


SERIES = {"prediction_length": 4, "context_length": 12, "lags_sequence": [1, 2, 3], "num_time_features": 1}


# What the words do not say.
MORE: dict[str, dict[str, Any]] = {
    "mamba2": {"num_heads": 8},
    "esm": {"vocab_size": 99, "pad_token_id": 0, "mask_token_id": 3},
    "mobilebert": {"true_hidden_size": 32, "intra_bottleneck_size": 32, "embedding_size": 32},
    "reformer": {"axial_pos_embds": False},
    "lilt": {"hidden_size": 48},
    "flint": {"mlp_only_layers": [0]},
    "nllb-moe": {"encoder_sparse_step": 2, "decoder_sparse_step": 2},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "mistral4": {"head_dim": 16},
    "zamba": {
        "num_hidden_layers": 4,
        "layers_block_type": ["mamba", "hybrid"] * 2,
        "attention_hidden_size": 64,
        "attention_head_dim": 16,
    },
    "zamba2": {"attention_hidden_size": 64, "attention_head_dim": 16},
    "gemma3n_text": {"num_kv_shared_layers": 0},
    "cohere_compass_text": {
        "rope_parameters": {
            k: {"rope_type": "default", "rope_theta": 1e4} for k in ("full_attention", "sliding_attention")
        }
    },
    "xmod": {"default_language": "en_XX"},
    **dict.fromkeys(("time_series_transformer", "informer", "autoformer"), SERIES),
    **{
        name: {"num_input_channels": 3, "prediction_length": 8, "patch_stride": 8}
        for name in ("patchtst", "patchtsmixer")
    },
    **{name: {"patch_length": 8, "context_length": 32, "horizon_length": 8} for name in ("timesfm", "timesfm2_5")},
    **{name: {"embed_dim": 24} for name in ("swin", "swinv2", "donut-swin", "swin2sr")},
    **{name: {"hidden_sizes": [32, 64, 160, 256]} for name in ("glpn", "segformer", "pvt", "pvt_v2")},
    "textnet": {"hidden_sizes": [64, 64, 128, 256, 512], "image_size": [64, 64]},
    "bit": {"num_groups": 4},
    "timm_backbone": {"backbone": "test_resnet"},
    "efficientnet": {"width_coefficient": 0.25, "depth_coefficient": 0.3, "hidden_dim": 320},
    "hgnet_v2": {"hidden_sizes": [256, 512, 1024, 2048]},
}


# What is tried where a model neither is built nor runs otherwise: fields that are None take sizes, too; so do the parts
# of a rotary embedding over three axes.
ATTEMPTS = (frozenset[str](), frozenset({"none"}), frozenset({"none", "axes"}), frozenset({"none", "half"}))


def tiny(config_class: Any, attempt: frozenset[str] = ATTEMPTS[0]) -> Any:
    """The smallest configuration of a class that still has each of its kinds of layers."""
    chosen = _chosen(config_class(), attempt) | MORE.get(config_class.model_type, {})
    for _ in range(8):  # what a class computes by itself, or does not let one choose, is left to it
        try:
            return config_class(**chosen)
        except Exception as error:
            named = [name for name in chosen if f"'{name}'" in str(error) or f"`{name}`" in str(error)]
            if not named:
                raise
            chosen.pop(named[0])
    return config_class(**chosen)


def _part(config: Any, attempt: frozenset[str]) -> Any:
    """A configuration within another, which may know more than its class does."""
    try:
        return type(config)(**config.to_diff_dict() | _chosen(config, attempt))
    except Exception:
        return tiny(type(config), attempt)


def _chosen(first: Any, attempt: frozenset[str]) -> dict[str, Any]:
    fields = first.to_dict()
    chosen = {name: _shrunk(name, value) for name, value in fields.items() if _shrunk(name, value) is not None}
    if "none" in attempt:
        chosen |= {name: SMALL[name] for name, value in fields.items() if value is None and name in SMALL}
    chosen |= {name: value for name, value in SPECIAL.items() if isinstance(fields.get(name), int)}
    heads, shared = fields.get("num_attention_heads"), fields.get("num_key_value_heads")
    if shared is not None and shared == heads:  # its code may not repeat the keys
        chosen["num_key_value_heads"] = chosen.get("num_attention_heads", heads)
    for name in first.sub_configs:
        if hasattr(getattr(first, name, None), "sub_configs"):
            chosen[name] = _part(getattr(first, name), attempt)
    rope = fields.get("rope_parameters")
    if isinstance(rope, dict) and (rope.get("mrope_section") or attempt & {"axes", "half"}):
        half = rope.get("partial_rotary_factor", 1.0) < 1 or "half" in attempt
        chosen["rope_parameters"] = rope | {"mrope_section": [1, 1, 0] if half else [2, 1, 1]}
    depth = max(2, len(_kinds(fields)))
    length = next((fields[k] for k in DEPTH[:4] if isinstance(fields.get(k), int)), None)
    if isinstance(fields.get("num_hidden_layers"), int):
        chosen["num_hidden_layers"] = depth
    for name, value in fields.items():
        if isinstance(value, list | tuple) and length is not None and len(value) == length:
            chosen[name] = _thinned(fields, value, depth)
    return chosen


def _shrunk(name: str, value: Any) -> Any:
    if isinstance(value, float) and any(word in name for word in NO_DROPOUT):
        return 0.0
    if name in WIDTHS and isinstance(value, list | tuple):
        return [min(v, 32) for v in value]
    if isinstance(value, int) and not isinstance(value, bool) and name in SMALL and value > SMALL[name]:
        return SMALL[name]
    return None


def _kinds(fields: dict[str, Any]) -> list[Any]:
    named = next((fields[k] for k in DEPTH[4:] if isinstance(fields.get(k), list | tuple)), [])
    return list(dict.fromkeys(named))


def _thinned(fields: dict[str, Any], value: Any, depth: int) -> list[Any]:
    """Of a list with an entry for each layer, the first entry of each kind of layer, and then from the start."""
    named = next((fields[k] for k in DEPTH[4:] if isinstance(fields.get(k), list | tuple)), list(range(len(value))))
    firsts = sorted({named.index(kind) for kind in dict.fromkeys(named)}) if len(named) == len(value) else [0]
    places = firsts[:depth] + [i for i in range(len(value)) if i not in firsts]
    return [value[i] for i in sorted(places[:depth])]
