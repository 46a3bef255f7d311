package pipeline

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"sync"
	"time"

	"bellbird/audio"
	"bellbird/hooks"
)

// This file is where speech fires its hooks: those of a stream, in the order of the functions of streamHooks, and those
// around a text that is spoken as a whole.

// streamHooks are the hooks of one stream of speech. Its fields but the once are first of the turn's goroutine, then of
// the voice's.
type streamHooks struct {
	off   bool // it is no stream, as far as plugins are told
	begun bool
	muted bool // a plugin wants nothing of this turn to be spoken
	id    string

	chunks, chars int
	over          sync.Once
}

// begin fires tts_stream_start, once, before anything of the stream is synthesized.
func (h *streamHooks) begin(ctx context.Context, t *turn) {
	if h.begun || h.off {
		return
	}
	h.begun = true
	var id [16]byte
	rand.Read(id[:]) // never fails
	h.id = hex.EncodeToString(id[:])
	if !t.has("tts_stream_start") {
		return
	}
	voice, speed := t.voiceSettings()
	e := &hooks.Event{Metadata: map[string]any{"voice": voice, "speed": speed, "stream_id": h.id}}
	t.fire(ctx, "tts_stream_start", e, 0)
	if e.SkipTTS {
		h.muted = true
		h.end(t, true)
	}
}

// text fires tts_chunk_text, and returns what is to be synthesized, if anything.
func (h *streamHooks) text(ctx context.Context, t *turn, c chunk) (text string, speak bool) {
	if h.off || !t.has("tts_chunk_text") {
		return c.text, true
	}
	e := &hooks.Event{TTSText: hooks.String(c.text), Metadata: h.about(c)}
	t.fire(ctx, "tts_chunk_text", e, 0)
	if e.TTSText == nil {
		return c.text, !e.SkipTTS
	}
	return *e.TTSText, !e.SkipTTS
}

func (h *streamHooks) about(c chunk) map[string]any {
	return map[string]any{"chunk_index": c.index, "boundary": string(c.boundary), "pause_after_ms": 0, "stream_id": h.id}
}

// wantsAudio reports whether anybody handles tts_chunk_audio, so that a chunk has to be complete before it is played.
func (h *streamHooks) wantsAudio(t *turn) bool { return !h.off && t.has("tts_chunk_audio") }

const (
	// audioGuard is how much speech must be left in the stream when the handlers of tts_chunk_audio have had their time:
	// two frames of the device, to be sure.
	audioGuard = 2 * audio.FrameDuration

	wavType  = "audio/wav"
	maxAudio = 32 << 20 // bytes that a handler may make of a chunk
)

// audio fires tts_chunk_audio and returns the frames to be played. The handlers have as long as what is queued for the
// loudspeaker allows; before the first sound nothing can be missed yet, and they have the point's whole budget.
func (h *streamHooks) audio(ctx context.Context, t *turn, stream *audio.Stream, c chunk, text string, frames []audio.Frame) []audio.Frame {
	budget := time.Duration(0)
	if stream.Played() > 0 {
		if budget = t.p.o.Output.Queued() - audioGuard; budget <= 0 {
			budget = -1
		}
	}
	wav := audio.EncodeWAV(frames)
	about := h.about(c)
	about["chunk_text"] = text
	about["audio"] = map[string]any{"audio_bytes": wav, "content_type": wavType}
	e := &hooks.Event{Metadata: about}
	t.fire(ctx, "tts_chunk_audio", e, budget)

	carrier, ok := e.Metadata["audio"].(map[string]any)
	if !ok {
		return frames
	}
	switch data := carrier["audio_bytes"].(type) {
	case nil:
		return nil // the chunk is dropped
	case []byte:
		switch {
		case len(data) == 0:
			return nil
		case bytes.Equal(data, wav):
			return frames
		case len(data) <= maxAudio:
			samples, _, err := audio.Decode(bytes.NewReader(data))
			if err == nil {
				return audio.Split(samples)
			}
			t.p.o.Logger.Warn("a plugin's audio can't be read, the voice's own is played", "run", t.record.Run, "err", err)
		}
	}
	return frames
}

// voiced counts a chunk that went to the loudspeaker.
func (h *streamHooks) voiced(text string) {
	h.chunks++
	h.chars += len([]rune(text))
}

// end fires tts_stream_end, exactly once for each stream that began.
func (h *streamHooks) end(t *turn, interrupted bool) {
	if !h.begun || h.off {
		return
	}
	h.over.Do(func() {
		// The turn may be over: this is told in any case.
		t.fire(context.Background(), "tts_stream_end", &hooks.Event{Metadata: map[string]any{
			"chunk_count": h.chunks, "total_chars": h.chars, "interrupted": interrupted, "stream_id": h.id,
		}}, 0)
	})
}

// preTTS lets plugins change a text that is spoken as a whole, or keep it from being spoken.
func (t *turn) preTTS(ctx context.Context, text string) (changed string, speak bool) {
	e := &hooks.Event{TTSText: hooks.String(text)}
	t.fire(ctx, "pre_tts", e, 0)
	if e.TTSText == nil {
		return text, !e.SkipTTS
	}
	return *e.TTSText, !e.SkipTTS
}

func (t *turn) postTTS(ctx context.Context, text string, d time.Duration, stopped bool) {
	t.fire(ctx, "post_tts", &hooks.Event{
		TTSText: hooks.String(text), Metadata: map[string]any{"duration": d.Seconds(), "stopped_early": stopped},
	}, 0)
}

// voiceSettings are the name and the speed of the voice, nil if it doesn't tell.
func (t *turn) voiceSettings() (name, speed any) {
	v, ok := t.voice.(interface {
		Settings() (name string, speed float64)
	})
	if !ok {
		return nil, nil
	}
	n, s := v.Settings()
	return n, s
}
