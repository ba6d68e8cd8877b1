"""pytorch-tabnet: TabNet, beside rows that are masked."""

from ._case import Case, beside, load, ragged

ROWS, ALONG = beside((5,), rows=6), ragged((None,), lengths=(5, 2, 4))
LIBRARY = "pytorch-tabnet"


def made(name, *args, **options):
    return lambda: getattr(load("pytorch_tabnet.tab_network"), name)(*args, **options)


def net(**options):
    torch = load("torch")
    attention = torch.eye(5).double()
    return made("TabNet", 5, 2, n_d=4, n_a=4, virtual_batch_size=3, group_attention_matrix=attention, **options)


CASES = [
    Case("TabNet", net(), ROWS),
    Case("TabNet (entmax)", net(mask_type="entmax"), ROWS),
    Case("FeatTransformer", made("FeatTransformer", 5, 4, None, 2), ROWS),
    Case("GBN", made("GBN", 5, virtual_batch_size=6), ROWS, train=True),
    Case(
        "GBN (several virtual batches)",
        made("GBN", 5, virtual_batch_size=3),
        ROWS,
        "declared",
        "counts masked rows when it splits a batch into virtual batches; leave them out of the batch",
        train=True,
    ),
    Case("GLU_Layer", made("GLU_Layer", 5, 4), ROWS),
    Case("sparsemax", lambda: load("pytorch_tabnet.sparsemax").Sparsemax(dim=-1), ALONG),
    Case("entmax15", lambda: load("pytorch_tabnet.sparsemax").Entmax15(dim=-1), ALONG),
]
