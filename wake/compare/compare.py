#!/usr/bin/env python3
"""Holds Bellbird's wake word features and probabilities against those of pymicro-features and pymicro-wakeword.

Every FLAC file below DATA/speech goes through both, and those that are not below speech/wake once more with each noise
at several levels. Every slice of features and every raw output of every model is compared. The exit code is 0 if all
are equal. Then the processor time of both is measured, model by model. All of it takes about ten minutes.

Needs pymicro-features==2.0.2, pymicro-wakeword==2.5.0 and soundfile; run from the repository's root:
wake/compare/run.sh [--data DIR] [--models DIR]... [--quick] [--clean] [--no-timing]

With --golden it writes what the peers make of a synthetic sound to wake/testdata instead, for tests without peers.
"""

import argparse
import hashlib
import multiprocessing
import os
import pathlib
import struct
import subprocess
import sys
import time

import numpy as np
import soundfile
from micro_features_cpp import create_frontend, process_samples
from pymicro_wakeword import MicroWakeWord, MicroWakeWordFeatures


def peer(samples, models):
    """The peers' features, raw outputs, and raw outputs with clamped input, where that makes a difference. The models run in the peer's library, with input made as the peer makes it,
    but for a whole recording at once: its own loop takes several times as long as the library."""
    slices = [f.reshape(40) for f in MicroWakeWordFeatures().process_streaming(samples.tobytes())]
    slices = np.array(slices, np.float64).reshape(-1, 40)
    # The features as the integers they were before pymicro-features scaled them.
    features = np.round(slices / 0.0390625).astype(np.uint16)
    outputs, clamped = [], []
    for m in models:
        inputs, limited = quantized(m, slices), quantized(m, slices, clamp=True)
        outputs.append(run_peer(m, inputs))
        clamped.append(outputs[-1] if (inputs == limited).all() else run_peer(m, limited))
    return features, outputs, clamped


def quantized(model, slices, clamp=False):
    """The input of each step. The loudest features of all, 666 and 667, are more than the input's 8 bits hold. The peer
    lets them wrap around, to what silence is; ESPHome and Bellbird clamp."""
    steps = len(slices) // model.stride
    q = np.round(slices[: steps * model.stride] / model.input_scale + model.input_zero_point)
    if clamp:
        limits = np.iinfo(model.input_dtype)
        q = np.clip(q, limits.min, limits.max)
    return np.ascontiguousarray(q.astype(model.input_dtype).reshape(steps, model.stride * 40))


def run_peer(model, inputs):
    model.reset()
    lib, out = model.lib, np.empty(len(inputs), np.uint8)
    for i in range(len(inputs)):
        lib.TfLiteTensorCopyFromBuffer(model.input_tensor, inputs.ctypes.data + i * inputs.shape[1], inputs.shape[1])
        lib.TfLiteInterpreterInvoke(model.interpreter)
        lib.TfLiteTensorCopyToBuffer(model.output_tensor, out.ctypes.data + i, 1)
    return out


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
    features, outputs, _ = peer(synthetic(64000), models)
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


def recordings(args):
    """What is compared: names, and where each sound comes from. All of it, as it is; and what is not from speech/wake
    once more with each noise at each level, which is more than two hours."""
    files = sorted((args.data / "speech").rglob("*.flac"))
    if args.quick:
        files = files[::15]
    sounds = [(f, None, 0, 1) for f in files]
    if not args.clean:
        rest = [f for f in files if "wake" not in f.relative_to(args.data / "speech").parts[:1]]
        noises = sorted((args.data / "speech" / "noise").glob("*.flac"))
        sounds += [(f, noise, snr, gain) for snr, gain in LEVELS for noise in noises for f in rest]
    return sounds


# The ratio of the recording to the noise in dB, and by what the sum is multiplied: a far, a near and an overloaded voice.
LEVELS = [(20, 0.1), (5, 1.0), (-5, 4.0)]


def read(path):
    """The first channel of a recording."""
    samples, rate = soundfile.read(path, dtype="int16", always_2d=True)
    if rate != 16000:
        sys.exit(f"compare.py: {path} has {rate} Hz")
    return np.ascontiguousarray(samples[:, 0])


