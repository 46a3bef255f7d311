package wyoming

import (
	"encoding/binary"
	"fmt"

	"bellbird/audio"
)

// The types of the events that the appliance sends or understands.
const (
	Describe = "describe"
	InfoType = "info"
	Failure  = "error"

	AudioStart = "audio-start"
	AudioChunk = "audio-chunk"
	AudioStop  = "audio-stop"

	Transcribe      = "transcribe"
	Transcript      = "transcript"
	TranscriptStart = "transcript-start"
	TranscriptChunk = "transcript-chunk"
	TranscriptStop  = "transcript-stop"

	Synthesize        = "synthesize"
	SynthesizeStart   = "synthesize-start"
	SynthesizeChunk   = "synthesize-chunk"
	SynthesizeStop    = "synthesize-stop"
	SynthesizeStopped = "synthesize-stopped"
)

// A Format is the data of the events of sound. Width is in bytes of a sample.
type Format struct {
	Rate     audio.Rate `json:"rate"`
	Width    int        `json:"width"`
	Channels int        `json:"channels"`
}

// Inner is the format that the appliance sends.
var Inner = Format{Rate: audio.SampleRate, Width: 2, Channels: 1}

// Sound is the chunk of the given frames.
func Sound(frames ...audio.Frame) Event {
	e := NewEvent(AudioChunk, Inner)
	e.Payload = make([]byte, 0, len(frames)*audio.FrameSize*2)
	for i := range frames {
		for _, s := range frames[i] {
			e.Payload = binary.LittleEndian.AppendUint16(e.Payload, uint16(s))
		}
	}
	return e
}

// Text is the data of transcript, transcript-chunk and synthesize-chunk.
type Text struct {
	Text string `json:"text"`
}

// A Request is the data of transcribe, with the name of a model. What is empty is left to the service.
type Request struct {
	Name     string `json:"name,omitempty"`
	Language string `json:"language,omitempty"`
}

// A Speech is the data of synthesize and, without text, of synthesize-start.
type Speech struct {
	Text  string `json:"text,omitempty"`
	Voice *Named `json:"voice,omitempty"`
}

// A Named voice, and of one that has several speakers one of them.
type Named struct {
	Name    string `json:"name,omitempty"`
	Speaker string `json:"speaker,omitempty"`
}

// A Fault is what a service says that something went wrong: the data of error.
type Fault struct {
	Text string `json:"text"`
	Code string `json:"code"`
}

func (f *Fault) Error() string {
	if f.Code == "" {
		return fmt.Sprintf("the service says: %.200s", f.Text)
	}
	return fmt.Sprintf("the service says: %.60s: %.200s", f.Code, f.Text)
}

// Info is what a service has: recognisers and voices. A service may have several programs of a kind; the first is the one
// that it uses. Unused are the other kinds of services.
type Info struct {
	Recognisers []Program `json:"asr"`
	Voices      []Program `json:"tts"`
}

// A Program is one that a service has. Only a recogniser has models, and only a synthesizer voices.
type Program struct {
	Name    string     `json:"name"`
	Version string     `json:"version"`
	Models  []Artifact `json:"models"`
	Voices  []Artifact `json:"voices"`

	StreamsText   bool `json:"supports_transcript_streaming"` // it tells what it understood bit by bit
	StreamsSpeech bool `json:"supports_synthesize_streaming"` // it takes the text bit by bit
}

// An Artifact is a model or a voice.
type Artifact struct {
	Name      string   `json:"name"`
	Languages []string `json:"languages"`
	Installed bool     `json:"installed"`
	Speakers  []struct {
		Name string `json:"name"`
	} `json:"speakers"`
}
