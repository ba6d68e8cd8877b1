"""The places of valid elements in a slice over any dimensions, against counting them one by one."""

from itertools import product

import torch

from masked_tensor.layouts import compressed
from masked_tensor.sparse.valid_positions import ValidPositions


def test_each_element_has_the_place_that_counting_gives() -> None:
    """Shapes of up to four dimensions, every choice of those reduced, masks that vary in some of them."""
    generator = torch.Generator().manual_seed(0)
    shape = (3, 2, 4, 3)
    for varies, reduced in product(product([False, True], repeat=4), product([False, True], repeat=4)):
        sizes = [size if own else 1 for size, own in zip(shape, varies, strict=True)]
        mask = torch.rand(sizes, generator=generator) < 0.6
        dims = [d for d in range(4) if reduced[d]]
        kept = [d for d in range(4) if not reduced[d]]
        places = ValidPositions(mask, shape, dims, mask.device)
        valid = mask.expand(shape).permute(*kept, *dims).reshape(*(shape[d] for d in kept), -1)
        before = (valid.cumsum(-1) - valid.long()).flatten()
        number = valid.flatten()
        grid = torch.meshgrid(*(torch.arange(shape[d]) for d in (*kept, *dims)), indexing="ij")
        coordinates = {d: axis.flatten()[number] for d, axis in zip((*kept, *dims), grid, strict=True)}
        if number.any():
            got = places.before(coordinates.__getitem__)
            assert torch.equal(got.expand(before[number].shape), before[number]), (varies, dims)
            flat = torch.arange(valid.shape[-1]).expand(valid.shape).flatten()[number]
            where = places.nth(coordinates.__getitem__, before[number])
            assert torch.equal(where, flat), (varies, dims)


def test_a_mask_with_fewer_dimensions_is_aligned_at_the_last() -> None:
    mask = torch.tensor([True, False, True])
    places = ValidPositions(mask, (2, 3), [0, 1], mask.device)
    row, column = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 2, 0, 2])
    assert places.before([row, column].__getitem__).tolist() == [0, 1, 2, 3]
    assert places.nth([row, column].__getitem__, torch.arange(4)).tolist() == [0, 2, 3, 5]


def test_where_nothing_is_valid_there_is_no_place() -> None:
    places = ValidPositions(torch.zeros(2, 3).bool(), (2, 3), [1], torch.device("cpu"))
    assert places.nth(lambda d: torch.zeros(2, dtype=torch.int64), torch.zeros(2, dtype=torch.int64)).tolist() == [0, 0]


def test_coordinates_of_what_compressed_layouts_store() -> None:
    """In blocks, of batches, with dense dimensions: the values put where they say make the dense tensor."""
    generator = torch.Generator().manual_seed(1)
    for layout, blocks, batch, dense in product(
        (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc),
        ((1, 2), (2, 2)),
        ((), (3,)),
        ((), (5,)),
    ):
        full = torch.rand(*batch, 4, 6, *dense, generator=generator) + 1
        full.narrow(len(batch), 0, 2).narrow(len(batch) + 1, 2, 2).zero_()
        block = {} if layout in (torch.sparse_csr, torch.sparse_csc) else {"blocksize": blocks}
        x = full.to_sparse(layout=layout, dense_dim=len(dense), **block)
        values = x.values().reshape(-1)
        at = tuple(compressed.coordinate(x, dim) for dim in range(x.dim()))
        assert torch.equal(torch.zeros(full.shape).index_put(at, values), full), (layout, blocks, batch, dense)
