package pipeline

import (
	"context"
	"strings"
	"sync"
	"time"

	"bellbird/audio"
	"bellbird/event"
	"bellbird/spoken"
)

// speech is the speaking half of a turn:
//
//  1. push takes from the model's text what can't be spoken, cuts it into chunks and queues them,
//  2. voice, on a goroutine of its own, has each synthesized and writes its frames to the output stream, so that
//     chunk n+1 is made while chunk n is heard; the hooks of speechpoints.go stand before and after the synthesis,
//  3. finish waits until the loudspeaker has played the last of them.
//
// push, finish, whole and abandon are called by the turn's goroutine.
type speech struct {
	t       *turn
	cleaner spoken.Cleaner
	chunker chunker
	chunks  chan chunk    // nil: nothing was said yet
	done    chan struct{} // closed when voice has ended

	announced chan struct{} // closed when announce has ended

	hooked streamHooks

	mu    sync.Mutex
	err   error
	spans []span
}

// A span says which frames of the stream a chunk became.
type span struct {
	text     string
	from, to int
	whole    bool // nothing more of it will come
}

// push adds text. It waits while the voice is too far behind.
func (s *speech) push(ctx context.Context, text string) {
	if text == "" {
		return
	}
	s.hooked.begin(ctx, s.t)
	s.add(ctx, s.chunker.push(s.cleaner.Push(text)))
}

func (s *speech) add(ctx context.Context, chunks []chunk) {
	for _, c := range chunks {
		s.queue(ctx, c)
	}
}

func (s *speech) queue(ctx context.Context, c chunk) {
	if s.hooked.muted {
		return
	}
	if s.chunks == nil {
		s.chunks = make(chan chunk, 4) // when full, the model waits: it is ahead of the voice by minutes then
		s.done = make(chan struct{})
		stream := s.t.p.o.Output.Open()
		s.t.stream.Store(stream)
		if ctx.Err() != nil { // cancelled in between: the loop may have seen no stream to cut
			stream.Cut()
		}
		go s.voice(ctx, stream)
	}
	select {
	case s.chunks <- c:
	case <-s.done: // it failed; finish tells
	case <-ctx.Done():
	}
}

// finish says what is left and returns when all has been heard, or couldn't be.
func (s *speech) finish(ctx context.Context) error {
	s.add(ctx, s.chunker.push(s.cleaner.Flush()))
	s.add(ctx, s.chunker.flush())
	if s.chunks == nil {
		s.hooked.end(s.t, false)
		return nil
	}
	close(s.chunks)
	select {
	case <-s.done:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// whole says text that is complete, as a voice that can't stream would: between pre_tts and post_tts.
func (s *speech) whole(ctx context.Context, text string) error {
	text, speak := s.t.preTTS(ctx, spoken.Clean(text))
	if !speak || !speakable(text) {
		return nil
	}
	s.hooked.off = true
	began := s.t.p.o.Clock.Now()
	s.add(ctx, s.chunker.push(s.cleaner.Push(text)))
	err := s.finish(ctx)
	s.t.postTTS(ctx, text, s.t.p.o.Clock.Now().Sub(began), err != nil)
	return err
}

// abandon ends the speech wherever it is.
func (s *speech) abandon() {
	s.t.cut()
	if s.chunks == nil {
		s.hooked.end(s.t, true)
	}
}

func (s *speech) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil
}

// voice synthesizes and plays chunks until there are no more.
func (s *speech) voice(ctx context.Context, stream *audio.Stream) {
	defer close(s.done)
	defer func() { s.hooked.end(s.t, s.failed()) }()
	ctx, cancel := context.WithCancelCause(ctx)
	o := &s.t.p.o
	watchdog := newWatchdog(o.Clock, o.VoiceTimeout, func() { cancel(&failure{event.VoiceFailed, errNoSpeech}) })
	defer watchdog.stop()
	s.announced = make(chan struct{})
	go s.announce(ctx, stream)
	defer func() {
		cancel(nil)
		<-s.announced
	}()

	err := s.play(ctx, stream, watchdog)
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case err != nil:
		err = &failure{event.VoiceFailed, err}
	}
	if err != nil {
		stream.Cut()
		cancel(err)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = err
	}
}

