// Package ghost is the ghost rail: it writes the message by which a model learns, just before what the user said, what is
// true for this one turn only: the time, a spice, the operator's note, and what plugins contribute. It stands after the
// history, so that all before it stays the same from turn to turn, and it is never kept. The package decides neither when
// the message is made nor where it is put into a request.
package ghost

import (
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"bellbird/hooks"
)

// Header is the first line of every ghost message. Models know by it that no user wrote what follows.
const Header = "[System context from Sapphire's own app — not written by the user]"

// Message is the text of a ghost message, "" where there is nothing to say. It is a type of its own, and not a
// dialog.Message, because that is what chats keep: only who builds a request turns one into the other, and marks it as
// belonging to this turn.
type Message string

// Is reports whether text is that of a ghost message.
func Is(text string) bool { return strings.HasPrefix(text, Header+"\n") }

// MaxContribution is how many characters of one plugin a message holds.
const MaxContribution = 2048

// Settings are those of a chat that the rail obeys.
type Settings struct {
	InjectDatetime bool   // has a Time line
	SpiceEnabled   bool   // has a Spice line
	GhostContext   string // the operator's note
}

// A Turn is what a message is made of.
type Turn struct {
	Now           time.Time // in the user's zone
	Number        int       // of the turn; it chooses the spice
	Settings      Settings
	Contributions []hooks.Contribution // in the order in which the plugins stand
}

// A Rail writes ghost messages. The zero value is usable.
type Rail struct {
	Spices Spices
	Logger *slog.Logger // nil: none
}

// Message returns the ghost message of a turn. No source can begin a line that another would seem to have written: lines
// begin with "- " and the source, and everything that a source writes after its first line is indented by two spaces.
func (r *Rail) Message(t Turn) Message {
	var lines []string
	add := func(label, text string) {
		if text != "" {
			lines = append(lines, "- "+label+strings.ReplaceAll(text, "\n", "\n  "))
		}
	}
	if t.Settings.InjectDatetime {
		add("", timeLine(t.Now))
	}
	if spice := r.Spices.At(t.Number); t.Settings.SpiceEnabled && spice != "" {
		add("Spice: ", clean(spice))
	}
	add("(operator): ", clean(t.Settings.GhostContext))
	written := make(map[string]int) // characters by plugin, which may have several handlers
	for _, c := range t.Contributions {
		text := clean(c.Text)
		n, left := utf8.RuneCountInString(text), MaxContribution-written[c.Plugin]
		written[c.Plugin] += min(n, left)
		if n > left {
			r.log().Warn("a plugin's ghost text is too long", "plugin", c.Plugin, "characters", n, "kept", left)
			text = first(text, left)
		}
		add(label(c.Plugin)+": ", text)
	}
	if len(lines) == 0 {
		return ""
	}
	return Message(Header + "\n" + strings.Join(lines, "\n"))
}

func (r *Rail) log() *slog.Logger {
	if r.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return r.Logger
}

// timeLine tells the time with the name of its zone, if that has one.
func timeLine(t time.Time) string {
	text := "Time: " + t.Format("Monday, January 02, 2006 at 03:04 PM")
	if zone := t.Location().String(); zone != "Local" && zone != "" {
		text += " (" + zone + ")"
	}
	return text
}
