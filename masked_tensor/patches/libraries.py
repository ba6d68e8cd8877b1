"""Where this package changes other libraries, which count the entries of a tensor in Python: the names.

docs/importing.md lists the same names.  A library that lacks one is reported by a warning when it is imported.
"""

from .places import Place

_REGRESSION = {  # module: function, class
    "mse": ("mean_squared_error", "MeanSquaredError"),
    "mae": ("mean_absolute_error", "MeanAbsoluteError"),
    "log_mse": ("mean_squared_log_error", "MeanSquaredLogError"),
    "mape": ("mean_absolute_percentage_error", "MeanAbsolutePercentageError"),
    "symmetric_mape": ("symmetric_mean_absolute_percentage_error", "SymmetricMeanAbsolutePercentageError"),
    "wmape": ("weighted_mean_absolute_percentage_error", "WeightedMeanAbsolutePercentageError"),
    "log_cosh": ("log_cosh_error", "LogCoshError"),
    "nrmse": ("normalized_root_mean_squared_error", "NormalizedRootMeanSquaredError"),
    "tweedie_deviance": ("tweedie_deviance_score", "TweedieDevianceScore"),
    "r2": ("r2_score", "R2Score"),
    "rse": ("relative_squared_error", "RelativeSquaredError"),
    "explained_variance": ("explained_variance", "ExplainedVariance"),
    "pearson": ("pearson_corrcoef", "PearsonCorrCoef"),
    "concordance": ("concordance_corrcoef", None),  # whose class is a PearsonCorrCoef
    "kl_divergence": ("kl_divergence", "KLDivergence"),
}
_OF_ENTRIES = tuple(_REGRESSION)[:9]  #: their number of outputs says whether they count entries or rows
_TASKS = ("binary", "multiclass", "multilabel")


def _regression(modules: tuple[str, ...]) -> tuple[Place, ...]:
    functions = (Place(f"torchmetrics.functional.regression.{m}", "", (_REGRESSION[m][0],)) for m in modules)
    classes = ((f"torchmetrics.regression.{m}", _REGRESSION[m][1]) for m in modules)
    return (*functions, *(Place(module, owner, ("update",)) for module, owner in classes if owner))


def _classification(module: str, *functions: str, owners: tuple[str, ...] = ()) -> tuple[Place, ...]:
    classes = (Place(f"torchmetrics.classification.{module}", owner, ("update",)) for owner in owners)
    return (Place(f"torchmetrics.functional.classification.{module}", "", functions), *classes)


#: ``(preds, target)`` of torchmetrics: of which the entries count, or the rows if there are several outputs.
ENTRIES = _regression(_OF_ENTRIES)
#: Of which the rows count.
ROWS = _regression(tuple(m for m in _REGRESSION if m not in _OF_ENTRIES))
#: Of which the entries count (binary), the places of classes (multiclass), or the rows.
CLASSES = (
    *_classification(
        "precision_recall_curve",
        *(f"{task}_precision_recall_curve" for task in _TASKS),
        owners=tuple(f"{task.capitalize()}PrecisionRecallCurve" for task in _TASKS),
    ),
    *_classification("average_precision", *(f"{task}_average_precision" for task in _TASKS)),
    *_classification("precision_fixed_recall", *(f"{task}_precision_at_fixed_recall" for task in _TASKS)),
    *_classification("recall_fixed_precision", *(f"{task}_recall_at_fixed_precision" for task in _TASKS)),
    *_classification(
        "hinge",
        "binary_hinge_loss",
        "multiclass_hinge_loss",
        owners=("BinaryHingeLoss", "MulticlassHingeLoss"),
    ),
    *_classification(
        "exact_match",
        "multiclass_exact_match",
        "multilabel_exact_match",
        owners=("MulticlassExactMatch", "MultilabelExactMatch"),
    ),
)
#: Of which each side is averaged by itself along time.
SIGNALS = (
    Place("torchmetrics.functional.audio.snr", "", ("signal_noise_ratio", "scale_invariant_signal_noise_ratio")),
    Place("torchmetrics.functional.audio.sdr", "", ("scale_invariant_signal_distortion_ratio",)),
)

_IGNITE = """
    accuracy.Accuracy confusion_matrix.ConfusionMatrix cosine_similarity.CosineSimilarity entropy.Entropy
    epoch_metric.EpochMetric hsic.HSIC kl_divergence.KLDivergence loss.Loss mean_absolute_error.MeanAbsoluteError
    mean_average_precision.MeanAveragePrecision mean_pairwise_distance.MeanPairwiseDistance
    mean_squared_error.MeanSquaredError multilabel_confusion_matrix.MultiLabelConfusionMatrix nlp.perplexity.Perplexity
    precision.Precision psnr.PSNR rec_sys.hitrate.HitRate rec_sys.ndcg.NDCG recall.Recall
    regression._base._BaseRegression regression.kendall_correlation.KendallRankCorrelation
    regression.spearman_correlation.SpearmanRankCorrelation ssim.SSIM
    top_k_categorical_accuracy.TopKCategoricalAccuracy
"""
#: ``update(self, (predictions, target))`` of ignite.
IGNITE = tuple(
    Place(f"ignite.metrics.{module}", owner, ("update",))
    for module, _, owner in (name.rpartition(".") for name in _IGNITE.split())
)

#: Average over the members of groups.
SCATTER = (Place("torch_geometric.utils._scatter", "", ("scatter",)),)
QUANTILE = (Place("torch_geometric.nn.aggr.quantile", "QuantileAggregation", ("forward",)),)
#: Divide by the number of nodes of each graph.
NORMS = tuple(
    Place(f"torch_geometric.nn.norm.{module}", owner, ("forward",))
    for module, owner in (
        ("graph_size_norm", "GraphSizeNorm"),
        ("instance_norm", "InstanceNorm"),
        ("layer_norm", "LayerNorm"),
    )
)

#: Pools tokens into sentences.
POOLING = (Place("sentence_transformers.sentence_transformer.modules.pooling", "Pooling", ("forward",)),)
#: Divides by the number of pairs.
SIGLIP = (Place("open_clip.loss", "SigLipLoss", ("_loss",)),)
#: Sends the batches of the first rank to the others.
DISPATCH = (Place("accelerate.data_loader", "DataLoaderDispatcher", ("_fetch_batches",)),)
RECEIVE = (Place("accelerate.data_loader", "DataLoaderDispatcher", ("__iter__",)),)
#: Store tensors as plain memory.
PLAIN_STORES = (Place("tensordict.base", "TensorDictBase", ("memmap", "memmap_", "memmap_like", "consolidate")),)

LIBRARIES = (
    *ENTRIES, *ROWS, *CLASSES, *SIGNALS, *IGNITE, *SCATTER, *QUANTILE, *NORMS, *POOLING, *SIGLIP,
    *DISPATCH, *RECEIVE, *PLAIN_STORES,
)  # fmt: skip

#: The modules of transformers' models, and what is changed in each that has it.
MODELS = ("transformers.models.", ".modeling_")
BALANCING_LOSS = "load_balancing_loss_func"
ROUTER_LOSS = "router_z_loss_func"
SUMMARY = "SequenceSummary"  #: the end of the name of a class
