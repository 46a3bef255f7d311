package mqtt

import (
	"fmt"
	"strings"
	"time"
)

// Table is the table of entities in the documentation, with one plugin for all.
func (d *Device) Table() string {
	var b strings.Builder
	b.WriteString("| key | entity | shown as | category | state | command |\n|---|---|---|---|---|---|\n")
	for _, e := range d.entities(newHome()) {
		if strings.Contains(e.key, "plugin_") && !strings.HasSuffix(e.key, "plugin_weather") {
			continue
		}
		key := strings.Replace(e.key, "weather", "NAME", 1)
		name := strings.Replace(e.name, "weather", "NAME", 1)
		category := e.category
		if e.disabled {
			category = strings.TrimSpace(category + " disabled")
		}
		if e.platform == "device_automation" {
			name = fmt.Sprint(e.fields["type"])
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", key, e.platform, name, category, e.shows(), e.takes())
	}
	return b.String()
}

func (e entity) shows() string {
	var parts []string
	switch ops := e.fields["ops"]; {
	case e.platform == "select":
		parts = append(parts, "one of its options, or unknown")
	case ops != nil:
		parts = append(parts, strings.Join(ops.([]string), ", "))
	case e.platform == "switch", e.platform == "binary_sensor":
		parts = append(parts, "ON, OFF")
	case e.platform == "number":
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%v to %v %v", e.fields["min"], e.fields["max"], e.unit())))
	case e.platform == "event":
		parts = append(parts, "event: "+strings.Join(e.fields["evt_typ"].([]string), ", "))
	case e.platform == "light", e.platform == "update":
		parts = append(parts, "JSON")
	case e.state != nil && e.unit() != "":
		parts = append(parts, "number, "+e.unit())
	case e.state != nil && e.fields["stat_cla"] != nil:
		parts = append(parts, "number")
	case e.fields["dev_cla"] == "timestamp":
		parts = append(parts, "time")
	case e.state != nil:
		parts = append(parts, "text")
	}
	if e.attributes != nil {
		parts = append(parts, "attributes")
	}
	return strings.Join(parts, "; ")
}

func (e entity) unit() string {
	u, _ := e.fields["unit_of_meas"].(string)
	return u
}

func (e entity) takes() string {
	if e.command == nil {
		return ""
	}
	switch e.platform {
	case "switch":
		return "ON, OFF"
	case "number":
		return "a number within these bounds"
	case "select":
		return "an option"
	case "button":
		return "PRESS"
	case "update":
		return "install"
	case "light":
		return "JSON, in parts"
	case "notify":
		return "text, or JSON with `message` and `priority`"
	}
	return "text"
}

// The parts that are tested by themselves.
type (
	Group   = group
	Limiter = limiter
	Backoff = backoff
	Limited = limited
)

func NewGroup(id string, window time.Duration, send func(string) bool) *Group {
	return newGroup(id, window, send)
}
func (g *Group) Call(word string, score, level float64, tell func(bool)) {
	g.call(word, score, level, tell)
}
func (g *Group) Receive(payload []byte)       { g.receive(payload) }
func (b *Backoff) Wait() time.Duration        { return b.wait() }
func (l *Limited) Follow(p []byte) bool       { return l.follow(p) }
func NewLimiter(rate, burst float64) *Limiter { return &Limiter{rate: rate, burst: burst} }
func (l *Limiter) Pass(now time.Time) bool    { return l.pass(now) }

const (
	MaxPacket  = maxPacket
	MaxBackoff = maxBackoff
	MinBackoff = minBackoff
)
