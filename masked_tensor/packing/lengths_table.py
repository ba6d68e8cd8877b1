"""What each op of the table, and each functional form, does with lengths; new ones are declared here.

What is not said loses them: then who asks for lengths is told so (``Grid.complete`` is None).  Packed rules whose
result is packed need no such word: it serves where the ordinary rule runs in their place.
"""

from ..op import Op
from .lengths import (
    Kind,
    along,
    appended,
    extreme,
    flipped,
    indexed,
    joined,
    last,
    lost,
    none,
    paired,
    product,
    quantiles,
    repeated,
    repeated_each,
    rolled,
    same,
    selected,
    sliced,
    sorted_,
    written,
)

WIDENS = written, joined  #: what is valid in their results may lie where no step exists


def kind_of(op: Op) -> Kind:
    """What an op of the table makes of lengths."""
    known = KINDS.get(op.name)
    if known is not None:
        return known
    return next((BY_RULE[r.name] for r in op.packed_rules if r.name in BY_RULE), lost)


def is_declared(op: Op) -> bool:
    """Whether it is said of an op what it makes of lengths."""
    return op.name in KINDS or any(r.name in BY_RULE for r in op.packed_rules)


#: by the packed rule of an op, unless its name says otherwise
BY_RULE: dict[str, Kind] = {
    "elementwise": same,
    "elementwise, within the tokens": same,
    "as it is stored": same,
    "as it is stored, by its rule": same,
    "as it is stored, if anything is": same,
    "as the source is stored": same,
    "loss": same,
    "reduction": along,
    "along features": along,
    "on the last features": last,
    "one more feature": appended,
}

