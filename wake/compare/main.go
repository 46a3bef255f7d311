// Command compare computes features and wake word probabilities of the sound on its standard input, for compare.py to
// hold against those of other programs. It is run by `make compare-peers` and is no part of the appliance.
//
// The arguments are manifests of models. Each recording comes in as its number of samples and the samples, and goes out
// as its number of slices, the slices, and for each model its number of steps and their raw outputs. Numbers are 32
// bits, samples and features 16, outputs 8, all little endian.
package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"bellbird/wake"
)

const (
	step        = 10 * time.Millisecond
	stepSamples = 160
)

func main() {
	if err := compare(os.Stdin, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func compare(in io.Reader, out io.Writer, manifests []string) error {
	var detectors []*wake.Detector
	for _, path := range manifests {
		m, err := wake.LoadModel(path)
		if err != nil {
			return err
		}
		d, err := wake.NewDetector(m, 0)
		if err != nil {
			return err
		}
		detectors = append(detectors, d)
	}
	r, w := bufio.NewReader(in), bufio.NewWriter(out)
	for {
		var n uint32
		if err := binary.Read(r, binary.LittleEndian, &n); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		samples := make([]int16, n)
		if err := binary.Read(r, binary.LittleEndian, samples); err != nil {
			return err
		}
		if err := recording(w, samples, detectors); err != nil {
			return err
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
}

func recording(w io.Writer, samples []int16, detectors []*wake.Detector) error {
	var slices []wake.Features
	outputs := make([][]uint8, len(detectors))
	for _, d := range detectors {
		d.Reset()
	}
	front := wake.NewFrontend(step)
	for ; len(samples) >= stepSamples; samples = samples[stepSamples:] {
		var f wake.Features
		if !front.Write(samples[:stepSamples], &f) {
			continue
		}
		slices = append(slices, f)
		for i, d := range detectors {
			if d.Write(&f) {
				outputs[i] = append(outputs[i], d.Raw())
			}
		}
	}
	if err := binary.Write(w, binary.LittleEndian, uint32(len(slices))); err != nil {
		return err
	}
	if err := binary.Write(w, binary.LittleEndian, slices); err != nil {
		return err
	}
	for _, o := range outputs {
		if err := binary.Write(w, binary.LittleEndian, uint32(len(o))); err != nil {
			return err
		}
		if _, err := w.Write(o); err != nil {
			return err
		}
	}
	return nil
}
