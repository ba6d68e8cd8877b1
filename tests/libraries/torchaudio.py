"""torchaudio: features and models of padded signals."""

from ._case import LENGTH, Case, load, ragged

WAVES = ragged((None,), lengths=(640, 400, 512))
FRAMES = ragged((None, 16))
SPECTRA = ragged((16, None))
LIBRARY = "torchaudio"


def transform(name, **options):
    return lambda: getattr(load("torchaudio.transforms"), name)(**options)


def model(name, **options):
    return lambda: getattr(load("torchaudio.models"), name)(**options)


def tacotron():
    return load("torchaudio.models").Tacotron2(
        n_symbol=20, symbol_embedding_dim=8, encoder_embedding_dim=8, decoder_rnn_dim=8, attention_rnn_dim=8,
        prenet_dim=8, postnet_embedding_dim=8, attention_hidden_dim=8, attention_location_n_filter=4, n_mels=8,
    )  # fmt: skip


FFT = {"n_fft": 32, "hop_length": 16, "center": False}
CASES = [
    Case("Spectrogram", transform("Spectrogram", **FFT), WAVES),
    Case("MelSpectrogram", transform("MelSpectrogram", n_mels=8, sample_rate=16000, **FFT), WAVES),
    Case("MFCC", transform("MFCC", n_mfcc=4, log_mels=True, melkwargs={"n_mels": 8, **FFT}), WAVES),
    Case("LFCC", transform("LFCC", n_lfcc=4, n_filter=8, log_lf=True, speckwargs=FFT), WAVES),
    Case("MelScale", transform("MelScale", n_mels=8, n_stft=16), SPECTRA),
    Case("ComputeDeltas", transform("ComputeDeltas"), SPECTRA),
    Case(
        "SlidingWindowCmn",
        transform("SlidingWindowCmn", cmn_window=6, center=True),
        FRAMES,
        "refused",
        "adds up in a plain tensor; write `from_sequences([cmn(row) for row in x.unpad()])`",
    ),
    Case(
        "MuLawEncoding, MuLawDecoding",
        lambda: (
            lambda x: load("torchaudio.functional").mu_law_decoding(
                load("torchaudio.functional").mu_law_encoding(x.tanh(), 256), 256
            )
        ),
        WAVES,
    ),
    Case("Preemphasis", transform("Preemphasis"), WAVES),
    Case("Vol", transform("Vol", gain=0.5), WAVES),
    Case("AmplitudeToDB", lambda: lambda x: load("torchaudio.transforms").AmplitudeToDB()(x.square()), SPECTRA),
    Case(
        "Fade",
        transform("Fade", fade_out_len=10),
        WAVES,
        "declared",
        "fades out at the end of the batch; write `from_sequences([fade(row) for row in x.unpad()])`",
    ),
    Case(
        "Resample",
        transform("Resample", orig_freq=3, new_freq=2),
        WAVES,
        "declared",
        "frames at the end of the filter stay valid; see [torchaudio](using.md#torchaudio)",
    ),
    Case(
        "Conformer",
        model("Conformer", input_dim=16, num_heads=2, ffn_dim=16, num_layers=2, depthwise_conv_kernel_size=3),
        ragged((None, 16), LENGTH),
    ),
    Case("DeepSpeech", model("DeepSpeech", n_feature=16, n_hidden=8), ragged((1, None, 16))),
    Case(
        "Wav2Letter", model("Wav2Letter", input_type="mfcc", num_features=16), ragged((16, None), lengths=(64, 32, 48))
    ),
    Case(
        "ConvTasNet",
        model(
            "ConvTasNet",
            enc_kernel_size=4,
            enc_num_feats=8,
            msk_num_feats=8,
            msk_num_hidden_feats=8,
            msk_num_layers=2,
            msk_num_stacks=1,
        ),
        ragged((1, None), lengths=(64, 32, 48)),
    ),
    Case(
        "Emformer",
        model(
            "Emformer", input_dim=16, num_heads=2, ffn_dim=16, num_layers=1, segment_length=4, right_context_length=1
        ),
        ragged((None, 16), LENGTH, lengths=(13, 9, 5)),
        "declared",
        "reads future frames at the end of the batch, even with its own lengths",
    ),
    Case("Tacotron2 (encoder)", lambda: tacotron().encoder, ragged((8, None), LENGTH, lengths=(12, 10, 7))),
    Case(
        "Wav2Vec2Model (feature extractor)",
        lambda: load("torchaudio.models").wav2vec2_model(
            "layer_norm", [(8, 10, 5), (8, 3, 2)], True, 16, 0.0, 3, 2, 1, 2, 0.0, 16, 0.0, 0.0, True, 0.0, None
        ),
        WAVES,
    ),
]
