package led

import "math"

// A frame of APA102s is 32 zero bits, 32 bits for each LED, and an end. Each LED passes the data on half a clock late, so
// that the end has to have a clock for every second LED; SK9822s also want 32 zero bits before they show the frame. Zeros
// do for both, and light no LED beyond the end of the chain.

const maxGlobal = 31 // five bits

func (s *Strip) layAPA102() {
	s.head = 4
	s.buf = make([]byte, 4+4*s.o.Count+4+(s.o.Count+15)/16)
}

// putAPA102 gives each LED the least of the 31 steps of its own brightness with which it can be as bright as it should:
// so there are 8 bits for the colour also when it is dim.
func (s *Strip) putAPA102() {
	for i := range s.o.Count {
		lit := s.lit[3*i : 3*i+3]
		most := uint32(max(lit[0], lit[1], lit[2]))
		global := max((most*maxGlobal+math.MaxUint16-1)/math.MaxUint16, 1)
		out := s.buf[s.head+4*i:]
		out[0] = 0xE0 | byte(global)
		for j, v := range lit {
			out[1+j] = byte(uint64(v) * maxGlobal * 255 / (uint64(global) * math.MaxUint16))
		}
	}
}
