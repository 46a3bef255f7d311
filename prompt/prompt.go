// Package prompt writes the system prompt: who the assistant is, how it speaks aloud, and what else a chat and the plugins
// have to say that holds for more than one turn. What changes from turn to turn belongs into package ghost: the system
// prompt stands before the whole history, and a model server remembers it only while it stays the same.
package prompt

import "strings"

// What stands where nothing else is configured.
const (
	DefaultPersona = "You are {ai_name}, a voice assistant that lives in a smart speaker. You talk with {user_name}."

	// VoiceManners are how to write what will be spoken.
	VoiceManners = "Your answers are spoken aloud as you write them. " +
		"Speak in short, simple sentences, and in as few as will do: one to three, unless the user asks for more. " +
		"Write plain text only: no Markdown, lists, tables, code, links or emoji. " +
		"Write numbers, units, dates and abbreviations as they are said. " +
		"If you are not sure what the user wants, ask one short question."

	defaultAI   = "Bellbird"
	defaultUser = "the user"
)

// Options are what the prompt is made of. The zero value is usable.
type Options struct {
	// Persona says who the assistant is. Default: DefaultPersona.
	Persona string `toml:"persona"`

	// Manners say how it speaks. Default: VoiceManners; an empty text is none.
	Manners *string `toml:"manners"`

	// UserName and AIName stand for {user_name} and {ai_name}, wherever they are. Default: "the user" and "Bellbird".
	UserName string `toml:"user_name"`
	AIName   string `toml:"ai_name"`
}

// Parts begins the parts of a prompt: with the chat's custom context, where there is one. Plugins add theirs.
func Parts(customContext string) []string {
	if customContext = strings.TrimSpace(customContext); customContext != "" {
		return []string{customContext}
	}
	return nil
}

// System is the system prompt: persona and manners, a blank line, and the parts, one below the other. In all of it the
// placeholders are replaced. The same parts make the same prompt.
func (o Options) System(parts []string) string {
	persona := strings.TrimSpace(o.Persona)
	if persona == "" {
		persona = DefaultPersona
	}
	manners := VoiceManners
	if o.Manners != nil {
		manners = strings.TrimSpace(*o.Manners)
	}
	var more []string
	for _, part := range parts {
		if strings.TrimSpace(part) != "" {
			more = append(more, part)
		}
	}
	text := persona
	for _, block := range []string{manners, strings.Join(more, "\n")} {
		if block != "" {
			text += "\n\n" + block
		}
	}
	return strings.NewReplacer(
		"{user_name}", name(o.UserName, defaultUser),
		"{ai_name}", name(o.AIName, defaultAI),
	).Replace(text)
}

// name is a name on a single line.
func name(configured, standard string) string {
	if name := strings.Join(strings.Fields(configured), " "); name != "" {
		return name
	}
	return standard
}
