package openai

import (
	"bytes"
	"encoding/json"
)

// A chunk is the data of an event.
type chunk struct {
	Choices []struct {
		Delta struct {
			Content   string     `json:"content"`
			Refusal   string     `json:"refusal"`
			ToolCalls []toolCall `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *usage `json:"usage"`
	Error any    `json:"error"` // not nil: it is one
}

// A toolCall is a piece of a call.
type toolCall struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string    `json:"name"`
		Arguments arguments `json:"arguments"`
	} `json:"function"`
}

type usage struct {
	PromptTokens        int `json:"prompt_tokens"`
	CompletionTokens    int `json:"completion_tokens"`
	PromptTokensDetails struct {
		CachedTokens     int `json:"cached_tokens"`
		CacheWriteTokens int `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
}

// arguments are JSON within a string, of which a piece need not be valid. Some servers have an object there.
type arguments string

func (a *arguments) UnmarshalJSON(text []byte) error {
	switch {
	case bytes.HasPrefix(text, []byte(`"`)):
		return json.Unmarshal(text, (*string)(a))
	case string(text) != "null":
		*a = arguments(text)
	}
	return nil
}
