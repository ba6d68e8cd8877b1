"""Where this package changes other libraries, which count the entries of a tensor in Python: the names.

docs/importing.md lists the same names.  A library that lacks one is reported by a warning when it is imported.
"""

from ..extend.libraries import Place

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


#: Module of torchmetrics: its functions, after the name of the task, the tasks, the classes that have an ``update``.
_CLASSIFIED = {
    "accuracy": ("accuracy", _TASKS, ()),
    "auroc": ("auroc", _TASKS, ()),
    "average_precision": ("average_precision", _TASKS, ()),
    "calibration_error": ("calibration_error", _TASKS[:2], ("BinaryCalibrationError", "MulticlassCalibrationError")),
    "cohen_kappa": ("cohen_kappa", _TASKS[:2], ()),
    "confusion_matrix": ("confusion_matrix", _TASKS, tuple(f"{t.capitalize()}ConfusionMatrix" for t in _TASKS)),
    "eer": ("eer", _TASKS, ()),
    "exact_match": ("exact_match", _TASKS[1:], ("MulticlassExactMatch", "MultilabelExactMatch")),
    "f_beta": ("fbeta_score f1_score", _TASKS, ()),
    "hamming": ("hamming_distance", _TASKS, ()),
    "hinge": ("hinge_loss", _TASKS[:2], ("BinaryHingeLoss", "MulticlassHingeLoss")),
    "jaccard": ("jaccard_index", _TASKS, ()),
    "logauc": ("logauc", _TASKS, ()),
    "matthews_corrcoef": ("matthews_corrcoef", _TASKS, ()),
    "negative_predictive_value": ("negative_predictive_value", _TASKS, ()),
    "precision_fixed_recall": ("precision_at_fixed_recall", _TASKS, ()),
    "precision_recall": ("precision recall", _TASKS, ()),
    "precision_recall_curve": (
        "precision_recall_curve",
        _TASKS,
        tuple(f"{t.capitalize()}PrecisionRecallCurve" for t in _TASKS),
    ),
    "ranking": (
        "coverage_error ranking_average_precision ranking_loss",
        _TASKS[2:],
        ("MultilabelCoverageError", "MultilabelRankingAveragePrecision", "MultilabelRankingLoss"),
    ),
    "recall_fixed_precision": ("recall_at_fixed_precision", _TASKS, ()),
    "roc": ("roc", _TASKS, ()),
    "sensitivity_specificity": ("sensitivity_at_specificity", _TASKS, ()),
    "specificity": ("specificity", _TASKS, ()),
    "specificity_sensitivity": ("specificity_at_sensitivity", _TASKS, ()),
    "stat_scores": ("stat_scores", _TASKS, tuple(f"{t.capitalize()}StatScores" for t in _TASKS)),
}


def _classification(module: str) -> tuple[Place, ...]:
    names, tasks, owners = _CLASSIFIED[module]
    functions = tuple(f"{task}_{name}" for name in names.split() for task in tasks)
    classes = (Place(f"torchmetrics.classification.{module}", owner, ("update",)) for owner in owners)
    return (Place(f"torchmetrics.functional.classification.{module}", "", functions), *classes)