def sound(path, noise, snr, gain):
    """A recording, mixed with noise from its beginning, by the energies of both; clipped like a microphone that is too
    near."""
    samples = read(path)
    if noise is None:
        return samples
    speech = samples.astype(np.float64)
    under = np.resize(read(noise), len(speech)).astype(np.float64)
    energy = max((speech**2).mean(), 1.0)
    under *= np.sqrt(energy / max((under**2).mean(), 1.0) / 10 ** (snr / 10))
    return np.clip(np.round((speech + under) * gain), -32768, 32767).astype(np.int16)


class Worker:
    """Compares on one core. There is one in each process of the pool."""

    def __init__(self, program, manifests):
        self.models = [MicroWakeWord.from_config(m) for m in manifests]
        self.ours = Bellbird(program, manifests)

    def compare(self, where):
        samples = sound(*where)
        fa, oa, clamped = peer(samples, self.models)
        fb, ob = self.ours.run(samples)
        steps = []
        for a, c, b in zip(oa, clamped, ob):
            n = min(len(a), len(b))
            worst = int(np.abs(c[:n].astype(int) - b[:n]).max()) if n else 0
            steps.append((len(a), differing(a, b), differing(c, b), worst))
        return where, len(samples) / 16000, len(fa), differing(fa, fb), steps


worker = None


def start(*args):
    global worker
    worker = Worker(*args)


def work(where):
    return worker.compare(where)


def processor_time(f):
    began = time.process_time()
    f()
    return time.process_time() - began


class Timing:
    """The processor time that one sound takes, in three ways of running the peer, and ours. All on one thread."""

    def __init__(self, program, manifest, samples):
        self.program, self.manifest, self.samples = program, manifest, samples
        self.model = MicroWakeWord.from_config(manifest)
        raw = samples.tobytes()
        self.chunks = [raw[i : i + 320] for i in range(0, len(raw) - 319, 320)]
        slices = np.array([f.reshape(40) for f in MicroWakeWordFeatures().process_streaming(raw)])
        self.inputs = quantized(self.model, slices)
        size = self.inputs.shape[1]
        self.pointers = [self.inputs.ctypes.data + i * size for i in range(len(self.inputs))]

    def whole(self):
        """As its user runs it: features and model, through their Python classes."""
        m = self.model
        for f in MicroWakeWordFeatures().process_streaming(self.samples.tobytes()):
            m.process_streaming(f)

    def features(self):
        """Only the calls of the frontend, with what the binding makes of the result."""
        front = create_frontend()
        for c in self.chunks:
            process_samples(front, c)

    def invoke(self):
        """Only the calls of the TensorFlow Lite library, with input that is ready."""
        lib, tensor, interpreter = self.model.lib, self.model.input_tensor, self.model.interpreter
        copy, run = lib.TfLiteTensorCopyFromBuffer, lib.TfLiteInterpreterInvoke
        size = self.inputs.shape[1]
        for pointer in self.pointers:
            copy(tensor, pointer, size)
            run(interpreter)

    def calls(self):
        """As many calls of the library that do next to nothing: what calling costs in Python."""
        dims, tensor = self.model.lib.TfLiteTensorNumDims, self.model.input_tensor
        for _ in self.pointers:
            dims(tensor)
            dims(tensor)

    def ours(self):
        p = subprocess.run(
            [self.program, "-time", self.manifest],
            input=struct.pack("<I", len(self.samples)) + self.samples.tobytes(),
            stdout=subprocess.PIPE,
            check=True,
            env={**os.environ, "GOMAXPROCS": "1"},
        )
        features, both = map(int, p.stdout.split())
        return features / 1e9, both / 1e9

    def run(self, rounds):
        """The least of several rounds, for a busy machine only adds."""
        least = [float("inf")] * 6
        for _ in range(rounds):
            now = [processor_time(f) for f in (self.whole, self.features, self.invoke, self.calls)]
            least = [min(a, b) for a, b in zip(least, now + list(self.ours()))]
        whole, features, invoke, calls, our_features, ours = least
        return whole, features, invoke - calls, our_features, ours


