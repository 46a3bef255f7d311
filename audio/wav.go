package audio

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// A WAVReader decodes a WAV file as it comes, from a file or from a program that is still writing it. It reads integers
// of 8 to 32 bit and floating-point numbers of 32 and 64, in 1 to 8 channels at 4 to 192 kHz.
type WAVReader struct {
	r       *bufio.Reader
	format  Format
	block   int   // bytes of one sample of every channel
	left    int64 // bytes of sound to come; -1 is unknown
	read    int64 // bytes of sound read
	promise int64 // bytes of sound in the header; -1 is unknown
	buf     []byte
	odd     int // bytes in buf of a group that is not complete
}

// Codes of the encodings. Only the first two are read; the others are named in the error.
const (
	wavPCM        = 0x0001
	wavFloat      = 0x0003
	wavExtensible = 0xfffe
)

// Programs that write to a pipe don't know how long the sound will be. They put zero or the greatest size that fits, or
// about that: espeak-ng rounds it down to a page.
const wavEndless = 0x7fff0000

// errNotWAV is a file that is something else.
var errNotWAV = errors.New("not a WAV file")

// NewWAVReader reads the header of a WAV file, and no further than it must.
func NewWAVReader(r io.Reader) (*WAVReader, error) {
	w := &WAVReader{r: bufio.NewReaderSize(r, 4096)}
	if err := w.header(); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *WAVReader) header() error {
	var riff [12]byte
	if _, err := io.ReadFull(w.r, riff[:]); err != nil {
		return cutShort(err, errNotWAV)
	}
	if string(riff[:4]) != "RIFF" || string(riff[8:]) != "WAVE" {
		return errNotWAV
	}
	for {
		var chunk [8]byte
		if _, err := io.ReadFull(w.r, chunk[:]); err != nil {
			return cutShort(err, errors.New("truncated: it ends before the sound begins: record or copy it again"))
		}
		size := int64(binary.LittleEndian.Uint32(chunk[4:]))
		switch string(chunk[:4]) {
		case "fmt ":
			if err := w.fmtChunk(size); err != nil {
				return err
			}
		case "data":
			if w.block == 0 {
				return errors.New("broken: the sound comes before its description: " + soxHint)
			}
			w.left, w.promise = size, size
			if size == 0 || size >= wavEndless {
				w.left, w.promise = -1, -1
			}
			return nil
		default:
			// Chunks are padded to even length.
			if _, err := io.CopyN(io.Discard, w.r, size+size&1); err != nil {
				return cutShort(err, errors.New("truncated: it ends before the sound begins: record or copy it again"))
			}
		}
	}
}

func (w *WAVReader) fmtChunk(size int64) error {
	if size < 16 || size > 4096 {
		return fmt.Errorf("broken: its description is %d bytes long: %s", size, soxHint)
	}
	b := make([]byte, size+size&1)
	if _, err := io.ReadFull(w.r, b); err != nil {
		return cutShort(err, errors.New("truncated: it ends before the sound begins: record or copy it again"))
	}
	code := binary.LittleEndian.Uint16(b)
	bits := int(binary.LittleEndian.Uint16(b[14:]))
	rate := binary.LittleEndian.Uint32(b[4:])
	if code == wavExtensible {
		if size < 26 {
			return fmt.Errorf("broken: its description is %d bytes long: %s", size, soxHint)
		}
		code = binary.LittleEndian.Uint16(b[24:]) // the first bytes of the GUID are the code
	}
	w.format = Format{
		Container: "WAV",
		Rate:      Rate(min(rate, math.MaxInt32)),
		Channels:  int(binary.LittleEndian.Uint16(b[2:])),
		Bits:      bits,
		Float:     code == wavFloat,
	}
	switch {
	case code == wavPCM && (bits == 8 || bits == 16 || bits == 24 || bits == 32):
	case code == wavFloat && (bits == 32 || bits == 64):
	case code == wavPCM || code == wavFloat:
		return fmt.Errorf("samples of %d bit can't be read: %s", bits, soxHint)
	default:
		return fmt.Errorf("its encoding is %s, which can't be read: %s", wavEncoding(code), soxHint)
	}
	if err := w.format.check(); err != nil {
		return err
	}
	w.block = w.format.Channels * bits / 8
	return nil
}