#: ``(preds, target)`` of torchmetrics: of which the entries count, or the rows if there are several outputs.
ENTRIES = _regression(_OF_ENTRIES)
#: Of which the rows count.
ROWS = _regression(tuple(m for m in _REGRESSION if m not in _OF_ENTRIES))
#: Of which the entries count (binary, multilabel), the places of classes (multiclass), or the rows.
CLASSES = tuple(place for module in _CLASSIFIED for place in _classification(module))
#: Which keep entries that do not count, and read them in ``compute``.
LABEL_CURVES = tuple(
    Place(f"torchmetrics.classification.{module}", f"Multilabel{owner}", ("compute",))
    for module, owner in (
        ("precision_recall_curve", "PrecisionRecallCurve"),
        ("auroc", "AUROC"),
        ("average_precision", "AveragePrecision"),
        ("eer", "EER"),
        ("logauc", "LogAUC"),
        ("precision_fixed_recall", "PrecisionAtFixedRecall"),
        ("recall_fixed_precision", "RecallAtFixedPrecision"),
        ("roc", "ROC"),
        ("sensitivity_specificity", "SensitivityAtSpecificity"),
        ("specificity_sensitivity", "SpecificityAtSensitivity"),
    )
)
_RETRIEVAL = {
    "auroc": "auroc",
    "average_precision": "average_precision",
    "fall_out": "fall_out",
    "hit_rate": "hit_rate",
    "ndcg": "normalized_dcg",
    "precision": "precision",
    "precision_recall_curve": "precision_recall_curve",
    "r_precision": "r_precision",
    "recall": "recall",
    "reciprocal_rank": "reciprocal_rank",
}
_CLUSTERS = {  # module: functions, classes with an ``update``
    "adjusted_mutual_info_score": ("adjusted_mutual_info_score", ""),
    "adjusted_rand_score": ("adjusted_rand_score", "AdjustedRandScore"),
    "cluster_accuracy": ("cluster_accuracy", "ClusterAccuracy"),
    "fowlkes_mallows_index": ("fowlkes_mallows_index", "FowlkesMallowsIndex"),
    "homogeneity_completeness_v_measure": (
        "homogeneity_score completeness_score v_measure_score",
        "HomogeneityScore CompletenessScore VMeasureScore",
    ),
    "mutual_info_score": ("mutual_info_score", "MutualInfoScore"),
    "normalized_mutual_info_score": ("normalized_mutual_info_score", ""),
    "rand_score": ("rand_score", "RandScore"),
}
_POINTS = {
    "calinski_harabasz_score": ("calinski_harabasz_score", "CalinskiHarabaszScore"),
    "davies_bouldin_score": ("davies_bouldin_score", "DaviesBouldinScore"),
    "dunn_index": ("dunn_index", "DunnIndex"),
}
_FAIRNESS = "classification.group_fairness"


def _clustering(modules: dict[str, tuple[str, str]]) -> tuple[Place, ...]:
    functions = (Place(f"torchmetrics.functional.clustering.{m}", "", tuple(modules[m][0].split())) for m in modules)
    classes = ((f"torchmetrics.clustering.{m}", owner) for m in modules for owner in modules[m][1].split())
    return (*functions, *(Place(module, owner, ("update",)) for module, owner in classes))


