//go:build cgo

package pocketsphinx

// The headers are Debian's. A cross build names its own directories in CGO_CFLAGS and CGO_LDFLAGS, which come first;
// the ones here then hold nothing of interest to it. The libraries are linked statically: few machines have them.

// #cgo CFLAGS: -I/usr/include/pocketsphinx
// #cgo amd64 CFLAGS: -I/usr/include/x86_64-linux-gnu/sphinxbase
// #cgo arm64 CFLAGS: -I/usr/include/aarch64-linux-gnu/sphinxbase
// #cgo arm CFLAGS: -I/usr/include/arm-linux-gnueabihf/sphinxbase
// #cgo LDFLAGS: -l:libpocketsphinx.a -l:libsphinxbase.a -lm -lpthread
// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"errors"
	"regexp"
	"strings"
	"unsafe"

	"bellbird/audio"
)

// maxSegments is far more than the words and silences of an utterance.
const maxSegments = 4000

// ceps is the number of values in a frame of features.
const ceps = C.BB_CEPS

// A feature is what the decoder makes of 10 ms of sound.
type feature [ceps]float32

// blockFrames is how much sound is taken at a time: 80 ms, which keeps the number of calls low and the delay short.
const blockFrames = 4

// maxFeatures is how many features may come of one block, with what the front end held back until it heard speech.
const maxFeatures = 256

// A decoder is one of the library's decoders, and its front end. All its memory is C's; samples and features are
// copied into it.
type decoder struct {
	c        *C.bb_decoder
	err      *C.char // where the library's message goes
	samples  *C.int16_t
	features *C.float
	seg      *C.bb_segment
}

func newDecoder(options ...string) (*decoder, error) {
	argv := (**C.char)(C.calloc(C.size_t(len(options)+2), C.size_t(unsafe.Sizeof((*C.char)(nil)))))
	defer C.free(unsafe.Pointer(argv))
	args := unsafe.Slice(argv, len(options)+1)
	for i, o := range append([]string{"bellbird"}, options...) {
		args[i] = C.CString(o)
		defer C.free(unsafe.Pointer(args[i]))
	}
	d := &decoder{
		err:      (*C.char)(C.calloc(1, C.BB_ERR)),
		samples:  (*C.int16_t)(C.calloc(blockFrames*audio.FrameSize, 2)),
		features: (*C.float)(C.calloc(maxFeatures*ceps, 4)),
		seg:      (*C.bb_segment)(C.calloc(maxSegments, C.size_t(unsafe.Sizeof(C.bb_segment{})))),
	}
	d.c = C.bb_new(C.int(len(args)), argv, d.err)
	if d.c == nil {
		err := d.fault()
		d.free()
		return nil, err
	}
	return d, nil
}

// fault is the library's message, without the place in its source.
func (d *decoder) fault() error {
	return errors.New(inSource.ReplaceAllString(C.GoString(d.err), ""))
}

var inSource = regexp.MustCompile(`(ERROR|FATAL): "[^"]*", line [0-9]+: `)

func (d *decoder) free() {
	C.bb_free(d.c)
	C.free(unsafe.Pointer(d.err))
	C.free(unsafe.Pointer(d.samples))
	C.free(unsafe.Pointer(d.features))
	C.free(unsafe.Pointer(d.seg))
}

// listen begins an utterance in the front end.
func (d *decoder) listen() error { return d.result(C.bb_front_start(d.c, d.err)) }

// hear turns up to blockFrames frames into features, and adds those to the ones given.
func (d *decoder) hear(to []feature, frames []audio.Frame) ([]feature, error) {
	samples := unsafe.Slice((*int16)(d.samples), blockFrames*audio.FrameSize)
	n := 0
	for i := range frames {
		n += copy(samples[n:], frames[i][:])
	}
	return d.add(to, C.bb_front(d.c, d.samples, C.int(n), d.features, maxFeatures, d.err))
}

// heard ends the utterance in the front end, which may have a feature left.
func (d *decoder) heard(to []feature) ([]feature, error) {
	return d.add(to, C.bb_front_end(d.c, d.features, d.err))
}

func (d *decoder) add(to []feature, n C.int) ([]feature, error) {
	if n < 0 {
		return to, d.fault()
	}
	return append(to, unsafe.Slice((*feature)(unsafe.Pointer(d.features)), n)...), nil
}

func (d *decoder) start() error { return d.result(C.bb_start(d.c, d.err)) }

// decode follows the grammar through more features.
func (d *decoder) decode(features []feature) error {
	for len(features) > 0 {
		n := min(len(features), C.BB_BLOCK)
		copy(unsafe.Slice((*feature)(unsafe.Pointer(d.features)), maxFeatures), features[:n])
		if err := d.result(C.bb_decode(d.c, d.features, C.int(n), d.err)); err != nil {
			return err
		}
		features = features[n:]
	}
	return nil
}

func (d *decoder) end() error { return d.result(C.bb_end(d.c, d.err)) }

func (d *decoder) result(code C.int) error {
	if code < 0 {
		return d.fault()
	}
	return nil
}

// segments are the words of the best path.
func (d *decoder) segments() ([]segment, error) {
	n := C.bb_segments(d.c, d.seg, maxSegments, d.err)
	if n < 0 {
		return nil, d.fault()
	}
	var out []segment
	for _, s := range unsafe.Slice(d.seg, n) {
		if s.last < s.first || s.first < 0 {
			continue // a transition in the grammar that says nothing
		}
		name, _, _ := strings.Cut(C.GoString(s.word), "(") // tomato(2) is a second pronunciation
		if name == "" {
			continue
		}
		out = append(out, segment{name, int(s.first), int(s.last), int(s.score)})
	}
	return out, nil
}
