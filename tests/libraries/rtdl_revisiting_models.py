"""rtdl_revisiting_models: networks for tables, beside rows that are masked."""

from ._case import Case, beside, integers, load, ragged

ROWS, BOTH = beside((5,)), beside((5,), integers(3, 2))
LIBRARY = "rtdl_revisiting_models"
RESNET = {"d_in": 5, "d_out": 2, "n_blocks": 2, "d_block": 8, "d_hidden_multiplier": 2.0}
DROPOUT = {"dropout1": 0.0, "dropout2": 0.0}


def made(name, **options):
    return lambda: getattr(load("rtdl_revisiting_models"), name)(**options)


def transformer():
    made = load("rtdl_revisiting_models").FTTransformer
    options = made.get_default_kwargs(1) | {"d_block": 16, "attention_n_heads": 2}
    return made(n_cont_features=5, cat_cardinalities=[3, 3], d_out=2, **options)


CASES = [
    Case("MLP", made("MLP", d_in=5, d_out=2, n_blocks=2, d_block=8, dropout=0.0), ROWS),
    Case("ResNet", made("ResNet", **RESNET, **DROPOUT), ROWS),
    Case("ResNet (training)", made("ResNet", **RESNET, **DROPOUT), ROWS, train=True),
    Case("FTTransformer", transformer, BOTH),
    Case("LinearEmbeddings", made("LinearEmbeddings", n_features=5, d_embedding=4), ROWS),
    Case("CategoricalEmbeddings", made("CategoricalEmbeddings", cardinalities=[3, 3], d_embedding=4),
         beside(integers(3, 2))),
    Case("MultiheadAttention", made("MultiheadAttention", d_embedding=8, n_heads=2, dropout=0.0),
         ragged((None, 8), (None, 8))),
]  # fmt: skip
