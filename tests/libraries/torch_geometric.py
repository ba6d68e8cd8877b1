"""torch_geometric: convolutions, aggregations and norms; a graph of which some nodes are masked, and the rest of it."""

import torch

import masked_tensor as mt

from ._case import Case, beside, load

NODES = beside((4,), rows=6, masked=(1, 4))
EDGES = torch.tensor([[0, 1, 2, 3, 4, 5, 2, 0, 3, 5, 1, 2], [1, 0, 3, 2, 5, 4, 0, 2, 5, 3, 2, 1]])
KEPT = torch.tensor([0, 2, 3, 5])
GRAPHS = torch.tensor([0, 0, 0, 1, 1, 1])
EDGE = "counts masked neighbours; keep only the edges of valid nodes: `edges[:, valid[edges].all(0)]`"
LIBRARY = "torch_geometric"


def within_kept():
    """The edges among the nodes that are kept, as numbers of the whole and of the smaller graph."""
    edges = EDGES[:, torch.isin(EDGES, KEPT).all(0)]
    return edges, torch.searchsorted(KEPT, edges)


def on_graph(model, x):
    return model(x, EDGES if mt.is_masked_tensor(x) else within_kept()[1])


def on_kept(model, x):
    return model(x, within_kept()[0] if mt.is_masked_tensor(x) else within_kept()[1])


def by_graph(model, x):
    return model(x, GRAPHS if mt.is_masked_tensor(x) else GRAPHS[KEPT])


def in_own(model, x):
    own = GRAPHS.index_fill(0, torch.tensor([1, 4]), 2)
    return model(x, own)[:2] if mt.is_masked_tensor(x) else model(x, GRAPHS[KEPT])


def made(name, *args, **options):
    return lambda: getattr(load("torch_geometric.nn"), name)(*args, **options)


def conv(name, *args, **options):
    return Case(name, made(name, *(args or (4, 4)), **options), NODES, call=on_graph)


def counting(name, *args, **options):
    """Off as it is, and exact with the edges that are kept."""
    case = made(name, *(args or (4, 4)), **options)
    return [
        Case(name, case, NODES, "declared", EDGE, call=on_graph),
        Case(f"{name} (kept edges)", case, NODES, call=on_kept),
    ]


def aggregation(name, **options):
    return Case(name, made(name, **options), NODES, call=by_graph)


def counted(name, *args, **options):
    """What it gives is plain: each graph has a member."""

    def call(model, x):
        found = by_graph(model, x)
        return mt.as_masked_tensor(found, found == found) if mt.is_masked_tensor(x) else found

    return Case(name, made(name, *args, **options), NODES, call=call)


COUNTING = [
    ("VariancePreservingAggregation", (), {}), ("EquilibriumAggregation", (4, 4, [4]), {}),
    ("LSTMAggregation", (4, 3), {}), ("GRUAggregation", (4, 3), {}), ("LCMAggregation", (4, 4), {}),
    ("MLPAggregation", (4, 3, 2), {"num_layers": 1}), ("SetTransformerAggregation", (4,), {"heads": 2}),
    ("GraphMultisetTransformer", (4, 2), {"heads": 2}), ("MultiAggregation", (["mean", "std", "max"],), {}),
    ("PatchTransformerAggregation", (4, 4, 2, 8, 1), {"heads": 2}),
    ("DegreeScalerAggregation", (["mean", "sum"], ["amplification"], torch.tensor([0, 2, 3])), {}),
]  # fmt: skip


def members(name, *args, **options):
    case = made(name, *args, **options)
    return [
        Case(name, case, NODES, call=by_graph),
        Case(f"{name} (own graph)", case, NODES, call=in_own),
    ]


CASES = [
    conv("GraphConv"),
    conv("SAGEConv", 4, 4, aggr="max"),
    conv("GATConv"),
    conv("GATv2Conv"),
    conv("TransformerConv"),
    conv("ResGatedGraphConv"),
    conv("LEConv"),
    Case("GINConv", lambda: load("torch_geometric.nn").GINConv(torch.nn.Linear(4, 4)), NODES, call=on_graph),
    *counting("GCNConv"),
    *counting("GatedGraphConv", 4, 2),
    *counting("ClusterGCNConv"),
    conv("FeaStConv"),
    *counting("ChebConv", 4, 4, 2),
    *counting("TAGConv", 4, 4, 2),
    *counting("SGConv"),
    *counting("ARMAConv"),
    *counting("APPNP", 2, 0.1),
    aggregation("SumAggregation"),
    aggregation("MaxAggregation"),
    aggregation("MinAggregation"),
    aggregation("MulAggregation"),
    aggregation("SoftmaxAggregation"),
    *members("MeanAggregation"),
    *members("VarAggregation"),
    *members("StdAggregation"),
    *members("MedianAggregation"),
    aggregation("PowerMeanAggregation", p=2),
    *[counted(name, *sizes, **options) for name, sizes, options in COUNTING],
    Case("SortAggregation", made("SortAggregation", 2), NODES, call=by_graph),
    Case("global_mean_pool", lambda: load("torch_geometric.nn").global_mean_pool, NODES, call=by_graph),
    *[Case(name, made(name, *sizes), NODES, call=by_graph) for name, sizes in (
        ("GraphNorm", (4,)), ("InstanceNorm", (4,)), ("GraphSizeNorm", ()), ("PairNorm", ()))],
    Case("LayerNorm (graph)", made("LayerNorm", 4), NODES, call=by_graph),
    Case("BatchNorm", made("BatchNorm", 4), NODES, train=True),
    Case("LayerNorm (node)", made("LayerNorm", 4, mode="node"), NODES),
    Case("LayerNorm", made("LayerNorm", 4), NODES),
    Case("MessageNorm", made("MessageNorm"), NODES, call=lambda m, x: m(x, x + 1)),
]  # fmt: skip
