"""The values of a reduction, each with the number of its result."""

from collections.abc import Callable

from torch import Tensor

from ..shared.names import names_arguments


class Segments:
    """The segments of a reduction, which assign each value to a result.

    The function of a sparse or packed reduction receives the valid values ``(N, ...)`` and their segments. Value ``i``
    belongs to result ``ids[i]``. The function returns ``(number, ...)``, one row for each result.

    Attributes:
        number (int): The number of results.
        ids (Tensor): The result of each value; int64, shape ``(N,)``.
        count (Tensor): The number of values of each result; int64, shape ``(number, 1, ..., 1)``, which broadcasts.

    Example:
        >>> from masked_tensor.extend import Segments
        >>> segments = Segments(2, torch.tensor([0, 0, 1]), torch.tensor([2, 1]))
        >>> values = torch.tensor([1.0, 2.0, 5.0])
        >>> segments.sum(values) / segments.count
        tensor([1.5000, 5.0000])
        >>> values - segments.expand(segments.max(values))
        tensor([-1.,  0.,  0.])
    """

    def __init__(self, number: int, ids: Tensor, count: Tensor) -> None:
        self.number = number
        self.ids = ids
        self.count = count

    @names_arguments
    def sum(self, values: Tensor) -> Tensor:
        """The sum of each segment, shape ``(number, ...)``; 0 for a segment without values.

        Args:
            values (Tensor): Of any real dtype, shape ``(N, ...)``.

        Returns:
            Tensor: Of the dtype of ``values``, shape ``(number, ...)``.

        Example:
            >>> from masked_tensor.extend import Segments
            >>> segments = Segments(2, torch.tensor([0, 0, 1]), torch.tensor([2, 1]))
            >>> segments.sum(torch.tensor([1.0, 2.0, 5.0])).tolist()
            [3.0, 5.0]
        """
        return values.new_zeros((self.number, *values.shape[1:])).index_add(0, self.ids, values)

    @names_arguments
    def max(self, values: Tensor) -> Tensor:
        """The largest value of each segment, shape ``(number, ...)``; 0 for a segment without values.

        Args:
            values (Tensor): Of any real dtype, shape ``(N, ...)``.

        Returns:
            Tensor: Of the dtype of ``values``, shape ``(number, ...)``.

        Example:
            >>> from masked_tensor.extend import Segments
            >>> segments = Segments(2, torch.tensor([0, 0, 1]), torch.tensor([2, 1]))
            >>> segments.max(torch.tensor([1.0, 2.0, 5.0])).tolist()
            [2.0, 5.0]
        """
        return self._extreme(values, "amax")

    @names_arguments
    def min(self, values: Tensor) -> Tensor:
        """The smallest value of each segment, shape ``(number, ...)``; 0 for a segment without values.

        Args:
            values (Tensor): Of any real dtype, shape ``(N, ...)``.

        Returns:
            Tensor: Of the dtype of ``values``, shape ``(number, ...)``.

        Example:
            >>> from masked_tensor.extend import Segments
            >>> segments = Segments(2, torch.tensor([0, 0, 1]), torch.tensor([2, 1]))
            >>> segments.min(torch.tensor([1.0, 2.0, 5.0])).tolist()
            [1.0, 5.0]
        """
        return self._extreme(values, "amin")

    @names_arguments
    def expand(self, results: Tensor) -> Tensor:
        """The result of the segment of each value, shape ``(N, ...)``.

        Args:
            results (Tensor): Of any dtype, shape ``(number, ...)``.

        Returns:
            Tensor: Of the dtype of ``results``, shape ``(N, ...)``.

        Example:
            >>> from masked_tensor.extend import Segments
            >>> segments = Segments(2, torch.tensor([0, 0, 1]), torch.tensor([2, 1]))
            >>> segments.expand(torch.tensor([7.0, 8.0])).tolist()
            [7.0, 7.0, 8.0]
        """
        return results.index_select(0, self.ids)

    def _extreme(self, values: Tensor, name: str) -> Tensor:
        start = values.new_zeros((self.number, *values.shape[1:]))
        ids = self.ids.reshape(-1, *(1,) * (values.dim() - 1)).expand(values.shape)
        return start.scatter_reduce(0, ids, values, name, include_self=False)


class SegmentsOfStorage(Segments):
    """Segments that add up their values as accurately as the own sum of the storage."""

    def __init__(self, number: int, ids: Tensor, count: Tensor, add: Callable[[Tensor], Tensor]) -> None:
        super().__init__(number, ids, count)
        self._add = add

    def sum(self, values: Tensor) -> Tensor:
        """The sum of each segment, as the storage adds."""
        return self._add(values)
