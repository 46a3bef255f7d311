// Package system has the plugins that come with the program itself. They are scripts like all others, and can be
// disabled, or have their place taken by a plugin of the same name.
package system

import "embed"

// Files has a directory for each of the plugins.
//
//go:embed voice-commands/plugin.json voice-commands/*.star
var Files embed.FS