_NAMES: dict[Kind, str] = {
    same: """
        softmax log_softmax _softmax _log_softmax _safe_softmax cumsum cumprod cummax cummin logcumsumexp _logcumsumexp
        layer_norm native_layer_norm rms_norm _fused_rms_norm group_norm native_group_norm renorm
        batch_norm instance_norm native_batch_norm _native_batch_norm_legit _softmax_backward_data
        _log_softmax_backward_data
        bernoulli.p bernoulli.Tensor feature_dropout feature_alpha_dropout
        _conj _neg_view _conj_copy _neg_view_copy imag conj real resolve_conj resolve_neg positive conj_physical lift
        lift_fresh_copy detach_copy alias_copy contiguous _pin_memory isin bucketize searchsorted
        """,
    written: """
        where.self where.ScalarSelf where.ScalarOther where.Scalar index_fill fill_diagonal masked_scatter index_put
        _unsafe_index_put _index_put_impl
        scatter scatter_add scatter_reduce index_add index_reduce index_copy select_scatter slice_scatter
        """,
    along: """
        select select_copy kthvalue median nanmedian mode aminmax _aminmax gather topk glu argmax argmin max.dim min.dim
        """,
    quantiles: "quantile nanquantile",
    paired: "cosine_similarity pairwise_distance",
    product: "mm matmul linear bmm addmm",
    joined: "cat stack _stack",
    flipped: "flip",
    rolled: "roll",
    repeated: "repeat",
    repeated_each: "repeat_interleave.self_int repeat_interleave.Tensor",
    sorted_: "sort",
    selected: "index_select",
    sliced: "slice slice_copy",
    indexed: "index _unsafe_index",
    none: """
        new_empty new_zeros new_ones new_full new_empty_strided is_same_size equal allclose _local_scalar_dense item
        is_nonzero _is_any_true _is_all_true _assert_async _functional_assert_async is_pinned sparse_dim dense_dim
        _dimI _dimV _nnz is_coalesced nonzero nonzero_static histc histogram histogramdd bincount trace dot vdot mv
        addmv pdist _pdist_forward dist native_norm set_ _has_compatible_shallow_copy_type ctc_loss
        cosine_embedding_loss masked_select
        """,
    lost: """
        vander linalg_cross _make_dual _unpack_dual _add_batch_dim _remove_batch_dim multinomial take t transpose
        permute unsqueeze squeeze unbind expand alias movedim split split_with_sizes unsafe_split
        unsafe_split_with_sizes
        diagonal unfold t_copy transpose_copy permute_copy unsqueeze_copy squeeze_copy unbind_copy split_copy
        split_with_sizes_copy expand_copy diagonal_copy narrow_copy unfold_copy pixel_shuffle pixel_unshuffle
        channel_shuffle native_channel_shuffle rot90 view reshape flatten.using_ints _unsafe_view _reshape_copy
        view_copy _reshape_alias view.dtype view_copy.dtype view_as_real view_as_real_copy view_as_complex
        view_as_complex_copy tensor_split.tensor_indices_or_sections as_strided as_strided_copy combinations tril triu
        diag_embed select_backward slice_backward diagonal_backward trace_backward to_dense _to_dense to_sparse
        to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc _to_sparse _to_sparse_csr _to_sparse_csc
        _to_sparse_bsr _to_sparse_bsc sparse_coo_tensor.indices sparse_coo_tensor.indices_size coalesce _coalesce
        values _values indices _indices crow_indices col_indices ccol_indices row_indices block_diag _chunk_cat
        pad_sequence _unsafe_masked_index _unsafe_masked_index_put_accumulate put diagonal_scatter as_strided_scatter
        segment_reduce _unique _unique2 unique_consecutive unique_dim unique_dim_consecutive trapezoid.dx trapz.dx
        _weight_norm _weight_norm_interface _native_batch_norm_legit.no_stats _native_batch_norm_legit_no_training
        _native_batch_norm_legit_functional _batch_norm_no_update _batch_norm_with_update
        _batch_norm_with_update_functional _batch_norm_impl_index cudnn_batch_norm miopen_batch_norm batch_norm_stats
        batch_norm_gather_stats_with_counts batch_norm_elemt batch_norm_backward_reduce batch_norm_backward_elemt
        multi_margin_loss multilabel_margin_loss multilabel_margin_loss_forward triplet_margin_loss cross_entropy_loss
        nll_loss nll_loss2d nll_loss_nd nll_loss_forward nll_loss2d_forward
        torch_nn::_linear_cross_entropy_batch_chunked torch_nn::_linear_cross_entropy_batch_chunked_no_reduction
        addbmm baddbmm _addmm_activation addr _grouped_mm _trilinear linalg_cholesky_ex cholesky cholesky_inverse
        linalg_inv_ex _linalg_det _linalg_slogdet linalg_lu_factor_ex linalg_lu linalg_matrix_exp linalg_matrix_sqrth
        lu_unpack _linalg_eigh _linalg_svd linalg_qr geqrf linalg_eig _linalg_eigvals linalg_ldl_factor_ex
        linalg_polar linalg_pinv.atol_rtol_tensor linalg_matrix_rank pinverse linalg_pinv.atol_rtol_float matrix_power
        linalg_matrix_power linalg_householder_product ormqr linalg_ldl_solve linalg_lstsq _linalg_check_errors
        _linalg_solve_ex linalg_solve_triangular triangular_solve cholesky_solve linalg_lu_solve lu_solve
        quantized::linear_dynamic quantized::linear_relu_dynamic quantized::linear_dynamic_fp16
        quantized::linear_relu_dynamic_fp16 _fft_c2c _fft_r2c _fft_c2r stft.default stft.center istft cdist
        _cdist_forward _euclidean_dist cov corrcoef scaled_dot_product_attention _scaled_dot_product_attention_math
        _scaled_dot_product_flash_attention_for_cpu _fused_sdp_choice _native_multi_head_attention
        _transformer_encoder_layer_fwd _nested_tensor_from_mask_left_aligned embedding_renorm_ embedding_bag
        _embedding_bag _embedding_bag_forward_only conv1d.padding conv2d.padding conv3d.padding conv1d conv2d conv3d
        _convolution_mode conv_transpose1d conv_transpose2d.input conv_transpose3d.input convolution _convolution
        conv_tbc im2col col2im constant_pad_nd reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d
        replication_pad2d replication_pad3d _pad_circular max_pool1d max_pool1d_with_indices max_pool2d
        max_pool2d_with_indices max_pool3d max_pool3d_with_indices adaptive_max_pool1d adaptive_max_pool2d
        adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d max_pool2d_with_indices_backward max_unpool2d
        max_unpool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
        _adaptive_avg_pool2d _adaptive_avg_pool3d upsample_nearest1d.default upsample_nearest1d.vec
        upsample_nearest2d.default upsample_nearest2d.vec upsample_nearest3d.default upsample_nearest3d.vec
        _upsample_nearest_exact1d.default _upsample_nearest_exact1d.vec _upsample_nearest_exact2d.default
        _upsample_nearest_exact2d.vec _upsample_nearest_exact3d.default _upsample_nearest_exact3d.vec
        upsample_linear1d.default upsample_linear1d.vec upsample_bilinear2d.default upsample_bilinear2d.vec
        upsample_trilinear3d.default upsample_trilinear3d.vec upsample_bicubic2d.default upsample_bicubic2d.vec
        _upsample_bilinear2d_aa.default _upsample_bilinear2d_aa.vec _upsample_bicubic2d_aa.default
        _upsample_bicubic2d_aa.vec grid_sampler grid_sampler_2d grid_sampler_3d affine_grid_generator lstm.input
        gru.input rnn_tanh.input rnn_relu.input lstm.data gru.data rnn_tanh.data rnn_relu.data lstm_cell gru_cell
        rnn_tanh_cell rnn_relu_cell _pack_padded_sequence _pad_packed_sequence c10d::broadcast_ c10d::allgather_
        c10d::_allgather_base_ c10d::allgather_coalesced_ c10d::scatter_ c10d::allgather_into_tensor_coalesced_
        c10d::gather_ c10d::alltoall_ c10d::alltoall_base_ c10d::recv_ c10d::recv_any_source_ c10d::allreduce_
        c10d::allreduce_coalesced_ c10d::reduce_ c10d::reduce_scatter_ c10d::_reduce_scatter_base_
        c10d::reduce_scatter_tensor_coalesced_ c10d::send _c10d_functional::broadcast
        _c10d_functional::all_gather_into_tensor _c10d_functional::all_gather_into_tensor_coalesced
        _c10d_functional::all_to_all_single _c10d_functional_autograd::all_gather_into_tensor
        _c10d_functional_autograd::all_to_all_single _c10d_functional::all_reduce
        _c10d_functional::all_reduce_coalesced _c10d_functional::reduce_scatter_tensor
        _c10d_functional::reduce_scatter_tensor_coalesced _c10d_functional_autograd::reduce_scatter_tensor
        _c10d_functional::wait_tensor
        """,
}
KINDS: dict[str, Kind] = {name: kind for kind, names in _NAMES.items() for name in names.split()}

_FORMS: dict[Kind, str] = {
    same: """
        layer_norm rms_norm normalize cumsum cumprod logcumsumexp cummax cummin softmax log_softmax softmin logaddexp
        rankdata ffill bfill interpolate shift
        batch_norm binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss gaussian_nll_loss
        group_norm hinge_embedding_loss huber_loss instance_norm kl_div l1_loss local_response_norm
        margin_ranking_loss masked_fill mse_loss multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss
        cross_entropy nll_loss poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss
        """,
    written: "masked_fill_ masked_scatter masked_scatter_",
    along: """
        any all count_nonzero var std var_mean std_mean norm median nanmedian mode sum prod mean amax amin logsumexp
        nansum nanmean aminmax argmax argmin
        """,
    quantiles: "quantile nanquantile",
    extreme: "max min",
    lost: """
        average corrcoef cov dist log_prob masked_select rolling scaled_dot_product_attention unique
        unique_consecutive
        """,
}
FORM_KINDS: dict[str, Kind] = {name: kind for kind, names in _FORMS.items() for name in names.split()}
