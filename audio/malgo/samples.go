package malgo

import (
	"encoding/binary"
	"math"
)

// A sampleFormat is how a device writes its samples: the formats of miniaudio, all of them in this machine's byte order,
// which is little-endian on everything that the appliance runs on.
type sampleFormat int

const (
	unsigned8 sampleFormat = iota + 1
	signed16
	signed24 // in three bytes
	signed32
	float32s // 1 is full scale
)

// size is the number of bytes of a sample.
func (f sampleFormat) size() int {
	switch f {
	case unsigned8:
		return 1
	case signed16:
		return 2
	case signed24:
		return 3
	}
	return 4
}

func (f sampleFormat) String() string {
	switch f {
	case unsigned8:
		return "8 bit"
	case signed16:
		return "16 bit"
	case signed24:
		return "24 bit"
	case signed32:
		return "32 bit"
	}
	return "32 bit float"
}

// read turns as many samples of b as dst has room for into 16 bits. The gain comes first: a microphone of 24 bits that is
// quiet keeps what 16 would have cut off.
func (f sampleFormat) read(dst []int16, b []byte, gain float32) {
	if f == signed16 && gain == 1 {
		for i := range dst {
			dst[i] = int16(binary.LittleEndian.Uint16(b[2*i:]))
		}
		return
	}
	for i := range dst {
		var v float32
		switch f {
		case unsigned8:
			v = float32(int(b[i])-128) * 256
		case signed16:
			v = float32(int16(binary.LittleEndian.Uint16(b[2*i:])))
		case signed24:
			v = float32(int32(uint32(b[3*i])<<8|uint32(b[3*i+1])<<16|uint32(b[3*i+2])<<24)) / 65536
		case signed32:
			v = float32(int32(binary.LittleEndian.Uint32(b[4*i:]))) / 65536
		case float32s:
			v = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])) * 32768
		}
		dst[i] = round(v * gain)
	}
}

// round is the nearest sample. What is no number becomes silence.
func round(v float32) int16 {
	switch {
	case v >= math.MaxInt16:
		return math.MaxInt16
	case v <= math.MinInt16:
		return math.MinInt16
	case v != v:
		return 0
	}
	return int16(math.Floor(float64(v) + 0.5))
}

// write puts s into each of the channels of one moment.
func (f sampleFormat) write(b []byte, channels int, s int16) {
	for c := range channels {
		switch f {
		case unsigned8:
			b[c] = byte(s>>8) + 128
		case signed16:
			binary.LittleEndian.PutUint16(b[2*c:], uint16(s))
		case signed24:
			b[3*c], b[3*c+1], b[3*c+2] = 0, byte(s), byte(s>>8)
		case signed32:
			binary.LittleEndian.PutUint32(b[4*c:], uint32(s)<<16)
		case float32s:
			binary.LittleEndian.PutUint32(b[4*c:], math.Float32bits(float32(s)/32768))
		}
	}
}

// silence fills b.
func (f sampleFormat) silence(b []byte) {
	clear(b)
	if f == unsigned8 {
		for i := range b {
			b[i] = 128
		}
	}
}
