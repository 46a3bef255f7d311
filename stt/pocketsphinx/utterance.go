//go:build cgo

package pocketsphinx

import (
	"context"

	"bellbird/audio"
)

// The way of an utterance:
//
//	1 listen   frames come in, blocks of 80 ms become features; the front end leaves silence out
//	2 ready    features are held back until there are enough of them for their mean, which is the microphone and the
//	           voice rather than what is said, or until the speaker pauses
//	3 follow   less their mean, they go through both decoders, whenever there is no frame to take
//	4 result   the best sentence, and the best phones
//
// Whoever knows that the speaker pauses may ask for what was understood so far. It is told as soon as all is decoded that
// had come by then.
//
// The library's own running mean begins with the one of its training and needs several utterances to arrive at ours;
// with a mean of the utterance itself a third fewer commands were misheard.

// Features are 10 ms each.
const (
	enough    = 200 // features for a mean: 2 s of speech, which most commands don't have
	atLeast   = 40  // features after which a pause begins the decoding
	pause     = 3   // blocks without speech that are a pause: 240 ms
	step      = 8   // features that are decoded at a time
	maxLength = 30 * 100
)

// An utterance is one on its way through the decoders.
type utterance struct {
	command, phones *decoder
	asks            <-chan struct{} // for what was understood so far
	tell            func(frames int) error

	features []feature
	done     int // features decoded
	quiet    int // blocks since the last feature
	ready    bool
	mean     feature
	taken    int // frames
	asked    int // frames taken when it was asked; 0: it was not
	due      int // features to be decoded before it is told
}

// listen takes frames until they end, and decodes them. What is said after half a minute is left out.
func (u *utterance) listen(ctx context.Context, frames <-chan audio.Frame) error {
	if err := u.begin(); err != nil {
		return err
	}
	err := u.take(ctx, frames)
	if err == nil {
		err = u.follow(ctx, len(u.features))
	}
	if endErr := u.end(); err == nil {
		err = endErr
	}
	return err
}

func (u *utterance) begin() error {
	if err := u.command.listen(); err != nil {
		return err
	}
	if err := u.command.start(); err != nil {
		return err
	}
	return u.phones.start()
}

func (u *utterance) end() error {
	if err := u.command.end(); err != nil {
		return err
	}
	return u.phones.end()
}

// take hears the frames until they end. What is to be decoded waits while there are frames: whoever sends them must
// not be held up, even by a machine that is slow to catch up.
func (u *utterance) take(ctx context.Context, frames <-chan audio.Frame) error {
	block := make([]audio.Frame, 0, blockFrames)
	for {
		f, more, err := u.next(ctx, frames)
		if err != nil {
			return err
		}
		if !more {
			return u.last(block)
		}
		u.taken++
		if block = append(block, f); len(block) < blockFrames {
			continue
		}
		if err := u.hear(block); err != nil {
			return err
		}
		block = block[:0]
	}
}

// next waits for a frame, and decodes meanwhile.
func (u *utterance) next(ctx context.Context, frames <-chan audio.Frame) (f audio.Frame, more bool, err error) {
	for {
		for u.ready && u.done < len(u.features) {
			select {
			case f, more = <-frames:
				return f, more, nil
			case <-u.asks:
				u.ask()
			default:
			}
			if err := u.follow(ctx, min(u.done+step, len(u.features))); err != nil {
				return f, false, err
			}
			if err := u.answer(); err != nil {
				return f, false, err
			}
		}
		select {
		case <-ctx.Done():
			return f, false, context.Cause(ctx)
		case f, more = <-frames:
			return f, more, nil
		case <-u.asks:
			u.ask()
			if err := u.answer(); err != nil {
				return f, false, err
			}
		}
	}
}

// ask remembers that it is wanted what was understood so far.
func (u *utterance) ask() {
	if len(u.features) < atLeast {
		return
	}
	if !u.ready {
		u.settle()
	}
	u.asked, u.due = u.taken, len(u.features)
}

// answer tells it, once it is known.
func (u *utterance) answer() error {
	if u.asked == 0 || u.done < u.due {
		return nil
	}
	frames := u.asked
	u.asked = 0
	return u.tell(frames)
}

// hear adds the features of a block.
func (u *utterance) hear(block []audio.Frame) (err error) {
	if len(u.features) >= maxLength {
		return nil
	}
	before := len(u.features)
	if u.features, err = u.command.hear(u.features, block); err != nil {
		return err
	}
	u.quiet++
	if len(u.features) > before {
		u.quiet = 0
	}
	if !u.ready && (len(u.features) >= enough || (len(u.features) >= atLeast && u.quiet >= pause)) {
		u.settle()
	}
	return nil
}

// last adds what is left when the frames have ended.
func (u *utterance) last(block []audio.Frame) (err error) {
	if len(block) > 0 {
		if err := u.hear(block); err != nil {
			return err
		}
	}
	if u.features, err = u.command.heard(u.features); err != nil {
		return err
	}
	if !u.ready {
		u.settle()
	}
	return nil
}

// settle takes the mean of what there is. Features with next to no energy are the digital silence of a source that
// was muted, and say nothing of the microphone.
func (u *utterance) settle() {
	u.ready = true
	var sum [ceps]float64
	n := 0
	for _, f := range u.features {
		if f[0] < 0 {
			continue
		}
		n++
		for i, v := range f {
			sum[i] += float64(v)
		}
	}
	for i := range sum {
		u.mean[i] = float32(sum[i] / float64(max(n, 1)))
	}
}

// follow decodes up to the given feature.
func (u *utterance) follow(ctx context.Context, to int) error {
	for u.done < to {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		part := make([]feature, min(step, to-u.done))
		for i := range part {
			for j := range part[i] {
				part[i][j] = u.features[u.done+i][j] - u.mean[j]
			}
		}
		for _, d := range []*decoder{u.command, u.phones} {
			if err := d.decode(part); err != nil {
				return err
			}
		}
		u.done += len(part)
	}
	return nil
}

// result is the best sentence and the best phones; nothing if there was no speech.
func (u *utterance) result() (sentence, phones []segment, err error) {
	if u.done == 0 {
		return nil, nil, nil
	}
	if sentence, err = u.command.segments(); err != nil {
		return nil, nil, err
	}
	phones, err = u.phones.segments()
	return sentence, phones, err
}
