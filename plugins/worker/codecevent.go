package worker

import (
	"fmt"

	"bellbird/hooks"
)

// eventTexts and eventFlags are fields of an event that are sent alike. Their places are their numbers.
func eventTexts(e *hooks.Event) [8]**string {
	return [8]**string{
		&e.Response, &e.FunctionName, &e.Result, &e.Confirm, &e.TTSText, &e.GhostText, &e.ChatName, &e.Surface,
	}
}

func eventFlags(e *hooks.Event) [4]*bool {
	return [4]*bool{&e.SkipLLM, &e.Ephemeral, &e.StopPropagate, &e.SkipTTS}
}

// The fields of an event.
const (
	eventInput = 1 + iota
	eventParts
	eventArguments
	eventTools
	eventContributions
	eventMetadata
	eventConfig
	eventPublic
	eventPrivate
	eventText = 20 // and the number of the text
	eventFlag = 40
)

func (e *encoder) event(v *hooks.Event) {
	if v.Input != "" {
		e.b = append(e.b, eventInput)
		e.text(v.Input)
	}
	for i, s := range eventTexts(v) {
		if *s != nil {
			e.b = append(e.b, byte(eventText+i))
			e.text(**s)
		}
	}
	for i, b := range eventFlags(v) {
		if *b {
			e.b = append(e.b, byte(eventFlag+i))
		}
	}
	if v.ChatPrivate != nil {
		field := byte(eventPublic)
		if *v.ChatPrivate {
			field = eventPrivate
		}
		e.b = append(e.b, field)
	}
	if v.ContextParts != nil {
		e.b = append(e.b, eventParts)
		e.value(v.ContextParts, 0)
	}
	if v.Arguments != nil {
		e.b = append(e.b, eventArguments)
		e.value(v.Arguments, 0)
	}
	if v.Tools != nil {
		tools := make([]any, len(v.Tools))
		for i, t := range v.Tools {
			tools[i] = t
		}
		e.b = append(e.b, eventTools)
		e.value(tools, 0)
	}
	if v.GhostContributions != nil {
		e.json(eventContributions, v.GhostContributions)
	}
	if v.Metadata != nil {
		e.b = append(e.b, eventMetadata, isMap)
		n := len(v.Metadata)
		if _, ok := v.Metadata[systemKey]; ok {
			n--
		}
		e.uint(uint64(n))
		for k, x := range v.Metadata {
			if k != systemKey {
				e.text(k)
				e.value(x, 1)
			}
		}
	}
	if v.Config != nil {
		e.b = append(e.b, eventConfig)
		e.value(v.Config, 0)
	}
	e.b = append(e.b, 0)
}

func (d *decoder) event(v *hooks.Event) {
	for {
		switch f := d.byte(); f {
		case 0: // also after an error
			return
		case eventInput:
			v.Input = d.text()
		case eventPublic, eventPrivate:
			v.ChatPrivate = new(f == eventPrivate)
		case eventParts:
			v.ContextParts = d.texts()
		case eventArguments:
			v.Arguments = d.dict()
		case eventTools:
			list := d.list()
			v.Tools = make([]map[string]any, len(list))
			for i, t := range list {
				tool, ok := t.(map[string]any)
				if !ok && t != nil {
					d.fail(errBroken)
				}
				v.Tools[i] = tool
			}
		case eventContributions:
			d.json(&v.GhostContributions)
		case eventMetadata:
			v.Metadata = d.dict()
		case eventConfig:
			v.Config = d.value(0)
		default:
			texts, flags := eventTexts(v), eventFlags(v)
			switch i, j := int(f)-eventText, int(f)-eventFlag; {
			case i >= 0 && i < len(texts):
				*texts[i] = new(d.text())
			case j >= 0 && j < len(flags):
				*flags[j] = true
			default:
				d.fail(fmt.Errorf("an event with a field %d, which is not known", f))
				return
			}
		}
	}
}
