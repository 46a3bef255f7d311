package pocketsphinx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// What to do about a model that is not there, and one that is broken.
const (
	remedy = "install it with: apt install pocketsphinx-en-us"
	again  = "install it again with: apt install --reinstall pocketsphinx-en-us"
)

// What may be wrong with a model file.
var (
	errTruncated = errors.New("the file is incomplete")
	errNonsense  = errors.New("the file is damaged")
)

// checkModel finds what would make the library crash rather than complain: it maps two of the model's files into
// memory and trusts them. It returns the parameters of the front end, which say of the model's features that the
// library takes off their mean; we do.
func checkModel(dir string) (params []byte, err error) {
	dir = filepath.Join(dir, "en-us")
	for _, name := range []string{"mdef", "means", "variances", "transition_matrices", "sendump", "feat.params", "noisedict"} {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("model: %w; %s", err, remedy)
		}
		if !info.Mode().IsRegular() || info.Size() == 0 {
			return nil, fmt.Errorf("model %q: there is nothing in it; %s", path, again)
		}
	}
	for name, size := range map[string]func(io.ReaderAt) (int, error){"mdef": definitionSize, "sendump": mixtureSize} {
		path := filepath.Join(dir, name)
		if err := checkSize(path, size); err != nil {
			return nil, fmt.Errorf("model %q: %w; %s", path, err, again)
		}
	}
	params, err = os.ReadFile(filepath.Join(dir, "feat.params"))
	if err != nil {
		return nil, fmt.Errorf("model: %w; %s", err, remedy)
	}
	return meanTaken.ReplaceAll(params, []byte("-cmn none")), nil
}

var meanTaken = regexp.MustCompile(`(?m)^-cmn\s+\S+`)

// checkSize compares the size of a file with the one that its contents promise. It reads little of it.
func checkSize(path string, size func(io.ReaderAt) (int, error)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	n, err := size(f)
	if err == nil && info.Size() < int64(n) {
		err = errTruncated
	}
	return err
}

// bytesAt reads n bytes at an offset.
func bytesAt(f io.ReaderAt, at, n int) ([]byte, error) {
	if n > 1<<16 {
		return nil, errNonsense
	}
	data := make([]byte, n)
	if m, _ := f.ReadAt(data, int64(at)); m < n {
		return nil, errTruncated
	}
	return data, nil
}

// ints reads little-endian numbers at an offset.
func ints(f io.ReaderAt, at, n int) ([]int, error) {
	data, err := bytesAt(f, at, 4*n)
	if err != nil {
		return nil, err
	}
	out := make([]int, n)
	for i := range out {
		out[i] = int(int32(binary.LittleEndian.Uint32(data[4*i:])))
		if out[i] < 0 || out[i] > 1<<24 {
			return nil, errNonsense
		}
	}
	return out, nil
}

// definitionSize is the size of a binary model definition, which has: four letters, a version, a description with its
// length, ten numbers, names of phones, the tree of contexts, phones, and sequences of states.
func definitionSize(f io.ReaderAt) (int, error) {
	magic, err := bytesAt(f, 0, 4)
	if err != nil {
		return 0, err
	}
	if string(magic) != "BMDF" {
		return 0, errors.New("it is no binary model definition")
	}
	head, err := ints(f, 4, 2)
	if err != nil {
		return 0, err
	}
	at := 12 + head[1]
	n, err := ints(f, at, 10)
	if err != nil {
		return 0, err
	}
	names, all, states, tree := n[0], n[1], n[2], n[8]
	at += 40
	for range names {
		for {
			letter, err := bytesAt(f, at, 1)
			if err != nil {
				return 0, err
			}
			if at++; letter[0] == 0 {
				break
			}
		}
	}
	at = (at+3)/4*4 + 8*tree + 12*all
	if n, err = ints(f, at, 1); err != nil {
		return 0, err
	}
	at += 4 + 2*n[0]
	if states == 0 {
		at += n[0] // phones of different lengths have those too
	}
	return at, nil
}

// mixtureSize is the size of a file of mixture weights, which has: texts with their lengths, the last of them empty,
// the numbers of densities and of states, and a byte for each of both in each of the features.
func mixtureSize(f io.ReaderAt) (int, error) {
	at, features := 0, 0
	for {
		n, err := ints(f, at, 1)
		if err != nil {
			return 0, err
		}
		text, err := bytesAt(f, at+4, n[0])
		if err != nil {
			return 0, err
		}
		if at += 4 + n[0]; n[0] == 0 {
			break
		}
		name, value, _ := strings.Cut(strings.TrimRight(string(text), "\x00"), " ")
		switch {
		case name == "feature_count":
			features, _ = strconv.Atoi(value) // 0 is found below
		case name == "cluster_count" && value != "0":
			return 0, errors.New("mixture weights in clusters are not supported")
		}
	}
	n, err := ints(f, at, 2)
	if err != nil {
		return 0, err
	}
	if features < 1 || features > 64 {
		return 0, errNonsense
	}
	return at + 8 + features*n[0]*n[1], nil
}
