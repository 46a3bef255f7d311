package hooks

import (
	"slices"
	"strings"
	"time"
)

// withheld says why a handler is not called now; "" if it is. For a voice command there are the captures of its match.
func (f *fire) withheld(h *handler, e *Event, now time.Time) (why Outcome, captures []any) {
	secret := f.point.Private == awareOnly || f.point.Private == awareInPrivate && *e.ChatPrivate
	if secret && !f.table.aware[h.Plugin] {
		return WithheldPrivate, nil
	}
	if f.point.Presence && e.Surface != nil {
		if surfaces, restricted := f.table.surfaces[h.Plugin]; restricted && !slices.Contains(surfaces, *e.Surface) {
			return WithheldSurface, nil
		}
	}
	if h.Match != nil {
		matched, groups := h.Match.matches(e.Input)
		if !matched {
			return NoMatch, nil
		}
		captures = groups
	}
	if !h.breaker.Closed(now) {
		return BreakerOpen, nil
	}
	return "", captures
}

// honour lets who fired have what the point honours, and nothing else.
func (f *fire) honour() {
	to, from := f.event, f.committed
	has := func(x fields) bool { return f.point.Honours&x != 0 }
	if has(input) {
		to.Input = from.Input
	}
	if has(skipLLM) {
		to.SkipLLM = from.SkipLLM
	}
	if has(response) {
		to.Response = from.Response
	}
	if has(responseNotBlank) && from.Response != nil && strings.TrimSpace(*from.Response) != "" {
		to.Response = from.Response
	}
	if has(ephemeral) {
		to.Ephemeral = from.Ephemeral
	}
	if has(contextParts) {
		to.ContextParts = from.ContextParts
	}
	if has(ghostText) {
		to.GhostContributions = from.GhostContributions
	}
	if has(toolsSubtract) {
		to.Tools = subtract(to.Tools, from.Tools)
	}
	if has(arguments) {
		to.Arguments = from.Arguments
	}
	if has(result) {
		to.Result = from.Result
	}
	if has(confirm) {
		to.Confirm = from.Confirm
	}
	if has(ttsText) {
		to.TTSText = from.TTSText
	}
	if has(skipTTS) {
		to.SkipTTS = from.SkipTTS
	}
	if has(audioCarrier) && to.Metadata != nil {
		to.Metadata["audio"] = from.Metadata["audio"]
	}
	if f.point.Honours == unknownPoint.Honours { // a plugin's own point: its metadata are the point of it
		to.Metadata = from.Metadata
	}
}

// subtract is what of all the handlers kept, by name: the schemas themselves, their order and their number are those
// of before, whatever handlers made of theirs.
func subtract(all, kept []map[string]any) []map[string]any {
	names := make(map[string]bool, len(kept))
	for _, t := range kept {
		if name := toolName(t); name != "" {
			names[name] = true
		}
	}
	left := make([]map[string]any, 0, len(all))
	for _, t := range all {
		if names[toolName(t)] {
			left = append(left, t)
		}
	}
	return left
}

func toolName(t map[string]any) string {
	f, _ := t["function"].(map[string]any)
	name, _ := f["name"].(string)
	return name
}