def time_peers(program, manifests, args):
    files = sorted((args.data / "speech").rglob("*.flac"))[:: 40 if args.quick else 4]
    samples = np.concatenate([read(f) for f in files])
    print(f"\nprocessor time for {len(samples) / 16000:.0f} s of sound, in seconds, and ours as a share of the peer's")
    print("target: at most 0.50 of the peer as a whole")
    form = "{:24} {:>7} {:>7} {:>6}   {:>7} {:>6}   {:>7} {:>7} {:>6}   {:>7} {:>7} {:>6}"
    print(form.format("", "", "peer,", "", "peer,", "", "our", "peer's", "", "our", "peer's", ""))
    print(form.format("model", "ours", "whole", "share", "C only", "share", "front", "front C", "share", "net", "net C", "share"))
    for m in manifests:
        progress(f"timing {pathlib.Path(m).stem}")
        whole, features, invoke, our_features, ours = Timing(program, m, samples).run(1 if args.quick else 3)
        net = ours - our_features
        f = "{:.3f}".format
        r = "{:.2f}".format
        print(
            form.format(
                pathlib.Path(m).stem, f(ours), f(whole), r(ours / whole),
                f(features + invoke), r(ours / (features + invoke)),
                f(our_features), f(features), r(our_features / features),
                f(net), f(invoke), r(net / invoke),
            ),
            flush=True,
        )  # fmt: skip
    print("C only: the calls of both libraries alone, without quantising, averaging, or the cost of calling the model's.")


def progress(text):
    print(f"compare.py: {text}", file=sys.stderr, flush=True)


def distinct(manifests):
    """The manifests without those whose model another has too."""
    seen = {}
    for m in manifests:
        seen.setdefault(pathlib.Path(m).with_suffix(".tflite").read_bytes(), m)
    return list(seen.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data", type=pathlib.Path)
    parser.add_argument(
        "--models", action="append", type=pathlib.Path, help="directories; default: models and DATA/models/microwakeword"
    )
    parser.add_argument("--quick", action="store_true", help="a fifteenth of it")
    parser.add_argument("--clean", action="store_true", help="without the mixes with noise")
    parser.add_argument("--no-timing", action="store_true", help="without the measurement of processor time")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--golden", action="store_true")
    args = parser.parse_args()

    dirs = args.models or [pathlib.Path("models"), args.data / "models" / "microwakeword"]
    manifests = sorted(str(m) for d in dirs for m in d.glob("*.json"))
    if args.golden:
        return golden(manifests, [MicroWakeWord.from_config(m) for m in manifests])
    manifests = distinct(manifests)
    sounds = recordings(args)
    if not sounds or not manifests:
        sys.exit("compare.py: no recordings or no models")

    program = "build/wake-compare"
    subprocess.run(["go", "build", "-o", program, "./wake/compare"], check=True)

    seconds = mixed = 0
    slices = slices_off = 0
    steps, steps_off, left, worst = ([0] * len(manifests) for _ in range(4))
    shown = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(initializer=start, initargs=(program, manifests)) as pool:
        for n, (where, length, frames, off, results) in enumerate(pool.imap(work, sounds), 1):
            seconds += length
            mixed += length if where[1] else 0
            slices += frames
            slices_off += off
            name = f"{where[0]}" + (f" with {where[1].stem}, {where[2]} dB, times {where[3]}" if where[1] else "")
            if off and args.verbose:
                print(f"{name}: {off} of {frames} slices differ", flush=True)
            for i, (count, off, still, by) in enumerate(results):
                steps[i] += count
                steps_off[i] += off
                left[i] += still
                worst[i] = max(worst[i], by)
                if off and args.verbose:
                    print(f"{name}: {manifests[i]}: {off} of {count} steps differ, {still} if clamped", flush=True)
            if time.monotonic() - shown > 10:
                shown = time.monotonic()
                progress(f"{n} of {len(sounds)} sounds, {seconds / 3600:.2f} hours, {slices_off + sum(left)} differences")

    print(f"{len(sounds)} sounds, {seconds / 3600:.2f} hours, of which {mixed / 3600:.2f} are mixes with noise")
    print(f"features: {slices} slices compared, {slices_off} differ")
    for i, m in enumerate(manifests):
        by = f", by up to {worst[i]}" if worst[i] else ""
        print(f"{m}: {steps[i]} steps compared, {left[i]} differ{by}; {steps_off[i]} if the peer's input may wrap around")
    print(f"total: {sum(steps)} steps compared, {sum(left)} differ; {sum(steps_off)} if the peer's input may wrap around")
    if sum(steps_off):
        print("wrap around: pymicro-wakeword takes the loudest features, which 8 bits can't hold, for silence")
    sys.stdout.flush()
    if not args.no_timing:
        time_peers(program, manifests, args)
    sys.exit(1 if slices_off or sum(left) else 0)


if __name__ == "__main__":
    main()
