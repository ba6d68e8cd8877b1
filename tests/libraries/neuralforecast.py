"""neuralforecast: networks of windows of 12 steps, beside windows that are masked whole; losses; recurrent layers."""

import torch

from ._case import Case, beside, load, ragged

WINDOWS = beside((12, 1))
PAIRS = beside((6, 1), (6, 1))
LIBRARY = "neuralforecast"
SMALL = {"scaler_type": None, "max_steps": 1}


def network(name, **options):
    return lambda: getattr(load("neuralforecast.models"), name)(h=6, input_size=12, **SMALL, **options)


def forecast(model, x):
    """As its training step calls it."""
    exogenous = {"futr_exog": None, "hist_exog": None, "stat_exog": None}
    return model({"insample_y": x, "insample_mask": torch.ones_like(x), **exogenous})


def loss(name, *args, **options):
    return lambda: getattr(load("neuralforecast.losses.pytorch"), name)(*args, **options)


def compared(loss, y, guess):
    return loss(y=y, y_hat=guess)


CASES = [
    *(Case(name, network(name, **options), WINDOWS, call=forecast) for name, options in {
        "MLP": {"hidden_size": 8},
        "NBEATS": {"mlp_units": [[8, 8]] * 3},
        "NHITS": {"mlp_units": [[8, 8]] * 3},
        "NLinear": {},
        "DLinear": {"moving_avg_window": 3},
        "TiDE": {"hidden_size": 8, "decoder_output_dim": 4, "temporal_decoder_dim": 8, "dropout": 0.0},
        "GRU": {"encoder_hidden_size": 8, "decoder_hidden_size": 8},
        "LSTM": {"encoder_hidden_size": 8, "decoder_hidden_size": 8},
        "RNN": {"encoder_hidden_size": 8, "decoder_hidden_size": 8},
        "TCN": {"encoder_hidden_size": 8, "decoder_hidden_size": 8, "kernel_size": 2, "dilations": [1, 2]},
        "DilatedRNN": {"encoder_hidden_size": 8, "decoder_hidden_size": 8, "dilations": [[1, 2]]},
        "BiTCN": {"hidden_size": 8, "dropout": 0.0},
        "PatchTST": {"hidden_size": 8, "n_heads": 2, "linear_hidden_size": 8, "encoder_layers": 1, "patch_len": 4,
                     "stride": 4, "dropout": 0.0, "fc_dropout": 0.0},
        "KAN": {"hidden_size": 8},
        "DeepNPTS": {"hidden_size": 8, "dropout": 0.0},
        "TimesNet": {"hidden_size": 8, "conv_hidden_size": 8, "dropout": 0.0, "encoder_layers": 1},
        "VanillaTransformer": {"hidden_size": 8, "conv_hidden_size": 8, "n_head": 2, "dropout": 0.0},
        "Autoformer": {"hidden_size": 8, "conv_hidden_size": 8, "n_head": 2, "dropout": 0.0, "MovingAvg_window": 3},
    }.items()),
    *(Case(name, loss(name, *args), PAIRS, call=compared) for name, args in {
        "MAE": (), "MSE": (), "RMSE": (), "MAPE": (), "SMAPE": (), "HuberLoss": (),
        "QuantileLoss": (0.3,),
    }.items()),
    Case("TemporalConvolutionEncoder", lambda: load("neuralforecast.common._modules").TemporalConvolutionEncoder(
        2, 8, 2, [1, 2]), ragged((None, 2)), "declared",
        "trims the padded length, so short rows keep steps after their end; mask these by the lengths"),
]  # fmt: skip
