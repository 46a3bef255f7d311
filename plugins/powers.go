package plugins

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Parts are what an appliance may have. A part of which it has no powers is None to scripts.
var Parts = []string{"llm_chat", "ring", "stt", "tools", "tts", "volume", "wakeword"}

// powers is the table of all that plugins may be given, and of what it is called with.
var powers = map[string][]param{
	"cancel_generation": {},

	"tts.set_voice": {{name: "voice", kind: text, most: 100}},
	"tts.set_speed": {{name: "speed", kind: number, least: 0.25, most: 4}}, // 1 is as configured
	"tts.set_pitch": {{name: "pitch", kind: number, least: 0.25, most: 4}},
	"tts.speak":     {{name: "text", kind: text, most: 4000}},
	"tts.stop":      {},

	"stt.enable":  {{name: "on", kind: flag}},
	"stt.enabled": {},

	"wakeword.enable":          {{name: "on", kind: flag}},
	"wakeword.enabled":         {},
	"wakeword.set_sensitivity": {{name: "sensitivity", kind: number, least: 0, most: 1}, {name: "word", kind: text, most: 100, optional: true}},

	"llm_chat.chat":          {{name: "text", kind: text, most: 64 << 10}, {name: "save", kind: text, most: 100, optional: true}},
	"llm_chat.get_messages":  {{name: "chat", kind: text, most: 200, optional: true}},
	"llm_chat.active_chat":   {},
	"llm_chat.list_chats":    {},
	"llm_chat.create_chat":   {{name: "name", kind: text, most: 200}},
	"llm_chat.activate_chat": {{name: "name", kind: text, most: 200}},
	"llm_chat.rename_chat":   {{name: "old", kind: text, most: 200}, {name: "new", kind: text, most: 200}},
	"llm_chat.clear_chat":    {{name: "name", kind: text, most: 200, optional: true}},

	"tools.list": {},

	"volume.get":  {},
	"volume.set":  {{name: "percent", kind: whole, least: 0, most: 100}},
	"volume.mute": {{name: "on", kind: flag}},

	"ring.show": {
		{name: "colour", kind: text, most: 20}, {name: "seconds", kind: number, least: 0.1, most: 60}, {name: "pattern", kind: text, most: 20, optional: true},
	},
}

// otherNames are those by which the reference's plugins know some powers.
var otherNames = map[string]string{
	"toggle_stt":      "stt.enable",
	"toggle_wakeword": "wakeword.enable",

	"llm_chat.session_manager.clear":                "llm_chat.clear_chat",
	"llm_chat.session_manager.create_chat":          "llm_chat.create_chat",
	"llm_chat.session_manager.get_active_chat_name": "llm_chat.active_chat",
	"llm_chat.session_manager.get_messages":         "llm_chat.get_messages",
	"llm_chat.session_manager.list_chats":           "llm_chat.list_chats",
	"llm_chat.session_manager.set_active_chat":      "llm_chat.activate_chat",
}

// A param is one argument of a power. The optional ones come last.
type param struct {
	name        string
	kind        kind
	least, most float64 // of a number; of a text, bytes
	optional    bool
}

type kind string

const (
	text   kind = "text"
	number kind = "number"
	whole  kind = "whole number"
	flag   kind = "True or False"
	list   kind = "list"

	anything kind = "value" // also None, which for the other kinds is as good as not given
)

// bind gives the arguments their names, and checks them.
func bind(params []param, args []any, kwargs map[string]any) (map[string]any, error) {
	if len(args) > len(params) {
		return nil, fmt.Errorf("%d arguments, it takes %s", len(args), signature(params))
	}
	bound := make(map[string]any, len(params))
	for i, v := range args {
		if v != nil || params[i].kind == anything {
			bound[params[i].name] = v
		}
	}
	for name, v := range kwargs {
		i := slices.IndexFunc(params, func(p param) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no argument is called %.50q, it takes %s", name, signature(params))
		}
		if i < len(args) {
			return nil, fmt.Errorf("%s is given twice", name)
		}
		if v != nil || params[i].kind == anything {
			bound[name] = v
		}
	}
	for _, p := range params {
		v, ok := bound[p.name]
		if !ok {
			if p.optional {
				continue
			}
			return nil, fmt.Errorf("%s is missing, it takes %s", p.name, signature(params))
		}
		if err := p.check(v); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return bound, nil
}

func (p param) check(v any) error {
	ok := p.kind == anything
	switch v := v.(type) {
	case string:
		if ok = ok || p.kind == text; p.kind == text && float64(len(v)) > p.most {
			return fmt.Errorf("a text of %d bytes, the most are %v", len(v), p.most)
		}
	case bool:
		ok = ok || p.kind == flag
	case []any:
		ok = ok || p.kind == list
	case float64:
		numeric := p.kind == number || p.kind == whole
		if ok = ok || numeric; numeric && !(v >= p.least && v <= p.most) {
			return fmt.Errorf("%v is not from %v to %v", v, p.least, p.most)
		}
		if p.kind == whole && v != math.Trunc(v) {
			return fmt.Errorf("%v is no whole number", v)
		}
	}
	if !ok {
		return errors.New("it should be a " + string(p.kind))
	}
	return nil
}

// signature shows what a power takes: (voice, [speed]).
func signature(params []param) string {
	names := make([]string, len(params))
	for i, p := range params {
		names[i] = p.name
		if p.optional {
			names[i] = "[" + p.name + "]"
		}
	}
	return "(" + strings.Join(names, ", ") + ")"
}