func (s *speech) play(ctx context.Context, stream *audio.Stream, watchdog *watchdog) error {
	o := &s.t.p.o
	for {
		watchdog.stop() // the model may take its time; it has a watchdog of its own
		var c chunk
		var more bool
		select {
		case c, more = <-s.chunks:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		watchdog.reset()
		if !more {
			break
		}
		text, speak := s.hooked.text(ctx, s.t, c)
		if !speak || !speakable(text) {
			continue
		}
		o.Bus.Publish(event.Said{At: o.Clock.Now(), Run: s.t.record.Run, Text: text, Private: s.t.private})
		s.begin(text, stream.Written())
		if err := s.synthesize(ctx, stream, watchdog, c, text); err != nil {
			return err
		}
		s.complete()
	}
	stream.Finish()
	// The watchdog allows for what is queued before it calls the speaker stuck.
	queued := time.Duration(stream.Written()-stream.Played()) * audio.FrameDuration
	watchdog.d += queued
	watchdog.reset()
	if err := stream.Drain(ctx); err != nil {
		return err
	}
	if stream.Written() > 0 {
		<-s.announced // it is on its way: what is played to the end has begun
	}
	return nil
}

// synthesize has a chunk spoken. Its frames go to the stream as they come, unless a plugin wants to have all of them
// before.
func (s *speech) synthesize(ctx context.Context, stream *audio.Stream, watchdog *watchdog, c chunk, text string) error {
	o := &s.t.p.o
	write := func(f audio.Frame) error {
		watchdog.reset()
		err := stream.Write(ctx, f)
		s.extend(stream.Written())
		return err
	}
	collect := s.hooked.wantsAudio(s.t)
	var all []audio.Frame
	working := o.Clock.Work()
	err := s.t.voice.Synthesize(ctx, text, func(f audio.Frame) error {
		if collect {
			watchdog.reset()
			all = append(all, f)
			return nil
		}
		if !stream.Full() {
			return write(f)
		}
		working() // waiting for room in the stream is no work
		err := write(f)
		working = o.Clock.Work()
		return err
	})
	working()
	if err != nil {
		return err
	}
	if collect {
		for _, f := range s.hooked.audio(ctx, s.t, stream, c, text, all) {
			if err := write(f); err != nil {
				return err
			}
		}
	}
	s.hooked.voiced(text)
	return nil
}

// announce notes when the first sound of the answer is heard.
func (s *speech) announce(ctx context.Context, stream *audio.Stream) {
	defer close(s.announced)
	defer s.t.working()
	select {
	case <-stream.Started():
	case <-ctx.Done():
		return
	}
	s.t.firstSound.Store(int64(s.t.since()) - int64(stream.Age()))
	s.t.p.post(phaseMsg{s.t.record.Run, event.Speaking})
}

func (s *speech) begin(text string, frame int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spans = append(s.spans, span{text: text, from: frame, to: frame})
}

func (s *speech) extend(frame int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spans[len(s.spans)-1].to = frame
}

func (s *speech) complete() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spans[len(s.spans)-1].whole = true
}

// usualPace is how many bytes of text are spoken in a frame, for a voice of which nothing is known yet: 15 a second.
const usualPace = 0.3

// spoken is the text that has been heard so far: whole chunks, and of the one that was cut the share of its words that
// corresponds to the share of its frames. If the voice was not done with it, its length is judged by the pace so far.
func (s *speech) spoken() string {
	stream := s.t.stream.Load()
	if stream == nil {
		return ""
	}
	played := stream.Played()
	s.mu.Lock()
	defer s.mu.Unlock()
	var words []string
	pace := usualPace
	for _, p := range s.spans {
		frames := p.to - p.from
		if p.whole && frames > 0 {
			pace = float64(len(p.text)) / float64(frames)
		} else {
			frames = max(frames, int(float64(len(p.text))/pace))
		}
		all := strings.Fields(p.text)
		switch heard := played - p.from; {
		case p.whole && heard >= frames:
			words = append(words, all...)
		case heard > 0 && frames > 0:
			words = append(words, all[:min(len(all), len(all)*heard/frames)]...)
		}
	}
	return strings.Join(words, " ")
}