func wavEncoding(code uint16) string {
	switch code {
	case 0x0002, 0x0011:
		return "ADPCM"
	case 0x0006:
		return "A-law"
	case 0x0007:
		return "mu-law"
	case 0x0031:
		return "GSM 6.10"
	case 0x0050, 0x0055:
		return "MP3"
	case 0x00ff, 0x1600, 0x1610:
		return "AAC"
	}
	return fmt.Sprintf("number %#04x", code)
}

// Format is what the header says. Length grows as the sound is read.
func (w *WAVReader) Format() Format {
	f := w.format
	f.Length = w.duration(w.read)
	return f
}

// Read fills dst with samples of 16 bit, the channels interleaved, at the rate of the file. It returns whole groups of one
// sample a channel, so dst must have room for at least one; there may be fewer than fit while more are to come, but
// never none without an error. The error at the end is io.EOF, or says that the file ends too soon.
func (w *WAVReader) Read(dst []int16) (int, error) {
	sample := w.format.Bits / 8
	want := int64(len(dst)/w.format.Channels) * int64(w.block)
	if want == 0 {
		return 0, io.ErrShortBuffer
	}
	if w.left >= 0 {
		want = min(want, w.left-w.left%int64(w.block))
	}
	if want == 0 {
		return 0, io.EOF
	}
	size := int(min(want, 1<<16-1<<16%int64(w.block)))
	if len(w.buf) < size {
		w.buf = append(w.buf, make([]byte, size-len(w.buf))...)
	}

	// What has come is handed on at once; only if it is not a single group the rest of that is waited for.
	n, err := w.r.Read(w.buf[w.odd:size])
	n += w.odd
	if n < w.block && err == nil {
		var more int
		more, err = io.ReadAtLeast(w.r, w.buf[n:size], w.block-n)
		n += more
	}
	all := w.buf[:n]
	n -= n % w.block
	w.read += int64(n)
	if w.left >= 0 {
		w.left -= int64(n)
	}
	if n == 0 {
		switch {
		case err != io.EOF && err != io.ErrUnexpectedEOF:
			return 0, err
		case w.promise > w.read:
			return 0, fmt.Errorf("truncated: the header promises %.1f s, the file has %.1f s: record or copy it again",
				w.duration(w.promise).Seconds(), w.duration(w.read).Seconds())
		}
		return 0, io.EOF
	}
	for i := range n / sample {
		dst[i] = w.sample(w.buf[i*sample:])
	}
	w.odd = copy(w.buf, all[n:])
	return n / sample, nil // an error comes again with the next call
}

// sample converts one sample to 16 bit, rounding to the nearest.
func (w *WAVReader) sample(b []byte) int16 {
	switch {
	case w.format.Float && w.format.Bits == 32:
		return fromFloat(float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	case w.format.Float:
		return fromFloat(math.Float64frombits(binary.LittleEndian.Uint64(b)))
	case w.format.Bits == 8:
		return (int16(b[0]) - 128) << 8
	case w.format.Bits == 16:
		return int16(binary.LittleEndian.Uint16(b))
	case w.format.Bits == 24:
		return narrow(int64(int32(uint32(b[0])<<8|uint32(b[1])<<16|uint32(b[2])<<24)>>8), 8)
	default:
		return narrow(int64(int32(binary.LittleEndian.Uint32(b))), 16)
	}
}

// narrow drops the lowest bits of v.
func narrow(v int64, drop uint) int16 {
	return saturate(int32((v + 1<<(drop-1)) >> drop))
}

// fromFloat converts a sample of -1 to 1. What isn't a number is silence.
func fromFloat(v float64) int16 {
	if math.IsNaN(v) {
		return 0
	}
	return int16(math.Round(min(max(v*32768, math.MinInt16), math.MaxInt16)))
}

func (w *WAVReader) duration(bytes int64) time.Duration {
	return time.Duration(float64(bytes/int64(w.block)) / float64(w.format.Rate) * float64(time.Second))
}

// cutShort is as, unless err is something other than the end of the file.
func cutShort(err, as error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return as
	}
	return err
}
