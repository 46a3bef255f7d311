package llmtest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"bellbird/dialog"
	"bellbird/llm"
)

// A Way is how what changes from turn to turn gets into a request.
type Way int

// The two ways there are.
const (
	Rail   Way = iota // a message of the turn, after the history
	Prompt            // part of the system prompt
)

// Figures are what a chat took.
type Figures struct {
	Turns int
	dialog.Usage
}

// Share is the part of the input that came from the cache, 0 to 1.
func (f Figures) Share() float64 {
	if f.Input == 0 {
		return 0
	}
	return float64(f.CacheRead) / float64(f.Input)
}

// Cost is the price of the input in that of tokens that were neither cached nor are remembered, at the published ratios
// for five minutes: a tenth to read, and a quarter more to write.
func (f Figures) Cost() float64 {
	return float64(f.Input-f.CacheRead-f.CacheWritten) + 0.1*float64(f.CacheRead) + 1.25*float64(f.CacheWritten)
}

// Chat has a chat of so many turns with a model behind one of the servers, and adds up what it took. It is that of a
// speaker with twenty tools and a system prompt of a page (3 kB), whose answers are of two sentences. What changes from turn
// to turn is the time, a spice and what two
// plugins contribute, 300 bytes together.
func Chat(ctx context.Context, m llm.Model, way Way, turns int) (Figures, error) {
	f := Figures{Turns: turns}
	const persona = "You are the voice of a speaker in a family's kitchen. You are heard, not read: answer in one or two " +
		"short sentences, without lists, headings, emoji or code. Say numbers as one speaks them. If you did something, say " +
		"what, and nothing more. If you do not know, say so. Use the tools for timers, the volume, the house and the time; " +
		"never guess what they would tell. "
	system := strings.Repeat(persona, 7)
	var history []dialog.Message
	for turn := range turns {
		ghost := fmt.Sprintf("[System context from Sapphire's own app — not written by the user]\n"+
			"- Time: Friday, July 03, 2026 at %02d:%02d PM (Europe/Berlin)\n- Spice: Speak in the manner number %d this reply.\n"+
			"- weather: Light rain, %d degrees outside.\n- presence: %d people are at home.", 1+turn/60, turn%60, turn*7%31, 9+turn%12, 1+turn%4)
		user := dialog.Message{Role: dialog.User, Content: fmt.Sprintf("Question %d: is there enough time left for the bread to rise?", turn)}
		prompt := system
		var messages []dialog.Message
		if way == Prompt {
			prompt += "\n\n" + ghost
		}
		messages = append(append(messages, dialog.Message{Role: dialog.System, Content: prompt}), history...)
		if way == Rail {
			messages = append(messages, dialog.Message{Role: dialog.User, Content: ghost, PerTurn: true})
		}
		messages = append(messages, user)
		var said strings.Builder
		for d, err := range m.Generate(ctx, dialog.Request{Messages: messages, Tools: chatTools()}) {
			if err != nil {
				return f, fmt.Errorf("turn %d: %w", turn, err)
			}
			said.WriteString(d.Text)
			if d.Usage != nil {
				f.Input += d.Usage.Input
				f.CacheRead += d.Usage.CacheRead
				f.CacheWritten += d.Usage.CacheWritten
				f.Output += d.Usage.Output
			}
		}
		history = append(history, user, dialog.Message{Role: dialog.Assistant, Content: said.String()})
	}
	return f, nil
}

// Answer is what the servers are best told to say in a Chat: two spoken sentences.
func Answer() Reply {
	return Reply{Text: []string{"The dough wants another forty minutes, ", "so there is just enough time before dinner. ",
		"I have set a timer ", "that will remind you to heat the oven."}}
}

func chatTools() (tools []dialog.ToolSpec) {
	for i := range 20 {
		tools = append(tools, dialog.ToolSpec{
			Name:        fmt.Sprintf("tool_%02d", i),
			Description: "Changes something in the house and tells what it was before. Use it only when the user names the room.",
			Parameters: json.RawMessage(`{"type":"object","required":["room"],"properties":{"room":{"type":"string",` +
				`"description":"the name of the room"},"level":{"type":"integer","minimum":0,"maximum":100,"description":"in percent"}}}`),
		})
	}
	return tools
}
