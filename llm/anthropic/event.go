package anthropic

import "encoding/json"

// An event is a piece of an answer. Which of the fields there are is a matter of its type: an answer is a message_start,
// the blocks, a message_delta and a message_stop; a block is a content_block_start, its deltas and a content_block_stop.
// In between there may be pings, errors and what the API learns to say later.
type event struct {
	Type    string `json:"type"`
	Message struct {
		Usage usage `json:"usage"`
	} `json:"message"`
	ContentBlock struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
		Text  string          `json:"text"`
	} `json:"content_block"`
	Delta struct {
		Text        string `json:"text"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Usage usage `json:"usage"` // of a message_delta
	Error any   `json:"error"` // not nil: it is one
}

// usage are tokens so far. Those that were read from the cache or written to it are not part of the input here.
type usage struct {
	Input        int `json:"input_tokens"`
	CacheRead    int `json:"cache_read_input_tokens"`
	CacheWritten int `json:"cache_creation_input_tokens"`
	Output       int `json:"output_tokens"`
}
