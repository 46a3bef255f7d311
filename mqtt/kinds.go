package mqtt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// How each kind of entity tells its state, and what it takes for a command. Of what isn't there nil becomes an entity
// without a platform.

func (s *Switch) entity(key, name, category string) entity {
	if s == nil {
		return entity{}
	}
	return entity{key: key, platform: "switch", name: name, category: category,
		state: func() (string, bool) { return onOff(s.Get()), true },
		command: func(_ context.Context, payload string) error {
			if payload != "ON" && payload != "OFF" {
				return errors.New("it is ON or OFF")
			}
			return s.Set(payload == "ON")
		}}
}

func (n *Number) entity(key, name, category string) entity {
	if n == nil {
		return entity{}
	}
	f := fields{"min": n.Min, "max": n.Max, "step": n.Step}
	if n.Unit != "" {
		f["unit_of_meas"] = n.Unit
	}
	return entity{key: key, platform: "number", name: name, category: category, fields: f,
		state: func() (string, bool) {
			v := n.Get()
			if math.IsNaN(v) {
				return "None", true
			}
			return strconv.FormatFloat(v, 'f', -1, 64), true
		},
		command: func(_ context.Context, payload string) error {
			v, err := strconv.ParseFloat(payload, 64)
			if err != nil || math.IsNaN(v) || v < n.Min || v > n.Max {
				return fmt.Errorf("it is a number from %v to %v", n.Min, n.Max)
			}
			return n.Set(v)
		}}
}

// choices are those that can be shown: no two alike, and none that Home Assistant takes for unknown.
func (s *Select) choices() []string {
	list := []string{}
	for _, o := range s.Options() {
		if len(list) < maxOptions && o != "" && len(o) <= maxState && !strings.EqualFold(o, "none") && !slices.Contains(list, o) {
			list = append(list, o)
		}
	}
	return list
}

func (s *Select) entity(key, name, category string) entity {
	if s == nil {
		return entity{}
	}
	return entity{key: key, platform: "select", name: name, category: category, lane: slow, fields: fields{"ops": s.choices()},
		state: func() (string, bool) {
			if v := s.Get(); slices.Contains(s.choices(), v) {
				return v, true
			}
			return "None", true
		},
		command: func(_ context.Context, payload string) error {
			if !slices.Contains(s.choices(), payload) {
				return errors.New("it isn't one of the options")
			}
			return s.Set(payload)
		}}
}

func button(key, name, category, class string, l lane, press func() error) entity {
	if press == nil {
		return entity{}
	}
	f := fields{}
	if class != "" {
		f["dev_cla"] = class
	}
	return entity{key: key, platform: "button", name: name, category: category, fields: f, lane: l,
		command: func(_ context.Context, payload string) error {
			if payload != "PRESS" {
				return errors.New("it is PRESS")
			}
			return press()
		}}
}

// A lightJSON is a light's state and command, as Home Assistant's JSON schema of lights has them. Transitions and flashes
// of a command are not taken.
type lightJSON struct {
	State      string  `json:"state,omitempty"`
	Brightness *int    `json:"brightness,omitempty"`
	ColorMode  string  `json:"color_mode,omitempty"`
	Color      *rgb    `json:"color,omitempty"`
	Effect     *string `json:"effect,omitempty"`
}

type rgb struct {
	R int `json:"r"`
	G int `json:"g"`
	B int `json:"b"`
}

func (l *Light) entity(key, name string) entity {
	if l == nil {
		return entity{}
	}
	f := fields{"schema": "json", "brightness": true, "sup_clrm": []string{"rgb"}}
	if len(l.Effects) > 0 {
		f["effect"], f["fx_list"] = true, l.Effects
	}
	return entity{key: key, platform: "light", name: name, fields: f,
		state: func() (string, bool) {
			s := l.Get()
			brightness := int(s.Brightness)
			state := lightJSON{State: onOff(s.On), Brightness: &brightness, ColorMode: "rgb", Color: &rgb{int(s.R), int(s.G), int(s.B)}}
			if s.Effect != "" {
				state.Effect = &s.Effect
			}
			return encode(state), true
		},
		command: func(_ context.Context, payload string) error {
			c, err := l.parse(payload)
			if err != nil {
				return err
			}
			return l.Set(c)
		}}
}

// parse reads a command, of which any part may be missing.
func (l *Light) parse(payload string) (c LightCommand, err error) {
	var in lightJSON
	if err := json.Unmarshal([]byte(payload), &in); err != nil {
		return c, err
	}
	byteOf := func(v int) uint8 {
		if v < 0 || v > 255 {
			err = fmt.Errorf("%d: brightness and colours go from 0 to 255", v)
		}
		return uint8(v)
	}
	switch in.State {
	case "ON", "OFF":
		c.On = new(in.State == "ON")
	case "":
	default:
		return c, fmt.Errorf("state %q: it is ON or OFF", in.State)
	}
	if in.Brightness != nil {
		c.Brightness = new(byteOf(*in.Brightness))
	}
	if in.Color != nil {
		c.Color = &[3]uint8{byteOf(in.Color.R), byteOf(in.Color.G), byteOf(in.Color.B)}
	}
	if in.Effect != nil {
		if !slices.Contains(l.Effects, *in.Effect) {
			return c, fmt.Errorf("effect %q: there is none of that name", *in.Effect)
		}
		c.Effect = in.Effect
	}
	return c, err
}

func updates(a *Appliance) entity {
	if a.Update == nil {
		return entity{}
	}
	e := entity{key: "firmware", platform: "update", name: "Firmware", category: "config", fields: fields{"dev_cla": "firmware"},
		state: func() (string, bool) {
			u := a.Update()
			if u.Installed == "" {
				return "", false
			}
			state := fields{"installed_version": u.Installed, "latest_version": u.Latest, "in_progress": u.InProgress, "update_percentage": u.Percent}
			for k, v := range map[string]string{"title": u.Title, "release_summary": short(u.Summary, maxState), "release_url": u.URL} {
				if v != "" {
					state[k] = v
				}
			}
			return encode(state), true
		}}
	if a.Install != nil {
		e.fields["pl_inst"], e.lane = "install", slow
		e.command = func(_ context.Context, payload string) error {
			if payload != "install" {
				return errors.New("it is install")
			}
			return a.Install()
		}
	}
	return e
}
