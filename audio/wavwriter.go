package audio

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

const wavHeaderSize = 44

// A WAVWriter writes a WAV file at 16 kHz and 16 bit as the sound comes. The header promises an unknown length until
// Close has put the right one in, so that what was written before a crash can still be read. It is for one goroutine at
// a time.
type WAVWriter struct {
	file     io.WriteSeeker
	buf      *bufio.Writer
	channels int
	bytes    int64
	scratch  []byte
	err      error
}

// CreateWAV creates or replaces the file. Close closes it.
func CreateWAV(path string, channels int) (*WAVWriter, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	w, err := NewWAVWriter(f, channels)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return w, nil
}

// NewWAVWriter writes to file from its start. Close closes it if it can be closed.
func NewWAVWriter(file io.WriteSeeker, channels int) (*WAVWriter, error) {
	if channels < 1 || channels > maxChannels {
		return nil, fmt.Errorf("write wav: %d channels: 1 to %d are possible", channels, maxChannels)
	}
	w := &WAVWriter{file: file, buf: bufio.NewWriterSize(file, 1<<16), channels: channels}
	if _, err := w.buf.Write(w.header(0xffffffff)); err != nil {
		return nil, err
	}
	return w, nil
}

// Write appends 20 ms: one frame for each channel.
func (w *WAVWriter) Write(channels ...Frame) error {
	if len(channels) != w.channels {
		return fmt.Errorf("write wav: %d frames for %d channels", len(channels), w.channels)
	}
	w.scratch = w.scratch[:0]
	for i := range FrameSize {
		for c := range channels {
			w.scratch = binary.LittleEndian.AppendUint16(w.scratch, uint16(channels[c][i]))
		}
	}
	return w.append()
}

// WriteSamples appends samples, the channels interleaved.
func (w *WAVWriter) WriteSamples(interleaved []int16) error {
	if len(interleaved)%w.channels != 0 {
		return fmt.Errorf("write wav: %d samples for %d channels", len(interleaved), w.channels)
	}
	w.scratch = w.scratch[:0]
	for _, s := range interleaved {
		w.scratch = binary.LittleEndian.AppendUint16(w.scratch, uint16(s))
	}
	return w.append()
}

func (w *WAVWriter) append() error {
	switch {
	case w.err != nil:
		return w.err
	case w.bytes+int64(len(w.scratch)) >= wavEndless:
		w.err = errors.New("write wav: the file would be over 2 GB: begin another one")
		return w.err
	}
	_, w.err = w.buf.Write(w.scratch)
	w.bytes += int64(len(w.scratch))
	return w.err
}

// Close writes what is left, puts the length into the header, and closes the file. It returns the first error there was.
func (w *WAVWriter) Close() error {
	err := w.finish()
	if w.err == nil {
		w.err = errors.New("write wav: the file is closed")
	}
	if c, ok := w.file.(io.Closer); ok {
		err = errors.Join(err, c.Close())
	}
	return err
}

func (w *WAVWriter) finish() error {
	if err := w.buf.Flush(); err != nil {
		return err
	}
	if _, err := w.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := w.file.Write(w.header(uint32(w.bytes)))
	return err
}

func (w *WAVWriter) header(size uint32) []byte {
	riff := size
	if size != 0xffffffff {
		riff += wavHeaderSize - 8
	}
	le := binary.LittleEndian
	h := append(make([]byte, 0, wavHeaderSize), "RIFF"...)
	h = le.AppendUint32(h, riff)
	h = append(h, "WAVEfmt "...)
	h = le.AppendUint32(h, 16)
	h = le.AppendUint16(h, wavPCM)
	h = le.AppendUint16(h, uint16(w.channels))
	h = le.AppendUint32(h, uint32(SampleRate))
	h = le.AppendUint32(h, uint32(SampleRate)*uint32(w.channels)*2)
	h = le.AppendUint16(h, uint16(w.channels*2))
	h = le.AppendUint16(h, 16)
	h = append(h, "data"...)
	return le.AppendUint32(h, size)
}

// EncodeWAV is a WAV file with the frames in it, mono.
func EncodeWAV(frames []Frame) []byte {
	w := WAVWriter{channels: 1}
	file := append([]byte(nil), w.header(uint32(len(frames)*FrameSize*2))...)
	for _, f := range frames {
		for _, s := range f {
			file = binary.LittleEndian.AppendUint16(file, uint16(s))
		}
	}
	return file
}

// Split cuts samples into frames, the last of which is filled up with silence.
func Split(samples []int16) []Frame {
	frames := make([]Frame, (len(samples)+FrameSize-1)/FrameSize)
	for i := range frames {
		copy(frames[i][:], samples[i*FrameSize:])
	}
	return frames
}
