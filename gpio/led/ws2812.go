package led

import (
	"time"

	"periph.io/x/conn/v3/physic"
)

// A WS2812 reads a bit from how long the line is high: a short pulse is 0, a long one 1. On SPI such a bit is 100 or 110
// at 2.4 MHz, or 1000 or 1100 at 3.2 MHz. When the line rests the frame is over. It also rests before the frame, because
// some SPI controllers leave it high between transfers.

func (s *Strip) layWS2812() {
	rest := int(reset*time.Duration(s.Clock()/physic.Hertz)/time.Second+7) / 8
	s.head = rest
	s.buf = make([]byte, rest+3*s.o.Count*s.o.Bits+rest)
	zero, one := uint32(0b1000), uint32(0b1100)
	if s.o.Bits == 3 {
		zero, one = 0b100, 0b110
	}
	for v := range s.bits {
		var word uint32
		for bit := 7; bit >= 0; bit-- {
			word <<= s.o.Bits
			if v>>bit&1 == 1 {
				word |= one
			} else {
				word |= zero
			}
		}
		for i := s.o.Bits - 1; i >= 0; i-- {
			s.bits[v] = append(s.bits[v], byte(word>>(8*i)))
		}
	}
}

func (s *Strip) putWS2812() {
	out := s.buf[s.head:]
	for i, v := range s.lit {
		copy(out[i*s.o.Bits:], s.bits[v/257]) // 65535 is 255, and nothing is more than it should be
	}
}