#: ``(preds, target)`` or ``(preds, target, groups)``: of which the entries count that are valid in all.
TOGETHER = (
    *(Place(f"torchmetrics.functional.retrieval.{m}", "", (f"retrieval_{name}",)) for m, name in _RETRIEVAL.items()),
    Place("torchmetrics.retrieval.base", "RetrievalMetric", ("update",)),
    Place("torchmetrics.retrieval.precision_recall_curve", "RetrievalPrecisionRecallCurve", ("update",)),
    Place(f"torchmetrics.functional.{_FAIRNESS}", "", ("binary_groups_stat_rates", "binary_fairness")),
    Place(f"torchmetrics.{_FAIRNESS}", "BinaryGroupStatRates", ("update",)),
    Place(f"torchmetrics.{_FAIRNESS}", "BinaryFairness", ("update",)),
    *_clustering(_CLUSTERS),
    Place("torchmetrics.functional.image.psnr", "", ("peak_signal_noise_ratio",)),
    Place("torchmetrics.image.psnr", "PeakSignalNoiseRatio", ("update",)),
)
#: ``(data, labels)``: of which the rows count.
POINTS = _clustering(_POINTS)
#: Makes maps of classes comparable, one channel for each class.
CLASS_MAPS = (Place("torchmetrics.functional.segmentation.utils", "", ("_segmentation_inputs_format",)),)
#: Takes every place for part of a shape or of what surrounds it.
SHAPES = (
    Place("torchmetrics.functional.segmentation.hausdorff_distance", "", ("hausdorff_distance",)),
    Place("torchmetrics.segmentation.hausdorff_distance", "HausdorffDistance", ("update",)),
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
#: Count the members of each group, or lay them side by side.
MEMBERS = tuple(
    Place(f"torch_geometric.nn.aggr.{module}", owner, ("forward",))
    for module, owner in (
        ("equilibrium", "EquilibriumAggregation"),
        ("fused", "FusedAggregation"),
        ("gmt", "GraphMultisetTransformer"),
        ("gru", "GRUAggregation"),
        ("lcm", "LCMAggregation"),
        ("lstm", "LSTMAggregation"),
        ("mlp", "MLPAggregation"),
        ("patch_transformer", "PatchTransformerAggregation"),
        ("scaler", "DegreeScalerAggregation"),
        ("set_transformer", "SetTransformerAggregation"),
        ("variance_preserving", "VariancePreservingAggregation"),
    )
)
#: Weighs by the padded number of nodes.
GRAPH_ATTENTION = (Place("torch_geometric.nn.attention.sgformer", "SGFormerAttention", ("forward",)),)
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
#: Divide by the number of rows.
CONTRASTIVE = (Place("monai.losses.contrastive", "ContrastiveLoss", ("forward",)),)
BARLOW_TWINS = (Place("monai.losses.barlow_twins", "BarlowTwinsLoss", ("forward",)),)
VICREG = (Place("pytorch_metric_learning.losses.vicreg_loss", "VICRegLoss", ("forward",)),)
#: Fills up to a multiple of the experts, with a mask of ones for what was there.
DYNAMIC_SLOTS = (Place("soft_moe_pytorch.soft_moe_with_dynamic_slots", "DynamicSlotsSoftMoE", ("forward",)),)
#: Goes along time by hand, by a mask beside it.
CRF = (Place("torchcrf", "CRF", ("forward", "decode")),)
#: Sends the batches of the first rank to the others.
DISPATCH = (Place("accelerate.data_loader", "DataLoaderDispatcher", ("_fetch_batches",)),)
RECEIVE = (Place("accelerate.data_loader", "DataLoaderDispatcher", ("__iter__",)),)
#: Divides a sum over ranks by their number.
REDUCE = (Place("accelerate.utils.operations", "", ("reduce",)),)
_FABRIC, _LIGHTNING = ("lightning.fabric", "lightning_fabric"), ("lightning.pytorch", "pytorch_lightning")
#: The same, and what adds up logged values.
LIGHTNING_SYNC = tuple(Place(f"{m}.utilities.distributed", "", ("_sync_ddp",)) for m in _FABRIC)
LIGHTNING_LOG = tuple(
    Place(f"{m}.trainer.connectors.logger_connector.result", "_ResultMetric", ("update",)) for m in _LIGHTNING
)
LIGHTNING_MEAN = tuple(Place(place.module, place.owner, ("compute",)) for place in LIGHTNING_LOG)
#: Store tensors as plain memory.
PLAIN_STORES = (Place("tensordict.base", "TensorDictBase", ("memmap", "memmap_", "memmap_like", "consolidate")),)

LIBRARIES = (
    *ENTRIES, *ROWS, *CLASSES, *LABEL_CURVES, *TOGETHER, *POINTS, *CLASS_MAPS, *SHAPES, *SIGNALS,
    *IGNITE, *SCATTER, *QUANTILE, *MEMBERS, *GRAPH_ATTENTION, *NORMS, *POOLING, *SIGLIP,
    *CONTRASTIVE, *BARLOW_TWINS, *VICREG, *DYNAMIC_SLOTS, *CRF,
    *DISPATCH, *RECEIVE, *REDUCE, *LIGHTNING_SYNC, *LIGHTNING_LOG, *LIGHTNING_MEAN, *PLAIN_STORES,
)  # fmt: skip

#: The modules of transformers' models, and what is changed in each that has it.
MODELS = ("transformers.models.", ".modeling_")
BALANCING_LOSS = "load_balancing_loss_func"
ROUTER_LOSS = "router_z_loss_func"
SUMMARY = "SequenceSummary"  #: the end of the name of a class
