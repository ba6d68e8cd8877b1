"""The errors of a mean over ranks and micro-batches: what was wrong, and the way out."""

NO_VALID_PART = (
    "the parts of a mean_over are masked, so that every gradient of their losses is 0: no part has a valid entry. A "
    "sum a + b is masked where a or b is; masked_tensor.total(a, b) adds up those that exist"
)


def no_mean() -> RuntimeError:
    """``mean_over`` was left without having seen a mean."""
    return RuntimeError(
        "mean_over saw no mean of a masked loss. If the loss is plain, mask the targets: masked_tensor(target, mask), "
        "or masked_equal(labels, -100), also for labels= of a model. "
        "If it is written by hand, or torch divides it in Python (kl_div with batchmean), write "
        "over.mean(entries) inside `with mean_over() as over:`"
    )


def nothing_to_finish() -> RuntimeError:
    """``mean_over.finish`` was called before any part."""
    return RuntimeError("mean_over: finish() has nothing to finish; take a mean inside `with mean:` first")


def failed_after_backward() -> RuntimeError:
    """An exception left a part of ``mean_over`` whose gradients were added, nobody knows how many."""
    return RuntimeError(
        "mean_over: an exception came after backward() began, so that the gradients hold a part that failed; zero them "
        "and call reset() on all ranks to begin the step again"
    )


def ranks_differ() -> RuntimeError:
    """``mean_over`` met ranks that do different things."""
    return RuntimeError(
        "mean_over: the ranks do not take the same losses: one skipped a micro-batch, failed, called finish(), takes "
        "another loss or has another number of micro-batches; skip on all ranks or on none (decide with an "
        "all_reduce), and give a rank without data x[:0]; to begin the step again, zero the gradients and call reset() "
        "on all ranks"
    )


def other_ranks_missing(timeout: object) -> RuntimeError:
    """A collective of ``mean_over`` failed: another rank has ended, or did not come in time."""
    return RuntimeError(
        f"mean_over could not add up over the ranks (timeout {timeout}): another rank ended, or waits somewhere else, "
        "as it does after a micro-batch that it alone skipped; all ranks take the same losses in the same order"
    )
