package audio

import "fmt"

// A Mixdown reduces a capture of several channels to one, and is the only place where that is done. An average makes
// noise that differs between the microphones quieter; one channel is better where the others are a reference or have
// been processed in another way, or where the microphones are so far apart that an average is dull.
type Mixdown struct {
	channels int
	pick     int // -1: none
}

// Average is the mean of so many channels.
func Average(channels int) Mixdown { return Mixdown{channels: channels, pick: -1} }

// Pick takes one of so many channels, the first of which is 0.
func Pick(channels, channel int) (Mixdown, error) {
	if channel < 0 || channel >= channels {
		return Mixdown{}, fmt.Errorf("channel %d of %d: they are 0 to %d", channel, channels, channels-1)
	}
	return Mixdown{channels: channels, pick: channel}, nil
}

// Mono appends to dst what the interleaved samples become. They must be whole groups of one sample for each channel: a
// rest is left out.
func (m Mixdown) Mono(dst, interleaved []int16) []int16 {
	for ; len(interleaved) >= m.channels; interleaved = interleaved[m.channels:] {
		if m.pick >= 0 {
			dst = append(dst, interleaved[m.pick])
			continue
		}
		var sum int32
		for _, s := range interleaved[:m.channels] {
			sum += int32(s)
		}
		dst = append(dst, int16(sum/int32(m.channels)))
	}
	return dst
}
