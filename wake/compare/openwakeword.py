#!/usr/bin/env python3
"""Holds Bellbird's openWakeWord scores against those of the same models run by TensorFlow Lite.

The models are fed as the openwakeword package (0.6.0) feeds them when it streams: 80 ms at a time, each with 30 ms of
look-back, the spectrum scaled by x/10 + 2, the last 76 slices to the embedding, the last 16 embeddings to the word.
The package begins with embeddings of random noise; here as in Bellbird there is no score before they are gone.

Needs ai-edge-litert and soundfile, which run.sh installs:
wake/compare/run.sh openwakeword [--data DIR] [--folder speech/wake/alexa]... [--limit N]

It writes what the reference makes of each recording to a file and runs the Go test that compares (TestOpenWakeWordPeer).
With --golden it writes the scores of a synthetic sound to wake/testdata instead, for the test without a reference.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import soundfile
from ai_edge_litert.interpreter import Interpreter

STEP, LOOK_BACK, WINDOW, SLICES = 1280, 480, 76, 8


class Net:
    def __init__(self, path, shape=None):
        self.net = Interpreter(str(path), num_threads=1)
        if shape:
            self.net.resize_tensor_input(0, shape)
        self.net.allocate_tensors()
        self.i = self.net.get_input_details()[0]
        self.o = self.net.get_output_details()[0]["index"]

    def __call__(self, x):
        self.net.set_tensor(self.i["index"], x.astype(np.float32))
        self.net.invoke()
        return self.net.get_tensor(self.o)


class Reference:
    def __init__(self, models, words):
        # The first step has nothing to look back at.
        self.first = Net(models / "melspectrogram.tflite", [1, STEP])
        self.spectrum = Net(models / "melspectrogram.tflite", [1, STEP + LOOK_BACK])
        self.embedding = Net(models / "embedding_model.tflite")
        self.words = {w: Net(models / f"{w}.tflite") for w in words}

    def run(self, samples):
        """The embeddings, and of each word the scores from the first full window on."""
        slices = np.ones((WINDOW, 32), np.float32)
        embeddings = []
        for at in range(0, len(samples) - STEP + 1, STEP):
            chunk = samples[max(at - LOOK_BACK, 0):at + STEP][None]
            new = (self.spectrum if at else self.first)(chunk).reshape(-1, 32) / 10 + 2
            slices = np.vstack((slices, new))[-WINDOW:]
            embeddings.append(self.embedding(slices[None, :, :, None]).reshape(96))
        scores = {}
        for word, net in self.words.items():
            n = net.i["shape"][1]
            scores[word] = [
                float(net(np.array(embeddings[k - n:k])[None]).reshape(-1)[0])
                for k in range(max(n, 16), len(embeddings) + 1)
            ]
        return embeddings, scores


def synthetic(n):
    """The sound that helpers_test.go makes as well."""
    mask = 0xFFFFFFFF
    noise, phase, step = 1, 0, 1 << 23
    out = np.zeros(n, np.int16)
    for i in range(n):
        noise = (noise * 1664525 + 1013904223) & mask
        phase = (phase + step) & mask
        step += 1 << 10
        wave = (phase - (1 << 32) if phase >> 31 else phase) >> 16
        wave = max(wave, -wave - 1) * 2 - (1 << 15)
        loud = i // 2000 * 5 % 16 + 1
        v = (((noise >> 20) - 2048) + wave) * loud
        v = -(-v // 8) if v < 0 else v // 8
        block = i // 4000 % 8
        v = 0 if block == 2 else v * 3 if block == 5 else v
        out[i] = min(max(v, -(1 << 15)), (1 << 15) - 1)
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("../shared/data"))
    parser.add_argument("--folder", action="append")
    parser.add_argument("--limit", type=int, default=1 << 30)
    parser.add_argument("--golden", action="store_true")
    args = parser.parse_args()

    models = args.data / "models/openwakeword"
    words = sorted(p.stem for p in models.glob("*.tflite") if p.stem not in ("melspectrogram", "embedding_model"))
    reference = Reference(models, words)

    if args.golden:
        embeddings, scores = reference.run(synthetic(64000))
        golden = {
            "embeddings": [[round(float(x), 5) for x in embeddings[i]] for i in (0, 1, 5, 20, 49)],
            "scores": {w: [float(f"{s:.6g}") for s in v] for w, v in scores.items()},
        }
        path = pathlib.Path("wake/testdata/openwakeword.golden")
        path.write_text(json.dumps(golden, sort_keys=True).replace("], ", "],\n") + "\n")
        return

    folders = args.folder or ["speech/wake/alexa", "speech/wake/jarvis", "speech/wake/computer", "speech/wake/reference_tests"]
    files = sorted(p for f in folders for p in (args.data / f).rglob("*.flac"))[:args.limit]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as out:
        for n, path in enumerate(files):
            samples, rate = soundfile.read(path, dtype="int16", always_2d=True)
            if rate != 16000:
                continue
            samples = np.concatenate((np.zeros(16000, np.int16), samples[:, 0], np.zeros(8000, np.int16)))
            embeddings, scores = reference.run(samples)
            row = {"path": str(path.resolve()), "scores": scores, "embeddings": [[float(x) for x in e] for e in embeddings]}
            print(json.dumps(row), file=out)
            if sys.stderr.isatty():
                print(f"\r{n + 1} of {len(files)}", end="", file=sys.stderr)
        out.flush()
        env = dict(os.environ, BELLBIRD_OPENWAKEWORD=out.name)
        sys.exit(subprocess.run(["go", "test", "-count=1", "-v", "-run", "^TestOpenWakeWordPeer$", "./wake"], env=env).returncode)


if __name__ == "__main__":
    main()
