#!/usr/bin/env python3
"""Holds Bellbird's wake word features and probabilities against those of pymicro-features and pymicro-wakeword.

Every FLAC file below DATA/speech goes through both, and every slice of features and every raw output of every model
is compared. The exit code is 0 if all are equal.

Needs pymicro-features==2.0.2, pymicro-wakeword==2.5.0 and soundfile; run from the repository's root:
wake/compare/run.sh [--data DIR] [--models DIR]... [--limit N]

With --golden it writes what the peers make of a synthetic sound to wake/testdata instead, for tests without peers.
"""

import argparse
import hashlib
import pathlib
import struct
import subprocess
import sys

import numpy as np
import soundfile
from pymicro_wakeword import MicroWakeWord, MicroWakeWordFeatures


def peer(samples, models):
    """The peers' features and raw outputs."""
    features = []
    outputs = [[] for _ in models]
    frontend = MicroWakeWordFeatures()
    for model in models:
        model.reset()
    for f in frontend.process_streaming(samples.tobytes()):
        # The feature as the integer it was before pymicro-features scaled it.
        features.append(np.round(f.reshape(40) / 0.0390625).astype(np.uint16))
        for model, out in zip(models, outputs):
            before = len(model._features)
            model.process_streaming_prob(f)
            if before + 1 == model.stride:
                p = model._probabilities[-1] / model.output_scale + model.output_zero_point
                out.append(int(round(p)))
    return np.array(features, np.uint16).reshape(-1, 40), [np.array(o, np.uint8) for o in outputs]


class Bellbird:
    """Bellbird's features and raw outputs, from a program that runs beside this one."""

    def __init__(self, program, manifests):
        self.manifests = manifests
        self.p = subprocess.Popen([program, *manifests], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def read(self, n):
        b = self.p.stdout.read(n)
        if len(b) != n:
            sys.exit("compare.py: the Go program ended early")
        return b

    def count(self):
        return struct.unpack("<I", self.read(4))[0]

    def run(self, samples):
        self.p.stdin.write(struct.pack("<I", len(samples)) + samples.tobytes())
        self.p.stdin.flush()
        n = self.count()
        features = np.frombuffer(self.read(n * 80), np.uint16).reshape(n, 40)
        outputs = [np.frombuffer(self.read(self.count()), np.uint8) for _ in self.manifests]
        return features, outputs


def synthetic(n):
    """The sound that synthetic in wake/helpers_test.go makes."""
    out = []
    noise, phase, step = 1, 0, 1 << 23
    for i in range(n):
        noise = (noise * 1664525 + 1013904223) & 0xFFFFFFFF
        phase = (phase + step) & 0xFFFFFFFF
        step += 1 << 10
        wave = (phase - (1 << 32) if phase >= 1 << 31 else phase) >> 16
        wave = max(wave, -wave - 1) * 2 - (1 << 15)
        loud = i // 2000 * 5 % 16 + 1
        v = ((noise >> 20) - 2048 + wave) * loud
        v = -(-v // 8) if v < 0 else v // 8
        part = i // 4000 % 8
        if part == 2:
            v = 0
        elif part == 5:
            v *= 3
        out.append(min(max(v, -32768), 32767))
    return np.array(out, np.int16)


def golden(manifests, models):
    """Writes the peers' results for the synthetic sound."""
    features, outputs = peer(synthetic(64000), models)
    where = pathlib.Path("wake/testdata")
    where.joinpath("features.golden").write_text("".join(" ".join(map(str, f)) + "\n" for f in features))
    lines = {}
    for manifest, out in zip(manifests, outputs):
        model = pathlib.Path(manifest).with_suffix(".tflite")
        digest = hashlib.sha256(model.read_bytes()).hexdigest()
        lines[digest] = f"{digest} {model.stem} {out.tobytes().hex()}\n"
    where.joinpath("outputs.golden").write_text("".join(sorted(lines.values(), key=lambda l: l.split()[1])))


def differing(a, b):
    """How many rows differ; rows that only one side has count too."""
    n = min(len(a), len(b))
    diff = (a[:n] != b[:n]).reshape(n, -1).any(axis=1)
    return int(diff.sum()) + abs(len(a) - len(b))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data", type=pathlib.Path)
    parser.add_argument(
        "--models", action="append", type=pathlib.Path, help="directories; default: models and DATA/models/microwakeword"
    )
    parser.add_argument("--limit", type=int, default=0, help="compare only about so many files, evenly chosen")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--golden", action="store_true")
    args = parser.parse_args()

    dirs = args.models or [pathlib.Path("models"), args.data / "models" / "microwakeword"]
    manifests = sorted(str(m) for d in dirs for m in d.glob("*.json"))
    models = [MicroWakeWord.from_config(m) for m in manifests]
    if args.golden:
        return golden(manifests, models)
    files = sorted((args.data / "speech").rglob("*.flac"))
    if args.limit:
        files = files[:: max(1, len(files) // args.limit)]
    if not files or not models:
        sys.exit("compare.py: no recordings or no models")

    program = "build/wake-compare"
    subprocess.run(["go", "build", "-o", program, "./wake/compare"], check=True)
    ours = Bellbird(program, manifests)

    slices = slices_off = 0
    steps = [0] * len(models)
    steps_off = [0] * len(models)
    worst = [0] * len(models)
    for path in files:
        samples, rate = soundfile.read(path, dtype="int16", always_2d=True)
        if rate != 16000:
            sys.exit(f"compare.py: {path} has {rate} Hz")
        samples = np.ascontiguousarray(samples[:, 0])
        fa, oa = peer(samples, models)
        fb, ob = ours.run(samples)
        off = differing(fa, fb)
        slices += len(fa)
        slices_off += off
        if off and args.verbose:
            print(f"{path}: {off} of {len(fa)} slices differ")
        for i, (a, b) in enumerate(zip(oa, ob)):
            off = differing(a, b)
            steps[i] += len(a)
            steps_off[i] += off
            if off:
                n = min(len(a), len(b))
                worst[i] = max(worst[i], int(np.abs(a[:n].astype(int) - b[:n]).max()))
                if args.verbose:
                    print(f"{path}: {manifests[i]}: {off} of {len(a)} steps differ")

    print(f"{len(files)} recordings")
    print(f"features: {slices} slices, {slices_off} differ")
    for i, m in enumerate(manifests):
        print(f"{m}: {steps[i]} steps, {steps_off[i]} differ" + (f", by up to {worst[i]}" if worst[i] else ""))
    print(f"total: {sum(steps)} steps, {sum(steps_off)} differ")
    sys.exit(1 if slices_off or sum(steps_off) else 0)


if __name__ == "__main__":
    main()
