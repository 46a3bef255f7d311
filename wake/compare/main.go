// Command compare computes features and wake word probabilities of the sound on its standard input, for compare.py to
// hold against those of other programs. It is run by `make compare-peers` and is no part of the appliance.
//
// The arguments are manifests of models. Each recording comes in as its number of samples and the samples, and goes out
// as its number of slices, the slices, and for each model its number of steps and their raw outputs. Numbers are 32
// bits, samples and features 16, outputs 8, all little endian.
//
// With -time before one manifest it reads one recording and prints the processor time that it took, in nanoseconds: for
// the features alone, and for the features and the model.
package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"bellbird/wake"
)

const (
	step        = 10 * time.Millisecond
	stepSamples = 160
)

func main() {
	run, args := compare, os.Args[1:]
	if len(args) > 0 && args[0] == "-time" {
		run, args = measure, args[1:]
	}
	if err := run(os.Stdin, os.Stdout, args); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func compare(in io.Reader, out io.Writer, manifests []string) error {
	detectors, err := load(manifests)
	if err != nil {
		return err
	}
	r, w := bufio.NewReader(in), bufio.NewWriter(out)
	for {
		samples, err := receive(r)
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
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

func load(manifests []string) (detectors []*wake.Detector, err error) {
	for _, path := range manifests {
		m, err := wake.LoadModel(path)
		if err != nil {
			return nil, err
		}
		d, err := wake.NewDetector(m, 0)
		if err != nil {
			return nil, err
		}
		detectors = append(detectors, d)
	}
	return detectors, nil
}

// receive reads a recording.
func receive(r io.Reader) ([]int16, error) {
	var n uint32
	if err := binary.Read(r, binary.LittleEndian, &n); err != nil {
		return nil, err
	}
	samples := make([]int16, n)
	return samples, binary.Read(r, binary.LittleEndian, samples)
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

// measure times a model as the appliance runs it: in slices of sound, until there is a score.
func measure(in io.Reader, out io.Writer, manifests []string) error {
	detectors, err := load(manifests)
	if err != nil {
		return err
	}
	samples, err := receive(bufio.NewReader(in))
	if err != nil {
		return err
	}
	var took []int64
	for _, d := range [][]*wake.Detector{nil, detectors} {
		began, err := processorTime()
		if err != nil {
			return err
		}
		front := wake.NewFrontend(step)
		var f wake.Features
		heard := 0
		for rest := samples; len(rest) >= stepSamples; rest = rest[stepSamples:] {
			if !front.Write(rest[:stepSamples], &f) {
				continue
			}
			for _, d := range d {
				if d.Write(&f) && d.Heard() {
					heard++
				}
			}
		}
		ended, err := processorTime()
		if err != nil {
			return err
		}
		took = append(took, ended-began)
	}
	_, err = fmt.Fprintln(out, took[0], took[1])
	return err
}

// processorTime is what this process has used, on all cores, in nanoseconds.
func processorTime() (int64, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return u.Utime.Nano() + u.Stime.Nano(), nil
}
